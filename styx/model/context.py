"""The context a function gets: its entity's state, calls to other functions, and deterministic time and randomness.

A context is also the invocation's record: what it called, in which order, and how often it used its state. Visibility
and commit are the executor's: reads and writes go to a *cell* that the executor gives, and a wait is an object that is
yielded to the executor. Paper sections 3 (programming model) and 7.5 (nondeterminism).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from random import Random
from types import GenericAlias
from typing import Any, Final
from uuid import UUID

import msgspec

from styx.errors import (
    CallDepthExceeded,
    CallLimitExceeded,
    ContextClosed,
    OperationLimitExceeded,
    UnsupportedValue,
    ValueTooLarge,
)
from styx.model import read_only
from styx.model.agenda import Retry
from styx.model.app_search import find
from styx.model.app_view import group
from styx.model.call_limit import call_limit_error
from styx.model.called_function import called_function, permitted
from styx.model.calls_to_all import calls_to_all
from styx.model.cell import Cell, Environment
from styx.model.emitting import emit
from styx.model.entity_handle import EntityOfContext, entity_of
from styx.model.external_call import call_external
from styx.model.function_log import FunctionLog
from styx.model.function_spec import FunctionSpec, MadeCall
from styx.model.giving import give
from styx.model.lifetime import value_written
from styx.model.limits import CALLS_PER_FUNCTION_MAX
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.model.reference_entries import delete_referred
from styx.model.rows import Rows
from styx.model.sequence import EntitySequence
from styx.model.signature import NO_ARGUMENTS
from styx.model.unique_id import unique_id
from styx.model.waiting import DONE, SyncCall, call, call_all, cancel
from styx.native.compiled import calls_more
from styx.native.interpreted import native
from styx.values.codec import encode_any, is_scalar, shown
from styx.values.reading import Reading

_encode = msgspec.msgpack.Encoder().encode
PATH_STEP_BYTES = 2
CLOSED: Final = -1
OPEN_MAX: Final = 1_000
"""Coroutines of one context that have not ended, as far as is known, before those that have are forgotten."""


def encode_params(function: FunctionSpec, params: Any) -> bytes:
    """The msgpack of a call's arguments; raises `UnsupportedValue`."""
    if type(params) is not tuple and type(params) is not list:
        raise UnsupportedValue(
            f"params of {function.operator}.{function.name} must be a tuple or list, got {shown(params)}: "
            f"write ({shown(params)},)"
        )
    if not params:
        return NO_ARGUMENTS
    for param in params:
        if not is_scalar(param):
            break
    else:
        try:
            return _encode(params)
        except Exception:  # noqa: BLE001 - raised again below, and told in a way that helps
            pass
    return encode_any(params, "params of", function.operator, function.name)


def has_ended(begun: Any) -> bool:
    """Whether a coroutine of a context has been awaited to its end, or closed."""
    return begun.ended if isinstance(begun, Reading) else begun.cr_frame is None


