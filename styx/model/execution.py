"""Decisions that every executor of functions must make alike, to the letter: how a request is resolved, how a function
starts, how its result is encoded, and which error a transaction ends with.

The engine and the serial replay checker share this file, so that replies can be compared byte by byte. It holds
decisions about one invocation only. Paper section 3.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Iterable
from types import CodeType, CoroutineType, FrameType, GeneratorType, TracebackType
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from styx.errors import (
    BadArguments,
    CallLimitExceeded,
    ForgottenAwait,
    InTransactionError,
    NondeterministicFunction,
    RequestSetAside,
    UnsupportedValue,
    ValueTooLarge,
    code_of,
    describe,
)
from styx.messages import Request
from styx.model.app import App
from styx.model.bulk_load import load_function
from styx.model.context import Context, has_ended
from styx.model.dead_access import dead_function, partition_of_dead
from styx.model.entity_edit import edit_function
from styx.model.entity_list import partition_of_list
from styx.model.entity_read import read_function
from styx.model.function_spec import (
    DEAD_FUNCTION,
    LIST_FUNCTION,
    LOAD_FUNCTION,
    LOAD_ROWS_FUNCTION,
    OF_DEAD_CALLS,
    OF_EDITS,
    READ_FUNCTION,
    READ_ROWS_FUNCTION,
    FunctionSpec,
)
from styx.model.internal_operator import is_internal
from styx.model.limits import Limits
from styx.model.partitioning import Key
from styx.model.row_access import load_rows_function, rows_function
from styx.model.waiting import ExternalCall, SyncCall, forgotten
from styx.native.compiled import TransactionLimits
from styx.native.interpreted import native
from styx.values.codec import encode_any, is_scalar

T = TypeVar("T")
A = TypeVar("A")
ErrorTriple = tuple[str, str, str]
"""(code, type, message) as a reply record carries it."""

_ON_PARTITIONS: Final = (DEAD_FUNCTION, LIST_FUNCTION)
SET_ASIDE: Final = "\0set aside"
"""The function of a request that an operator has set aside; no operator can have it."""
CLOSE_ATTEMPTS_MAX: Final = 16
"""Attempts to close a coroutine that catches GeneratorExit and awaits again."""
FRAMES_MAX: Final = 1_000
"""Frames looked at to find the line of a foreign await."""

_STANDARD_LIBRARY = inspect.__file__.removesuffix("inspect.py")
_CONTEXT_MODULES = ("styx.model.context", "styx.model.waiting")
_CLIENTS = "styx.client."
_INSTALLED = ("site-packages", "dist-packages")
_encode = msgspec.msgpack.Encoder().encode
_AWAITED_NONE = ("object NoneType can't be used in 'await' expression", "'NoneType' object can't be awaited")
_NO_TASK = ("cannot determine the parent task", "should be used inside a task")
_NO_LOOP = ("no running event loop", "no current event loop")


class Outcome(NamedTuple):
    """How a transaction ended: the root's encoded result, or the error of its reply. Exactly one is None."""

    result: bytes | None
    error: ErrorTriple | None


@native
class Target(msgspec.Struct, eq=False, frozen=True):
    """A request's root, resolved against the app. `slot` is the index of the slot that owns the key."""

    function: FunctionSpec
    key: Key
    slot: int


# Starting --------------------------------------------------------------------------------------------------


def resolve_request(
    app: App,
    request: Request,
    limits: Limits,
    n_slots: int,
    slot_of: Callable[[FunctionSpec, Key], int] | None = None,
) -> Target:
    """The function and entity that `request` names.

    Raises `UnknownOperator`, `UnknownFunction`, `BadKey` or `ValueTooLarge`; `rejection` makes the reply.
    Arguments are left encoded: each execution decodes its own copy, in `start`. `slot_of` runs the app's own
    `partition_key`, if it is given.
    """
    name = request.function
    if name == SET_ASIDE:
        raise RequestSetAside(
            f"the engine failed at this request of {request.operator}, and an operator has set it aside: it was not run"
        )
    if name in _ON_PARTITIONS and is_internal(request.operator):
        found = partition_of_dead if name == DEAD_FUNCTION else partition_of_list
        function, key, operator = found(app, request.operator, request.key)
        return Target(function, key, operator.partitions.numbers.slot_of(key, n_slots))
    operator = app.operator(request.operator)
    if name == LOAD_FUNCTION:
        function = load_function(operator)
    elif name == READ_FUNCTION:
        function = read_function(operator)
    elif name == READ_ROWS_FUNCTION:
        function = rows_function(operator)
    elif name == LOAD_ROWS_FUNCTION:
        function = load_rows_function(operator)
    elif name in OF_DEAD_CALLS:
        function = dead_function(operator, name)
    elif name in OF_EDITS:
        function = edit_function(operator, name)
    else:
        function = operator.function(name)
        if app.starts:
            function = app.starts.get(function, function)
    key = operator.check_key(request.key)
    if slot_of is None or operator.key_space.partition_key is None:
        slot = operator.slot_of(key, n_slots)
    else:
        slot = slot_of(function, key)
    # A load's pairs are values by themselves; together they are bounded by the size of a request.
    if len(request.params) > limits.value_bytes_max and not function.client_data:
        raise _too_large(
            f"params of {operator.name}.{function.name}", request.params, limits.value_bytes_max, "send less"
        )
    return Target(function, key, slot)


