"""The common part of all clients: `call` and `request` on top of `submit`, an entity to call functions of, and the
checks of arguments.

Each client sends requests in its own way.
"""

from __future__ import annotations

import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, overload

from styx.client.changes import ChangeReader
from styx.client.events import EventReader
from styx.client.load import LoadTarget, load
from styx.client.loaded import RowsOf
from styx.client.reading import Reading
from styx.client.typed_results import typed_result, typed_rows
from styx.errors import BadArguments, BadKey, ConfigurationError, RequestRejected, StyxError
from styx.messages import Reply, ReplyError
from styx.model.app import App
from styx.model.bulk_load import LoadReport
from styx.model.dead_list import DEAD_CALLS_DEFAULT, DeadCallsPage, dead_page, parts_of
from styx.model.entity_handle import EntityReference, entity_of, positional
from styx.model.entity_read import reply_of_read, state_in
from styx.model.event import Event
from styx.model.function_spec import (
    DEAD_FUNCTION,
    DROP_DEAD_FUNCTION,
    READ_FUNCTION,
    READ_ROWS_FUNCTION,
    REPLAY_DEAD_FUNCTION,
    UserFunction,
)
from styx.model.inlet import PUBLISH, inlet_of
from styx.model.limits import IDEMPOTENCY_KEY_CHARS_MAX, TIMEOUT_SECONDS_DEFAULT, TIMEOUT_SECONDS_MAX
from styx.model.operator import Operator as AnyOperator
from styx.model.table_names import own_name, owner_of
from styx.relational.table import Table
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.typed import Operator

_VISIBLE = re.compile(rf"[\x21-\x7e]{{1,{IDEMPOTENCY_KEY_CHARS_MAX}}}+")

K = TypeVar("K")
P = ParamSpec("P")
R = TypeVar("R")
OperatorLike = AnyOperator | str
FunctionLike = UserFunction | str
KeyLike = str | int | tuple[str | int, ...]
TableLike = Table | str
EventLike = Event[Any] | str
Pairs = Iterable[tuple[KeyLike, Any]] | AsyncIterable[tuple[KeyLike, Any]]


