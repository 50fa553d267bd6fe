"""The awaitables of a function: the coroutines of its context's methods, and the objects that they yield to the
executor.

They stand apart from the context so that they stay the interpreter's own coroutines when the context is compiled. A
wrong use of them then gives the same error in both forms.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Generator
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from styx.model.calls_to_all import calls_to_all
from styx.model.function_spec import MadeCall
from styx.model.giving import withdraw
from styx.values.codec import shown
from styx.values.reading import Reading

if TYPE_CHECKING:
    from styx.model.context import Context
    from styx.model.sequence import EntitySequence

FIND: Final = "Context.find"
"""What Python calls the coroutine of `ctx.find` in its messages."""
GROUP: Final = "Context.group"
"""Likewise that of `ctx.group`."""


ALONE: Final = -1
"""In place of the last number: the call was made by itself."""


class SyncCall(NamedTuple):
    """Yielded to the executor: run call `number` of this context and resume me with its encoded result.

    `last`: the calls from this one to number `last` have been made together. Whoever knows that their order does not
    matter may run them at once, and resume me with the list of all their results.
    """

    context: Context
    number: int
    call: MadeCall
    last: int = ALONE


class ExternalCall(NamedTuple):
    """Yielded to the executor: resume me with this external function's encoded result."""

    context: Context
    key: bytes
    function: Callable[..., Any]
    args: tuple[Any, ...]


@types.coroutine
def suspend(request: SyncCall | ExternalCall) -> Generator[SyncCall | ExternalCall, Any, Any]:
    return (yield request)


@types.coroutine
def _nothing() -> Generator[Any, Any, None]:
    return
    yield


async def call(context: Context, operator: Any, function: Any, key: Any, params: Any) -> Any:
    """The coroutine of `Context.call`."""
    request = context._sync_call(operator, function, key, params)
    data = await suspend(request)
    return request.call.function.decode_result(data)


async def call_all(context: Context, operator: Any, function: Any, params: Any) -> list[Any]:
    """The coroutine of `Context.call_all`."""
    requests = _made_together(context, calls_to_all(context, True, operator, function, params))
    decode, results = requests[0].call.function.decode_result, list[Any]()
    for request in requests:
        given = await suspend(request)
        if type(given) is list:
            return [decode(data) for data in given]
        results.append(decode(given))
    return results


def _made_together(context: Context, made: list[MadeCall]) -> list[SyncCall]:
    """The requests of calls that are made together; they are not made by a doomed function, as no call is."""
    calls = [] if context._calls is None else context._calls
    first = len(calls)
    if context._doom is None:
        calls += made
        context._calls = calls
    return [SyncCall(context, number, call, first + len(made) - 1) for number, call in enumerate(made, first)]


async def next_number(sequence: EntitySequence) -> int:
    """The coroutine of `EntitySequence.next`."""
    return sequence._take()


async def last_number(sequence: EntitySequence) -> int:
    """The coroutine of `EntitySequence.last`."""
    return sequence._taken()


async def cancel(context: Context, name: Any) -> bool:
    """The coroutine of `Context.cancel`."""
    return withdraw(context, name)


# What Python calls a coroutine in its messages.
for _coroutine, _called in (
    (call, "Context.call"),
    (call_all, "Context.call_all"),
    (cancel, "Context.cancel"),
    (next_number, "EntitySequence.next"),
    (last_number, "EntitySequence.last"),
):
    _coroutine.__qualname__ = _called


def forgotten(coroutine: CoroutineType[Any, Any, Any] | Reading) -> str:
    """The error text for a function that returned without awaiting `coroutine` to its end, and the correction."""
    if isinstance(coroutine, Reading):
        if not coroutine.table:
            return "did not await its ctx.get: write `await ctx.get()`"
        method = f"ctx.rows({coroutine.table}).{coroutine.method}"
        return f"did not await {method}: write `await {method}(…)`"
    frame = coroutine.cr_frame
    assert frame is not None, "it has ended"
    begun = frame.f_locals
    if coroutine.cr_code is call.__code__:
        operator = getattr(begun["operator"], "name", begun["operator"])
        called = f"{_name(operator)}.{_name(begun['function'])}"
        return f"made a call to {called} and did not await it: write `await ctx.call(…)`, or ctx.call_async"
    if coroutine.cr_code is call_all.__code__:
        operator = getattr(begun["operator"], "name", begun["operator"])
        called = f"{_name(operator)}.{_name(begun['function'])}"
        return f"made a call to all partitions, {called}, and did not await it: write `await ctx.call_all(…)`"
    if coroutine.cr_code is cancel.__code__:
        return f"did not await its ctx.cancel({shown(begun['name'])}): write `await ctx.cancel(…)`"
    if coroutine.__qualname__ == FIND:
        return f"did not await its ctx.find by index {shown(begun['index'])}: write `await ctx.find(…)`"
    if coroutine.__qualname__ == GROUP:
        return f"did not await its ctx.group of {begun['table']}: write `await ctx.group(…)`"
    if coroutine.cr_code in (next_number.__code__, last_number.__code__):
        asked = "next" if coroutine.cr_code is next_number.__code__ else "last"
        return f"did not await {asked}() of its {begun['sequence']}: write `await ctx.sequence(…).{asked}()`"
    called = function_text(begun["function"])
    return f"made an outside call to {called} and did not await it: write `await ctx.call_external(…)`"


def function_text(function: Any) -> str:
    """An external function's name, with its module's."""
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', repr(type(function)))}"


def _name(wanted: Any) -> str:
    name = wanted if isinstance(wanted, str) else getattr(wanted, "__name__", None)
    return name if isinstance(name, str) else shown(wanted)


DONE: Final = _nothing()
"""The awaitable of `put` and `delete`. A generator that has ended gives None to each `await`, at once and without an
object for each; any other awaitable costs several times as much.
"""
next(DONE, None)
