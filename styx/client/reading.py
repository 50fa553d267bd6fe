"""Reads as all clients have them: of one entity through the log, and of a read-only function outside of it; and the
token of the session, which is an epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from styx.client.listing import ListingClient
from styx.client.typed_results import typed_result
from styx.errors import ConfigurationError
from styx.messages import Reply
from styx.model.entity_handle import positional
from styx.model.entity_read import reply_of_read
from styx.model.freshness import Freshness, check_epoch, freshness_of
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT

if TYPE_CHECKING:
    from styx.typed import Operator

K = TypeVar("K")
P = ParamSpec("P")
R = TypeVar("R")


class Reading(ListingClient):
    """The part of a client that reads. `epoch` is the token of its session: the largest epoch of its replies and reads,
    -1 before the first. A read with `freshness="session"` sees at least the end of that epoch. The token is good for
    other clients of the same deployment, which take it with `saw`.
    """

    _epoch = -1

    @property
    def epoch(self) -> int:
        """The token of the session."""
        return self._epoch

    def saw(self, epoch: int) -> None:
        """The session has seen `epoch`, another client's token: from now on it sees nothing older. Raises
        `BadArguments`.
        """
        if check_epoch(epoch) > self._epoch:
            self._epoch = epoch

    @property
    def _token(self) -> int:
        return self.epoch

    def _listed(self, epoch: int) -> None:
        self._epoch = max(self._epoch, epoch)

    @overload
    async def read(
        self,
        operator: Any,
        key: Any,
        *,
        freshness: str | None = None,
        at: int | None = None,
        max_staleness_s: float | None = None,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `request`
        idempotency_key: str | None = None,
    ) -> Reply: ...

    @overload
    async def read(
        self,
        operator: Operator[K, Any],
        key: K,
        function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]],
        *args: P.args,
        **named: P.kwargs,
    ) -> R: ...

    @overload
    async def read(
        self,
        operator: Any,
        key: Any,
        function: Callable[..., Coroutine[Any, Any, R]],
        *args: Any,
        freshness: str | None = None,
        at: int | None = None,
        max_staleness_s: float | None = None,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `request`
    ) -> R: ...

    @overload
    async def read(
        self,
        operator: Any,
        key: Any,
        function: str,
        *args: Any,
        freshness: str | None = None,
        at: int | None = None,
        max_staleness_s: float | None = None,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `request`
    ) -> Any: ...

    async def read(  # type: ignore[misc] # a function's parameter may be called as one of ours
        self,
        operator: Any,
        key: Any,
        function: Any = None,
        *args: Any,
        freshness: str | None = None,
        at: int | None = None,
        max_staleness_s: float | None = None,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `request`
        idempotency_key: str | None = None,
        **named: Any,
    ) -> Any:
        """The result of a read-only function, as `call` gives it, read outside the log: no transaction waits for it, or
        fails because of it. It sees one state of all operators, the one at the end of an epoch.

        Without a `function` it gives the `Reply` with the state of one entity; with neither freshness nor epoch that is
        a transaction, which sees all that was answered before. `error` has the code `unknown_entity` if there is none.

        Parameters
        ----------
        freshness: "latest" (the default), the newest state that the worker has; "session", at least what this client
            has been answered or has read; "strict", all that anybody was answered before this call.
        at: the epoch to read at the end of, instead of a freshness; as long as it is kept, and once it has closed.
        max_staleness_s: a state is refused (`RequestRejected`, `too_stale`) if it was replaced longer ago than that.
        timeout: in seconds. It also ends the wait for an epoch.

        Raises `SnapshotTooOld`, `TimeoutError`, `BadArguments`, `RequestRejected`, `not_read_only` for a function that
        may write, and otherwise what `call` raises. Nothing was changed in any case.
        """
        if function is not None:
            given = positional(function, args, named)
            reply = await self.read_request(
                operator,
                key,
                function,
                *given,
                freshness=freshness,
                at=at,
                max_staleness_s=max_staleness_s,
                timeout=timeout,
            )
            return typed_result(function, reply.unwrap())
        if freshness is None and at is None and max_staleness_s is None:
            return await self._read_entity(operator, key, timeout, idempotency_key)
        wanted = freshness_of(freshness, self.epoch, at, max_staleness_s)
        return reply_of_read(self._taken(await self._read_outside(operator, key, None, (), wanted, timeout)))

    async def read_request(
        self,
        operator: Any,
        key: Any,
        function: Any,
        *args: Any,
        freshness: str | None = None,
        at: int | None = None,
        max_staleness_s: float | None = None,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `request`
    ) -> Reply:
        """As `read`, the `Reply`, whether the function raised or not: `epoch` is the one at whose end it has read. It
        has no transaction: `tid` is 0, and `phase` is 4, behind all phases of that epoch.
        """
        wanted = freshness_of(freshness, self.epoch, at, max_staleness_s)
        return self._taken(await self._read_outside(operator, key, function, args, wanted, timeout))

    def _taken(self, reply: Reply) -> Reply:
        """The reply is the session's."""
        if reply.epoch > self._epoch and (reply.error is None or reply.error.code == "aborted"):
            self._epoch = reply.epoch
        return reply

    async def _read_entity(self, operator: Any, key: Any, seconds: float, idempotency_key: str | None) -> Reply:
        """The reply to a transaction that reads the entity."""
        raise NotImplementedError

    async def _read_outside(
        self, operator: Any, key: Any, function: Any, args: tuple[Any, ...], wanted: Freshness, seconds: float
    ) -> Reply:
        """The reply to a read of `function`, or of the entity if it is None; raises as `request`."""
        raise ConfigurationError(
            f"a {type(self).__name__} has no way to read outside the log: connect to a gateway by HTTP for that, or "
            "use `call`, which reads by a transaction"
        )