class Client(Reading, ABC):
    """Sends requests; an async context manager that closes itself.

    In all methods `operator` is an `Operator` or its name, `key` a str, int or tuple of them, `function` a name
    or the registered function, `timeout` in seconds (above 0, at most 600) the time to wait for the reply, and
    `idempotency_key` 1 to 256 visible ASCII characters: the same key gives the first reply again and runs nothing.
    """

    @abstractmethod
    def submit(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
    ) -> Awaitable[Reply]:
        """Sends a request without waiting; the awaitable gives its `Reply`, or raises what `request` raises.

        Raises `ValueError` at once for a timeout out of range.
        """

    @abstractmethod
    def load_target(self, operator: Any, replace: bool, timeout: float) -> LoadTarget:
        """Where `load` and `load_rows` send their chunks; `operator` may be `RowsOf`. Raises `BadArguments` or
        `UnknownOperator`.
        """

    def events(self, event: Event[Any] | str, *, after: str | None = None, follow: bool = True) -> EventReader:
        """What committed transactions have emitted, in the serial order: `async for paid in client.events(order_paid)`.

        `event` is an `Event`, or its name: then values are plain data. `after`: the `cursor` of the last event that was
        read, None for all that the log keeps, or "end" for those from now on. With `follow=False` it ends at the last
        event there is, and `await client.events(…, follow=False)` gives the list.

        Raises `BadArguments` for another event or cursor. Reading raises `EventsReleased` if the log has events behind
        `after` no more, `EventUnreadable` for one that does not fit the type, and `EventsCut` if it is cut off.
        """
        raise ConfigurationError(f"a {type(self).__name__} reads no events")

    def changes(
        self, operator: OperatorLike, table: TableLike | None = None, *, from_epoch: int | None = None
    ) -> ChangeReader:
        """What committed transactions have changed, epoch by epoch: `async for epoch in client.changes(cart)` gives
        `ChangedEpoch` with its `changes`. It waits for those that come, without an end.

        They are those of the operator's entities and their rows, or of one table or view alone. `from_epoch`: the first
        epoch that is wanted, None for those from now on. Values are of the declared types if the operator or table
        itself was given, and plain data if only its name was.

        Raises `BadArguments`. Reading raises `SnapshotTooOld` if these changes are not kept any more: read the state,
        and follow from its epoch.
        """
        raise ConfigurationError(
            f"a {type(self).__name__} has no way to follow changes: connect to a gateway by HTTP for that"
        )

    @abstractmethod
    async def close(self) -> None:
        """Closes connections and engine. Requests that were sent may still commit; closing twice is harmless."""

    async def request(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - also sent along: the other side stops waiting as well
        idempotency_key: str | None = None,
    ) -> Reply:
        """The request's `Reply`, whether it committed or not.

        Raises only when there is none: `TimeoutError` (it may still commit) or `ConnectionError`.
        """
        reply = await self.submit(operator, key, function, *args, timeout=timeout, idempotency_key=idempotency_key)
        return self._taken(reply)

    @overload
    async def call(
        self,
        operator: Operator[K, Any],
        key: K,
        function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]],
        *args: P.args,
        **named: P.kwargs,
    ) -> R: ...

    @overload
    async def call(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: Callable[..., Coroutine[Any, Any, R]],
        *args: Any,
        timeout: float,  # noqa: ASYNC109 - as in `request`
        idempotency_key: str | None = None,
    ) -> R: ...

    @overload
    async def call(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: Callable[..., Coroutine[Any, Any, R]],
        *args: Any,
        idempotency_key: str | None,
    ) -> R: ...

    @overload
    async def call(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: str,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `request`
        idempotency_key: str | None = None,
    ) -> Any: ...

    async def call(  # type: ignore[misc] # a function's parameter may be called as one of ours
        self,
        operator: Any,
        key: Any,
        function: Any,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `request`
        idempotency_key: str | None = None,
        **named: Any,
    ) -> Any:
        """The function's result, as its return annotation says if the function itself is given.

        Raises `TransactionAborted` if the function raised, `RequestRejected` if it could not be run at all, and what
        `request` raises.
        """
        reply = await self.request(
            operator,
            key,
            function,
            *positional(function, args, named),
            timeout=timeout,
            idempotency_key=idempotency_key,
        )
        return typed_result(function, reply.unwrap())

    async def publish(
        self,
        event: EventLike,
        value: Any,
        *,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `request`
        idempotency_key: str | None = None,
    ) -> Reply:
        """Publishes an event of the app that comes from outside, which an `Inlet` lets in: the event itself, or its
        name, and a value of its type. The `Reply` has the place at which it was emitted.

        Raises `BadArguments` for an event without an inlet and a value that does not fit, `TransactionAborted` if the
        value was refused by what the event starts, and what `request` raises.
        """
        reply = await self._publish(event, value, timeout, idempotency_key)
        reply.unwrap()
        return reply

    async def _publish(self, event: EventLike, value: Any, seconds: float, idempotency_key: str | None) -> Reply:
        inlet = inlet_of(self._known_app(), event)
        inlet.event.encode(value)
        once = idempotency_key if idempotency_key is not None else inlet.once_of(value)
        key = inlet.key_of(value, once or secrets.token_hex(8))
        return await self.request(inlet, key, PUBLISH, value, timeout=seconds, idempotency_key=once)

    def _known_app(self) -> App:
        """The app with its code; raises `BadArguments` if the client knows only its name."""
        raise BadArguments("this client knows only the app's name: publish with a client of the app itself")

    @overload
    def at(self, operator: EntityReference[Any, Any], **options: Any) -> EntityOfClient: ...

    @overload
    def at(self, operator: Operator[K, Any], key: K, **options: Any) -> EntityOfClient: ...

    @overload
    def at(self, operator: str, key: KeyLike, **options: Any) -> EntityOfClient: ...

    def at(self, operator: Any, key: Any = None, **options: Any) -> EntityOfClient:
        """An entity to call functions of: `client.at(account, "bob").call(credit, 5)`, or `client.at(account["bob"])`.

        `options` are `timeout` and `idempotency_key`, as in `call`; for a gateway a read's key counts for nothing.
        """
        return EntityOfClient(self, *entity_of(operator, key), options)

    async def _read_entity(self, operator: Any, key: Any, seconds: float, idempotency_key: str | None) -> Reply:
        return reply_of_read(
            await self.request(operator, key, READ_FUNCTION, timeout=seconds, idempotency_key=idempotency_key)
        )

    async def load(
        self,
        operator: OperatorLike,
        pairs: Pairs,
        *,
        replace: bool = False,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - of each chunk, not of the load
    ) -> LoadReport:
        """Puts the values of many (key, value) pairs as the states of one operator's entities; durable on return.

        Sent in chunks. Each chunk is a transaction, serializable with everything else; the load as a whole is not.
        `timeout` in seconds is each chunk's. An entity that exists already ends the load, unless `replace`. Where a
        key comes twice, the second one counts as existing; with `replace` one of the two stays.

        Raises `LoadFailed`, which says how many pairs are loaded for certain and which one failed.
        """
        check_timeout(timeout)
        return await load(self.load_target(operator, replace, timeout), pairs)

    async def load_rows(
        self,
        table: TableLike,
        pairs: Pairs,
        *,
        replace: bool = False,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - of each chunk, not of the load
    ) -> LoadReport:
        """Inserts many rows, (key of the entity, row) pairs, into one table; durable on return.

        `table`: what `operator.table(…)` gave, or its full name such as "cart/items". All rules of the table hold. As
        with `load`, each chunk is a transaction, and the load as a whole is not. A row that exists already ends the
        load, unless `replace`: then it is put in its place.

        Raises `LoadFailed`, which says how many rows are loaded for certain, and why one could not be.
        """
        check_timeout(timeout)
        return await load(self.load_target(RowsOf(table), replace, timeout), pairs)

    async def read_rows(
        self,
        table: TableLike,
        key: KeyLike,
        *,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `request`
    ) -> Reply:
        """The `Reply` of a transaction that reads all rows of one entity in a table, in order of their primary keys.

        There may be none. More than `Limits.rows_per_query_max` end it (`RowLimitExceeded`): then use a function that
        gives pages. Raises what `request` raises.
        """
        rows = RowsOf(table)
        return await self.request(owner_of(rows.name), key, READ_ROWS_FUNCTION, own_name(rows.name), timeout=timeout)

    async def dead_calls(
        self,
        operator: OperatorLike,
        *,
        key: KeyLike | None = None,
        after: str | None = None,
        first: int = DEAD_CALLS_DEFAULT,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - of each transaction that is asked
    ) -> DeadCallsPage:
        """A page of the calls for later that an operator's entities gave and that were given up, or those of the entity
        `key`. `first`: how many, up to 1,000; `after`: `next` of the page before.

        Raises `BadArguments`, and what `call` raises.
        """

        async def ask(name: str, asked: Any, arguments: tuple[Any, ...]) -> Any:
            return (await self.request(name, asked, DEAD_FUNCTION, *arguments, timeout=timeout)).unwrap()

        return await dead_page(ask, operator_name(operator), key, after, first)

    async def replay_dead_call(
        self,
        operator: OperatorLike,
        call_id: str,
        *,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `request`
    ) -> bool:
        """Has a dead call tried again, with all its attempts; False if it is not there any more.

        It has no name then. Raises `TransactionAborted` if the app does not have the function any more: the call stays.
        """
        giver, its_id = parts_of(call_id)
        return bool((await self.request(operator, giver, REPLAY_DEAD_FUNCTION, its_id, timeout=timeout)).unwrap())

    async def drop_dead_call(
        self,
        operator: OperatorLike,
        call_id: str,
        *,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `request`
    ) -> bool:
        """Removes a dead call for ever; False if it is not there any more. Raises as `replay_dead_call`."""
        giver, its_id = parts_of(call_id)
        return bool((await self.request(operator, giver, DROP_DEAD_FUNCTION, its_id, timeout=timeout)).unwrap())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class EntityOfClient:
    """An entity that a client calls: each call is a transaction."""

    __slots__ = ("_client", "_key", "_operator", "_options")

    def __init__(self, client: Client, operator: Any, key: Any, options: dict[str, Any]) -> None:
        self._client = client
        self._operator = operator
        self._key = key
        self._options = options

    @overload
    def call(
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], *args: P.args, **named: P.kwargs
    ) -> Coroutine[Any, Any, R]: ...

    @overload
    def call(self, function: str, *args: Any) -> Coroutine[Any, Any, Any]: ...

    def call(self, function: Any, *args: Any, **named: Any) -> Coroutine[Any, Any, Any]:
        """As `Client.call`, with the options that `at` was given."""
        given = positional(function, args, named)
        called: Coroutine[Any, Any, Any] = self._client.call(
            self._operator, self._key, function, *given, **self._options
        )
        return called

    @overload
    def request(
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, Any]], *args: P.args, **named: P.kwargs
    ) -> Awaitable[Reply]: ...

    @overload
    def request(self, function: str, *args: Any) -> Awaitable[Reply]: ...

    def request(self, function: Any, *args: Any, **named: Any) -> Awaitable[Reply]:
        """As `Client.request`."""
        given = positional(function, args, named)
        return self._client.request(self._operator, self._key, function, *given, **self._options)