@native(subclassed=True, unchecked=True)
class Context(msgspec.Struct, eq=False):
    """One invocation of one function on one entity; valid until the function ends.

    All methods raise `ContextClosed` afterwards. An error raised by a method dooms the transaction even if the function
    catches it: a lost write must not look like a success. `_called` counts the functions that the transaction has
    called so far, this one's calls included, as far as the executor knows (large arguments and results as several);
    `_left` the operations on state that remain, `CLOSED` once the function has ended. `_begun` is the last coroutine
    that a method gave, `_open` those before it that had not ended then: mostly none, so there is no list.

    A Struct, because one is made for every call: its fields from `_chain_id` on are the executor's
    (`styx.worker.invocation`), so that none has to be set after it is made.
    """

    _key: Key
    _env: Environment
    _spec: FunctionSpec
    _cell: Cell
    _path: bytes
    _chain: bytes
    _left: int
    _chain_id: bytes = b""
    _params: bytes = b""
    _share: int = 0
    _called: int = 1
    _from_slot: int = 0
    _footprint: Any = None
    _calls: list[MadeCall] | None = None
    _doom: BaseException | None = None
    _begun: Any = None
    _open: list[Any] | None = None
    _externals: int = 0
    _emitted: int = 0
    _ids: int = 0
    _random: Random | None = None
    _caller: Any = None
    _coroutine: Coroutine[Any, Any, Any] | None = None
    _below: list[tuple[bytes, MadeCall]] | None = None
    _results: dict[int, bytes] | None = None
    _result: bytes | None = None

    @classmethod
    def __class_getitem__(cls, types: Any) -> Any:
        """`Context[str, Account]`: the type of `ctx.key` and of the state, for type checkers (`styx/typed.pyi`)."""
        return GenericAlias(cls, types)

    def __repr__(self) -> str:
        return f"<context of {self._entity()}>"

    # State -------------------------------------------------------------------------------------------------

    def get(self, default: Any = None) -> Coroutine[Any, Any, Any]:
        """A fresh copy of the entity's state, or `default` if it has none.

        This call reads the state, and its `await` gives it. A function that returns without the `await` ends the
        transaction (`ForgottenAwait`).
        """
        left = self._left
        if left <= 0:
            self._refuse()
        self._left = left - 1
        data = self._cell.read(self._chain)
        if data is not None:
            unpack = self._spec.unpack_state  # first: `x.f(…)` is quick only if `f` is a method of x's class
            try:
                default = unpack(data)
            except BaseException:  # noqa: BLE001 - the careful way reads what another version stored, or raises it again
                default = self._decoded(data)
        reading = Reading(default, "get", "")  # as `_given`, without a call between
        if self._begun is not None:
            self._keep_open()
        self._begun = reading
        return reading

    def _decoded(self, data: bytes) -> Any:
        try:
            decode = self._spec.decode_state
            return decode(data)
        except Exception as error:  # noqa: BLE001 - a state type's own code can run here
            raise self._doomed(
                UnsupportedValue(f"the stored state of {self._entity()} does not fit its state_type: {error}")
            ) from None
        except BaseException as error:  # noqa: BLE001 - as above
            raise self._doomed(error) from None

    def put(self, value: Any) -> Awaitable[None]:
        """Replaces the entity's state by a copy of `value`; raises `UnsupportedValue` or `ValueTooLarge`.

        The write has happened when this returns. The `await` does nothing; it makes functions read alike.
        """
        left = self._left
        if left <= 0:
            self._refuse()
        self._left = left - 1
        spec = self._spec
        pack = spec.pack_state
        try:
            data = pack(value)
        except BaseException:  # noqa: BLE001 - the careful way raises it again, and says what does not fit
            data = self._encoded(value)
        if len(data) > self._env.limits.value_bytes_max:
            raise self._too_large(f"the state of {self._entity()}", data)
        self._cell.write(self._chain, data)
        if spec.ttl_us:
            value_written(self)
        return DONE

    def _encoded(self, value: Any) -> bytes:
        if self._spec.read_only:
            raise self._violation("put")
        try:
            encode = self._spec.encode_state
            return encode(value)
        except UnsupportedValue as error:
            raise self._doomed(UnsupportedValue(f"{self._entity()}{error.path}: {error}")) from None
        except BaseException as error:  # noqa: BLE001 - a state type's own code can run here: it can raise anything
            raise self._doomed(error) from None

    def delete(self) -> Awaitable[None]:
        """Removes the entity's state; `get` gives its default afterwards. As with `put`, it has happened on return."""
        left = self._left
        if left <= 0:
            self._refuse()
        self._left = left - 1
        if self._spec.deletes_alone:
            self._cell.write(self._chain, None)
        else:
            delete_referred(self)
        return DONE

    def sequence(self, name: str) -> EntitySequence:
        """The entity's sequence `name` (1 to 128 characters): `await ….next()` gives numbers without gaps, from 1."""
        return EntitySequence(self, name)

    def rows(self, table: Any) -> Rows:
        """The entity's rows in a table of its operator, or what it keeps of an event that has `rows=`."""
        return Rows(self, table, self._spec.operator, self._key)

    @property
    def _made(self) -> Sequence[MadeCall]:
        """The calls so far; a caller must not keep the sequence."""
        return () if self._calls is None else self._calls

    @property
    def state(self) -> Context:
        """`ctx.state.get/put/delete` are the same as `ctx.get/put/delete`."""
        return self

    # Calls -------------------------------------------------------------------------------------------------

    def call_async(self, operator: Operator | str, function_name: Any, key: Any, params: Any = ()) -> None:
        """Calls a function in the same transaction without waiting for it; it runs after this chain has returned."""
        call = self._made_call(False, operator, function_name, key, params)
        if self._calls is None:
            self._calls = [call]  # not before: most functions make no call
        else:
            self._calls.append(call)

    def call(
        self, operator: Operator | str, function_name: Any, key: Any, params: Any = ()
    ) -> Coroutine[Any, Any, Any]:
        """Calls a function in the same transaction and gives its result; its exception ends the transaction.

        The `await` makes the call. As with `get`, a function that returns without it ends the transaction.
        """
        return self._begin(call(self, operator, function_name, key, params))

    def call_all(
        self, operator: Operator | str, function_name: Any, params: Any = ()
    ) -> Coroutine[Any, Any, list[Any]]:
        """Calls a partition function on every partition of the operator, in the same transaction; gives their results,
        by the partition's number.

        The calls are made together, and each counts as one. The first exception ends the transaction: that of the
        partition with the lowest number.
        """
        return self._begin(call_all(self, operator, function_name, params))

    def call_all_async(self, operator: Operator | str, function_name: Any, params: Any = ()) -> None:
        """As `call_all`, without waiting; the calls run after this chain has returned."""
        calls = calls_to_all(self, False, operator, function_name, params)
        if self._calls is None:
            self._calls = calls
        else:
            self._calls += calls

    def find(self, table: Any, index: str, *where: Any, **given: Any) -> Coroutine[Any, Any, Any]:
        """Rows by an app-wide index, `[(entity's key, primary key), …]`: `ctx.find(users, "by_email", email="x")`."""
        return self._begin(find(self, table, index, where, given))

    def group(self, view: Any, *values: Any) -> Coroutine[Any, Any, Any]:
        """The group with these values of a view with `scope="app"`; zeros if it has no rows. It is a call."""
        return self._begin(group(self, view, values))

    def _given(self, value: Any, method: str, table: str) -> Coroutine[Any, Any, Any]:
        """The awaitable of what a method has read or done."""
        reading = Reading(value, method, table)
        if self._begun is not None:
            self._keep_open()
        self._begun = reading
        return reading

    def _begin(self, begun: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        if self._begun is not None:
            self._keep_open()
        self._begun = begun
        return begun

    def _keep_open(self) -> None:
        """Notes the last coroutine if it has not ended, because another one begins."""
        if not has_ended(self._begun):
            if self._open is None:
                self._open = []
            elif len(self._open) >= OPEN_MAX:
                self._open = [each for each in self._open if not has_ended(each)]
            self._open.append(self._begun)

    def _sync_call(self, operator: Any, function_name: Any, key: Any, params: Any) -> SyncCall:
        made = self._made_call(True, operator, function_name, key, params)
        calls = [] if self._calls is None else self._calls
        if self._doom is None:
            # A doomed function ends here, before the call: whatever the callee would do comes after its end.
            calls.append(made)
            self._calls = calls
        return SyncCall(self, len(calls) - 1, made)

    def _made_call(self, synchronous: bool, operator: Any, function_name: Any, key: Any, params: Any) -> MadeCall:
        if self._left < 0:
            self._refuse()
        env = self._env
        limits = env.limits
        try:
            if self._calls is not None and len(self._calls) >= CALLS_PER_FUNCTION_MAX:
                raise CallLimitExceeded(f"{self._where()} made more than {CALLS_PER_FUNCTION_MAX} calls")
            if len(self._path) >= limits.call_depth_max * PATH_STEP_BYTES:
                raise CallDepthExceeded(
                    f"{self._where()} was called through {limits.call_depth_max} others: an endless recursion?"
                )
            try:
                function = env.app.resolved[operator, function_name]
            except (KeyError, TypeError):
                function = called_function(env.app, operator, function_name, key)
            if self._spec.bounded:
                function = permitted(self, function)
            keys = function.keys
            checked = keys.check(key)
            slot = keys.slot_of(checked, env.n_slots)
            data = encode_params(function, params)
            if len(data) > limits.value_bytes_max:
                raise self._too_large(f"params of {function.operator}.{function.name}", data)
            called = self._called + 1 + calls_more(data, limits)
            if called > limits.invocations_max:
                # Last: while branches run at once the sum is unknown, and a call that is refused anyway is not in it.
                raise call_limit_error(limits, data)
        except BaseException as error:  # noqa: BLE001 - a key's and an argument's own code can run here
            raise self._doomed(error) from None
        self._called = called
        return MadeCall(synchronous, slot, function, checked, data)

    def at(self, operator: Any, key: Any = None) -> EntityOfContext:
        """Another entity: `await ctx.at(account, "bob").call(credit, 5)` is a `call`, and so is `call_async`.

        `ctx.at(account["bob"])` is the same one. Arguments may be given by name.
        """
        return EntityOfContext(self, *entity_of(operator, key))

    def call_external(self, function: Callable[..., Any], *args: Any) -> Coroutine[Any, Any, Any]:
        """Runs `function(*args)`, which may have external effects, once per success; replays use the logged result.

        `function` may be a plain function (run on a thread) or an `async def`. If it has a parameter named
        `idempotency_key`, it gets the logged key there, to pass on to the external service. The transaction leaves its
        epoch while it waits, and runs again with the result. State that it read before may have changed by then: a call
        whose arguments changed is another call. An exception is logged as well, and aborts the transaction; for another
        attempt send another request. The result must be awaited, as with `call`.
        """
        return self._begin(call_external(self, function, args))

    # Calls for later ---------------------------------------------------------------------------------------

    def after_commit(
        self, operator: Operator | str, function_name: Any, key: Any, params: Any = (), *, retry: Retry | None = None
    ) -> None:
        """Calls a function in a transaction of its own, once, soon after this one has committed.

        The calls that one entity gives to another are made in the order in which they were given, unless one aborts.
        An abort is retried as `retry` says (5 attempts in all); then the call is kept among the dead ones.
        """
        give(self, operator, function_name, key, params, retry)

    def after(
        self,
        delay: timedelta,
        operator: Operator | str,
        function_name: Any,
        key: Any,
        params: Any = (),
        *,
        name: str | None = None,
        retry: Retry | None = None,
    ) -> None:
        """As `after_commit`, not before `ctx.now() + delay` (0 to 36,500 days). A call with a `name` takes the place
        of the one that this entity has given under it and that has not been made; `cancel` withdraws it.
        """
        give(self, operator, function_name, key, params, retry, delay, name)

    def cancel(self, name: str) -> Coroutine[Any, Any, bool]:
        """Withdraws the call that this entity has given under `name`; gives False if none waits."""
        return self._begin(cancel(self, name))

    def emit(self, event: Any, value: Any, *, key: Any = None) -> None:
        """Emits an event that the app declares, which leaves when the transaction commits: in the serial order of this
        entity's events, or of those at `key`. Raises `BadArguments`, `UnsupportedValue` or `ValueTooLarge`.
        """
        emit(self, event, value, key)

    # Deterministic facts -----------------------------------------------------------------------------------

    def now(self) -> datetime:
        """The time at which the request entered the log, in UTC, the same in every execution."""
        return self._env.now()

    def random(self) -> Random:
        """This invocation's generator, seeded by transaction id and call path; the same object at every call."""
        if self._random is None:
            self._random = Random(self._seed(b"random"))  # noqa: S311 - deterministic on purpose
        return self._random

    def uuid(self) -> UUID:
        """The invocation's next version-4 shaped UUID, derived from transaction id and call path."""
        self._ids += 1
        return UUID(bytes=self._seed(b"uuid%d" % self._ids), version=4)

    def unique_id(self) -> str:
        """The next id: usually 26 characters, given nowhere else in the deployment, sorted by TID. It is no secret."""
        if self._left < 0:
            self._refuse()
        self._ids += 1
        return unique_id(self._env.tid, self._path, self._ids - 1)

    def _seed(self, purpose: bytes) -> bytes:
        return blake2b(self._path, digest_size=16, salt=self._env.tid.to_bytes(8, "big"), person=purpose[:16]).digest()

    @property
    def log(self) -> FunctionLog:
        """`ctx.log("paid", amount=5)`: a line that is written when the transaction ends, if this run of it counts."""
        if self._left < 0:
            self._refuse()
        return FunctionLog(self)

    @property
    def transaction_id(self) -> int:
        """The transaction's TID."""
        return self._env.tid

    @property
    def key(self) -> Any:
        """The entity's key, of the operator's key type; `Any`, so that a type checker allows to unpack a tuple."""
        return self._key

    @property
    def operator(self) -> str:
        """Name of the entity's operator."""
        return self._spec.operator

    @property
    def partition(self) -> int:
        """Index of the entity's partition within its operator."""
        return self._spec.keys.partition_of(self._key, self._env.n_slots)

    # Refusals ----------------------------------------------------------------------------------------------

    def _entity(self) -> str:
        return f"{self._spec.operator}[{shown(self._key)}]"

    def _where(self) -> str:
        return f"{self._spec.operator}.{self._spec.name} on {shown(self._key)}"

    def _doomed(self, error: BaseException) -> BaseException:
        if self._doom is None:
            self._doom = error
        return error

    def _violation(self, method: str) -> BaseException:
        return self._doomed(read_only.used(self._where(), self._spec.name, method))

    def _end_begun(self) -> None:
        """Closes the coroutines that were begun and not awaited, so that Python does not warn of them as well."""
        for each in filter(None, [*(self._open or ()), self._begun]):
            each.close()

    def _too_large(self, what: str, data: bytes) -> BaseException:
        limit = self._env.limits.value_bytes_max
        return self._doomed(
            ValueTooLarge(f"{what} has {len(data)} bytes; the limit is {limit}: split it over several entities")
        )

    def _close(self) -> None:
        """Refuses every use from here on."""
        self._left = CLOSED

    def _refuse(self) -> None:
        if self._left < 0:
            raise ContextClosed(
                f"the context of {self._where()} was used after the function had ended; "
                "do not keep it, and await everything you start"
            )
        raise self._doomed(
            OperationLimitExceeded(
                f"{self._where()} used its state more than {self._env.limits.operations_max} times: an endless loop?"
            )
        )
