"""The engine's own error texts, word for word: a log has them as outcomes of transactions.

A recovery runs recorded epochs again and compares. A release that words one of these differently reports a difference
for each such transaction in the log, and needs another `VERSION`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from decimal import Decimal
from typing import Any, Final

import pytest

import styx
from styx import App, Context, Limits, Operator

pytestmark = pytest.mark.anyio
Function = Callable[[Context[str, Any]], Coroutine[Any, Any, Any]]
NO_TYPE: Final = (
    "cannot be stored without a state_type: declare Operator(..., state_type=...) with a type that msgspec can convert"
)
LIMITS: Final = Limits(external_calls_max=1, value_bytes_max=1000, invocations_max=10)
thing: Operator[str, Any] = Operator("thing")
LINES_BEFORE_SLEEP: Final = 7
"""From the decorator of `sleeps`."""
CASES: list[tuple[str, str, str]] = []


def ends(type: str, text: str) -> Callable[[Function], Function]:
    def case(function: Function) -> Function:
        CASES.append((function.__name__, type, text))
        return thing.register(function)

    return case


@thing.register
async def twice(ctx: Context[str, Any], number: int = 0) -> int:
    return 2 * number


@ends(
    "NondeterministicFunction",
    "test_recorded_errors.py:{line} in sleeps awaits asyncio.tasks.sleep; a function may await only its context's "
    "methods, because time, I/O and tasks differ between executions: use ctx.call_external for outside effects and "
    "ctx.now() for time",
)
async def sleeps(ctx: Context[str, Any]) -> None:
    await asyncio.sleep(0.001)


@ends(
    "ForgottenAwait",
    "thing.forgets_external on 'k' made an outside call to builtins.len and did not await it: "
    "write `await ctx.call_external(…)`",
)
async def forgets_external(ctx: Context[str, Any]) -> None:
    ctx.call_external(len, "ab")  # type: ignore[unused-coroutine]


@ends(
    "ForgottenAwait",
    "thing.forgets_call on 'k' made a call to thing.twice and did not await it: "
    "write `await ctx.call(…)`, or ctx.call_async",
)
async def forgets_call(ctx: Context[str, Any]) -> None:
    ctx.call(thing, "twice", "z")  # type: ignore[unused-coroutine]


@ends("ForgottenAwait", "thing.forgets_get on 'k' did not await its ctx.get: write `await ctx.get()`")
async def forgets_get(ctx: Context[str, Any]) -> None:
    ctx.get()  # type: ignore[unused-coroutine]


@ends(
    "TypeError",
    "None was awaited; ctx.call_async has no result to await: drop the `await`, or write `await ctx.call(…)`",
)
async def awaits_call_async(ctx: Context[str, Any]) -> None:
    await ctx.call_async(thing, "twice", "z")  # type: ignore[misc]


@ends(
    "CallLimitExceeded",
    "the transaction made 1 outside calls (Limits.external_calls_max), those of earlier attempts included: make their "
    "arguments depend on less that others change",
)
async def calls_external_often(ctx: Context[str, Any]) -> None:
    for number in range(3):
        await ctx.call_external(str, number)


@ends(
    "TypeError",
    "ctx.call_external takes a function and its arguments, got 3: write ctx.call_external(function, …)",
)
async def calls_a_number(ctx: Context[str, Any]) -> None:
    await ctx.call_external(3)  # type: ignore[call-overload]


@ends("UnsupportedValue", f"thing['k'][0]: Decimal('1') of type Decimal {NO_TYPE}")
async def puts_decimal(ctx: Context[str, Any]) -> None:
    await ctx.put([Decimal(1)])


@ends("ValueTooLarge", "the state of thing['k'] has 2003 bytes; the limit is 1000: split it over several entities")
async def puts_much(ctx: Context[str, Any]) -> None:
    await ctx.put("x" * 2000)


@ends("ValueTooLarge", "the result of thing.returns_much has 2003 bytes; the limit is 1000: return less")
async def returns_much(ctx: Context[str, Any]) -> str:
    return "x" * 2000


@ends("UnknownOperator", "app 'recorded' has no operator 'nothing'; it has: thing")
async def calls_unknown(ctx: Context[str, Any]) -> None:
    await ctx.call("nothing", "twice", "k")


@ends("BadKey", "operator 'thing' has keys of type str, got 3 of type int")
async def calls_bad_key(ctx: Context[str, Any]) -> None:
    await ctx.call("thing", "twice", 3)


@ends("BadArguments", "thing.twice: argument 'number': Expected `int`, got `str`")
async def calls_bad_arguments(ctx: Context[str, Any]) -> None:
    await ctx.call("thing", "twice", "z", ("x",))


@ends("UnsupportedValue", "params of thing.twice must be a tuple or list, got 3: write (3,)")
async def calls_bare_argument(ctx: Context[str, Any]) -> None:
    await ctx.call("thing", "twice", "z", 3)


@ends(
    "CallLimitExceeded",
    "the transaction calls more than 10 functions (Limits.invocations_max; those with large arguments or results count "
    "as several: Limits.transaction_bytes_max): an endless recursion? Split it over several requests",
)
async def calls_many(ctx: Context[str, Any]) -> None:
    for number in range(20):
        ctx.call_async("thing", "twice", f"z{number}")


async def test_words_of_recorded_outcomes() -> None:
    async with styx.embedded(App("recorded", [thing]), limits=LIMITS) as client:
        for function, type, text in CASES:
            reply = await client.request("thing", "k", function)
            assert reply.error is not None, function
            line = sleeps.__code__.co_firstlineno + LINES_BEFORE_SLEEP
            assert (reply.error.type, reply.error.message) == (type, text.replace("{line}", str(line)))