def start(function: FunctionSpec, context: Context, params: bytes) -> Coroutine[Any, Any, Any]:
    """The invocation's coroutine, not yet run, with its own copy of the arguments; raises `BadArguments`."""
    try:
        func = function.func  # as a variable: `function.func(…)` is taken for a method, and looked up the slow way
        decode = function.usual.get(params[0]) if params else None
        if decode is not None:
            try:
                arguments = decode(params)
            except Exception:  # noqa: BLE001 - `function.decode` below raises it anew, and says what does not fit
                pass
            else:
                return func(*((context,) + arguments))  # noqa: RUF005 - a list less than with a second star
        positional, named = function.decode(params)
        return func(context, *positional, **named) if named else func(context, *positional)
    except InTransactionError:
        raise
    except BaseException as error:  # noqa: BLE001 - a Struct's __post_init__ is user code: it can raise anything
        kind, message = describe(error)
        raise BadArguments(
            f"{function.operator}.{function.name}: the arguments do not fit: {kind}: {message}"
        ) from None


def external_limit_error(limits: TransactionLimits) -> CallLimitExceeded:
    """The error of a transaction that would make one more external call than `Limits.external_calls_max`."""
    return CallLimitExceeded(
        f"the transaction made {limits.external_calls_max} outside calls (Limits.external_calls_max), those of "
        "earlier attempts included: make their arguments depend on less that others change"
    )


def with_own_generators(run: Callable[[A], T], argument: A) -> T:
    """`run(argument)`, which drives functions of the app; raises what `run` raises.

    An asynchronous generator that such a function drops ends at once, inside the function. An event loop's hooks would
    run the rest of it (a `finally` behind `async for … break`) later, as a task of its own: outside of any transaction,
    unseen by the watchdog, and never in a replay.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return run(argument)
    finally:
        sys.set_asyncgen_hooks(*hooks)


# Ending ----------------------------------------------------------------------------------------------------


def encode_result(function: FunctionSpec, value: Any, limits: TransactionLimits) -> bytes:
    """The msgpack of a root's or synchronous callee's result; what asynchronous calls return is not encoded.

    Raises `UnsupportedValue` or `ValueTooLarge`, which count as raised by the function itself.
    """
    try:
        data = _encode(value) if is_scalar(value) else _encoded(function, value)
    except BaseException:  # noqa: BLE001 - the careful way raises it again, and says what does not fit
        data = _encoded(function, value)
    if len(data) > limits.value_bytes_max:
        raise _too_large(
            f"the result of {function.operator}.{function.name}", data, limits.value_bytes_max, "return less"
        )
    return data


def _encoded(function: FunctionSpec, value: Any) -> bytes:
    try:
        return encode_any(value, "the result of", function.operator, function.name)
    except InTransactionError:
        raise
    except BaseException as error:  # noqa: BLE001 - an object's own code can run here
        kind, message = describe(error)
        what = f"the result of {function.operator}.{function.name}"
        raise UnsupportedValue(f"{what} cannot be encoded: {kind}: {message}") from None


def failure_of(context: Context, raised: BaseException) -> BaseException:
    """The error of an invocation that raised: an error of its context that it swallowed comes before `raised`."""
    if context._begun is not None:
        context._end_begun()  # the failure is reported; Python is not to warn of a missing `await` as well
    return context._doom if context._doom is not None else raised


def unfinished(context: Context) -> BaseException | None:
    """The error of an invocation that returned, if there is one: an error that it swallowed, or a missing `await`."""
    if context._doom is not None:
        return context._doom
    begun = context._begun
    if begun is None:
        return None
    if context._open is None and has_ended(begun):
        context._begun = None  # nearly always; it is not kept as long as the context
        return None
    return _forgotten_await(context)


def _forgotten_await(context: Context) -> ForgottenAwait | None:
    """The error of a function that returned without awaiting all that it began; closes the coroutines."""
    left = [each for each in [*(context._open or ()), context._begun] if not has_ended(each)]
    if not left:
        return None
    error = ForgottenAwait(f"{context._where()} {forgotten(left[0])}")
    context._end_begun()
    return error


def aborted(error: BaseException) -> ErrorTriple:
    """The reply's error for anything that a function raised, engine errors and `SystemExit` included."""
    return ("aborted", *describe(_foreign(error) or _explained(error) or error))


def rejection(error: InTransactionError) -> ErrorTriple:
    """The reply's error for a request that `resolve_request` or its root's `start` refused with `error`."""
    return (code_of(error), *describe(error))