class RemoteClient(Client):
    """A client of a deployment elsewhere: it has no state at hand, and asks for it."""

    async def entity(
        self,
        operator: OperatorLike,
        key: KeyLike,
        *,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `request`
    ) -> Any:
        """One entity's state as `read` gives it, in the form that results have; None if it has none.

        Raises `RequestRejected`, `TransactionAborted` if the stored state does not fit its type, and what `request`
        raises.
        """
        return state_in(await self.read(operator, key, timeout=timeout))

    async def rows(
        self,
        table: TableLike,
        key: KeyLike,
        *,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,  # noqa: ASYNC109 - as in `request`
    ) -> list[Any]:
        """One entity's rows in a table as `read_rows` gives them; rows of the row type if `table` is the table itself.

        Raises `RequestRejected`, `TransactionAborted`, and what `request` raises.
        """
        return typed_rows(table, (await self.read_rows(table, key, timeout=timeout)).unwrap())


def check_timeout(timeout: float) -> float:
    """`timeout` if it is a number of seconds in range, else `ValueError`."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= TIMEOUT_SECONDS_MAX:
        raise ValueError(
            f"timeout is a number of seconds above 0 and up to {TIMEOUT_SECONDS_MAX:g}, got {shown(timeout)}"
        )
    return timeout


def check_idempotency_key(idempotency_key: str | None) -> str:
    """The key as it goes into a request, empty for None; raises `RequestRejected` (`bad_request`)."""
    if idempotency_key is None:
        return ""
    if not isinstance(idempotency_key, str) or _VISIBLE.fullmatch(idempotency_key) is None:
        raise RequestRejected(
            "bad_request",
            f"an idempotency key is 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters without blanks, "
            f"got {shown(idempotency_key)}",
        )
    return idempotency_key


def operator_name(operator: OperatorLike) -> str:
    """The name of an operator given by itself or by name; raises `BadArguments`."""
    name = operator.name if isinstance(operator, AnyOperator) else operator
    if not isinstance(name, str):
        raise BadArguments(f"the operator is an Operator or its name, got {shown(operator)}")
    return name


def function_name(function: FunctionLike) -> str:
    """The name of a function given by itself or by name; raises `BadArguments`."""
    name = function if isinstance(function, str) else getattr(function, "__name__", None)
    if not isinstance(name, str):
        raise BadArguments(f"the function is a registered function or its name, got {shown(function)}")
    return name


def check_key(operator: OperatorLike, key: Any) -> KeyLike:
    """`key` if it can be one: of the operator's key type if that is known here; raises `BadKey`."""
    if isinstance(operator, AnyOperator):
        return operator.check_key(key)
    if type(key) is str or type(key) is int:
        return key
    parts = key if type(key) in (tuple, list) and key else (key,)
    if not all(type(part) in (str, int) for part in parts):
        raise BadKey(f"a key is a str, an int or a tuple of them, got {shown(key)} of type {type(key).__name__}")
    return tuple(key) if type(key) is list else key


def rejected(error: StyxError, request_id: str = "") -> Reply:
    """The reply to a request that was not sent because of `error`, whose `code` says what is wrong."""
    code = getattr(error, "code", "bad_request")
    message = error.message if isinstance(error, RequestRejected) else str(error)
    return Reply(None, ReplyError(type(error).__name__, message, code), 0, 0, 0, request_id)


def not_open(usage: str) -> ConfigurationError:
    """The error for a client used outside of its `with` block; `usage` is how that begins."""
    return ConfigurationError(f"this client is not open: use it inside of `{usage} ... as client:`")