def close_quietly(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Ends a coroutine, whatever its `finally` blocks raise. Close its context first: then it is harmless."""
    for _ in range(CLOSE_ATTEMPTS_MAX):
        try:
            coroutine.close()
        except BaseException:  # noqa: BLE001 - raised in a `finally`, or still suspended: close again
            continue
        return


def _too_large(what: str, data: bytes, limit: int, advice: str) -> ValueTooLarge:
    return ValueTooLarge(f"{what} has {len(data)} bytes; the limit is {limit}: {advice}")


# Foreign awaits --------------------------------------------------------------------------------------------


def foreign_await_error(coroutine: Coroutine[Any, Any, Any], yielded: Any) -> NondeterministicFunction:
    """The error for a coroutine that yielded what its own context did not; names its line and what it awaits.

    A `SyncCall` or `ExternalCall` is foreign as well if its `context` is another invocation's.
    """
    kind = type(yielded)  # `isinstance` asks for `__class__`, which is the foreign object's code, and no guard is here
    if yielded is None:
        what = "a bare yield"
    elif kind is SyncCall or kind is ExternalCall:
        what = "the context of another invocation"
    else:
        what = _name_of(kind)
    return _nondeterministic(_suspended_lines(coroutine), what)


def _name_of(kind: type) -> str:
    try:
        return f"{kind.__module__}.{kind.__qualname__}"
    except BaseException:  # noqa: BLE001 - a metaclass is the app's code: it can raise anything
        return "an unnamed object"


def _foreign(error: BaseException) -> NondeterministicFunction | None:
    """`asyncio` refuses to wait where no loop or task runs: the same mistake as where one runs, so the same error."""
    if type(error) is not RuntimeError or len(error.args) != 1 or type(error.args[0]) is not str:
        return None
    what = "an event loop" if error.args[0] in _NO_LOOP else "a task" if error.args[0].endswith(_NO_TASK) else ""
    lines = list(_traceback_lines(error.__traceback__)) if what else []
    return _nondeterministic(lines, what) if lines else None


def _explained(error: BaseException) -> BaseException | None:
    """The error for a wrong or missing `await`: Python's own text and the correction."""
    if type(error) not in (RuntimeError, TypeError, AttributeError):
        return None
    if len(error.args) != 1 or type(error.args[0]) is not str:
        return None
    if error.args[0] == "cannot reuse already awaited coroutine":
        return RuntimeError(f"{error.args[0]}: await each ctx.get(), ctx.call(…) and function once")
    if error.args[0] in _AWAITED_NONE:
        return TypeError(
            "None was awaited; ctx.call_async has no result to await: drop the `await`, or write `await ctx.call(…)`"
        )
    text: str = error.args[0]
    if type(error) is not RuntimeError and ("'coroutine'" in text or "got coroutine" in text):
        told = f"{text}: an `await` is missing, as in `await ctx.get()`"
        return AttributeError(told) if type(error) is AttributeError else TypeError(told)
    return None


def _suspended_lines(coroutine: Any) -> list[tuple[FrameType, int]]:
    lines: list[tuple[FrameType, int]] = []
    at = coroutine
    while len(lines) < FRAMES_MAX:
        if isinstance(at, CoroutineType):
            frame, below = at.cr_frame, at.cr_await
        elif isinstance(at, GeneratorType):
            frame, below = at.gi_frame, at.gi_yieldfrom
        else:
            break
        if frame is None:
            break
        lines.append((frame, frame.f_lineno))
        at = below
    return lines


def _traceback_lines(traceback: TracebackType | None) -> Iterable[tuple[FrameType, int]]:
    count = 0
    while traceback is not None and count < FRAMES_MAX:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
        count += 1


def _nondeterministic(lines: list[tuple[FrameType, int]], what: str) -> NondeterministicFunction:
    """Names the deepest line outside the standard library and our clients, and the function of those that it awaits."""
    lines = [line for line in lines if line[0].f_globals.get("__name__") not in _CONTEXT_MODULES]
    depth = max((i for i, (frame, _) in enumerate(lines) if not _is_library(frame)), default=0)
    advice = "use ctx.call_external for outside effects and ctx.now() for time"
    if depth + 1 < len(lines):
        below = lines[depth + 1][0]
        what = f"{below.f_globals.get('__name__', '?')}.{below.f_code.co_qualname}"
        if what.startswith(_CLIENTS):
            advice = (
                "to call a function use ctx.call. The request has been sent, and stays though this transaction aborts"
            )
    where = "the function"
    if lines:
        frame, line = lines[depth]
        # The file's name without its directory: a reply must not depend on where the app is installed.
        where = f"{frame.f_code.co_filename.rpartition('/')[2]}:{line} in {frame.f_code.co_qualname}"
    error = NondeterministicFunction(
        f"{where} awaits {what}; a function may await only its context's methods, because time, I/O and "
        f"tasks differ between executions: {advice}"
    )
    error.lines = tuple((frame.f_code.co_filename, line, frame.f_code.co_qualname) for frame, line in lines)
    return error


def _is_library(frame: FrameType) -> bool:
    return _is_standard(frame.f_code) or str(frame.f_globals.get("__name__", "")).startswith(_CLIENTS)


def _is_standard(code: CodeType) -> bool:
    file = code.co_filename
    if file.startswith("<frozen"):
        return True
    return file.startswith(_STANDARD_LIBRARY) and not any(part in file for part in _INSTALLED)
