"""What `Context.get` gives is as good as a coroutine, in both forms: awaited, driven by hand, closed, and misused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from styx import App, Context, Operator
from styx.errors import UnsupportedValue
from styx.messages import ReplyError
from styx.testing import embedded_cluster
from styx.values.codec import encode_any, encode_strict
from styx.values.reading import Reading

TWICE = "cannot reuse already awaited coroutine"


async def awaited(reading: Any) -> Any:
    return await reading


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    return stopped.value.value


@pytest.mark.parametrize("value", [None, 5, (1, 2), StopIteration(3), KeyError("a value, not raised")])
def test_who_awaits_it_gets_the_value_at_once(value: Any) -> None:
    reading = Reading(value)
    assert not reading.ended
    assert run(awaited(reading)) is value
    assert reading.ended
    assert reading.value is None, "nothing is kept"


def test_asking_how_to_await_it_is_not_awaiting_it() -> None:
    reading = Reading(5)
    iterator = reading.__await__()
    assert not reading.ended
    with pytest.raises(StopIteration) as stopped:
        next(iterator)
    assert stopped.value.value == 5
    assert reading.ended


ENDS: dict[str, Callable[[Any], Any]] = {
    "awaited": lambda reading: run(awaited(reading)),
    "sent": run,
    "closed": Reading.close,
}
AGAIN: dict[str, Callable[[Any], Any]] = {
    "awaited": lambda reading: awaited(reading).send(None),
    "sent": lambda reading: reading.send(None),
    "thrown": lambda reading: reading.throw(OSError),
}


@pytest.mark.parametrize("first", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("second", AGAIN.values(), ids=AGAIN)
def test_it_is_awaited_once(first: Callable[[Reading], Any], second: Callable[[Reading], Any]) -> None:
    reading = Reading(5)
    first(reading)
    with pytest.raises(RuntimeError, match=TWICE):
        second(reading)


def test_it_can_be_driven_by_hand() -> None:
    assert run(Reading(5)) == 5
    thrown = Reading(5)
    with pytest.raises(OSError, match="disk"):
        thrown.throw(OSError("disk"))
    assert thrown.ended
    with pytest.raises(OSError, match="disk"):
        Reading(5).throw(OSError, OSError("disk"))


def test_closing_it_again_is_nothing() -> None:
    reading = Reading(5)
    reading.close()
    reading.close()
    assert (reading.ended, reading.value) == (True, None)


def test_it_is_a_coroutine_to_who_asks() -> None:
    assert isinstance(Reading(5), Coroutine)
    assert asyncio.iscoroutine(Reading(5))

    async def in_a_task() -> Any:
        return await asyncio.gather(Reading(1), asyncio.wait_for(Reading(2), 300))

    assert asyncio.run(in_a_task()) == [1, 2]


def test_what_python_says_of_it_is_what_it_says_of_a_coroutine() -> None:
    reading: Any = Reading(5)
    for wrong in (lambda: reading["balance"], lambda: reading + 1, lambda: len(reading), reading):
        with pytest.raises(TypeError, match=r"'coroutine'"):
            wrong()
    with pytest.raises(AttributeError, match="'coroutine' object has no attribute 'balance'"):
        _ = reading.balance
    assert repr(reading) == "<coroutine object Context.get>"


def test_many_are_apart_from_each_other() -> None:
    readings = [Reading(n) for n in range(100)]
    assert [run(awaited(each)) for each in reversed(readings)] == list(range(99, -1, -1))
    for n in range(100):  # each in the memory of the one before
        assert run(awaited(Reading(n))) == n


def test_it_is_no_value() -> None:
    for value in (Reading(5), [Reading(5)], {"later": Reading(5)}):
        with pytest.raises(UnsupportedValue, match="an `await` is missing"):
            encode_strict(value)
        with pytest.raises(UnsupportedValue, match=r"an `await` is missing: Context\.get\(…\) gives a coroutine"):
            encode_any(value, "it")


# In a function ---------------------------------------------------------------------------------------------------

thing = Operator("thing")
kept: list[Any] = []


@thing.register
async def by_hand(ctx: Context) -> Any:
    try:
        ctx.get(3).send(None)
    except StopIteration as stopped:
        return stopped.value


@thing.register
async def hands_it_on(ctx: Context) -> None:
    ctx.call_async(thing, by_hand, "b", (ctx.get(),))


@thing.register
async def subscripts(ctx: Context) -> Any:
    return ctx.get({})["balance"]  # type: ignore[index]


@thing.register
async def in_a_task(ctx: Context) -> None:
    kept.append(asyncio.ensure_future(ctx.get()))


@thing.register
async def twice_on_one_line(ctx: Context) -> Any:
    return [await (reading := ctx.get(1)), await reading]


async def outcome(function: str) -> tuple[Any, ReplyError | None]:
    async with embedded_cluster(App("things", [thing])) as cluster:
        replies = await asyncio.gather(*[cluster.submit("thing", "a", function) for _ in range(3)])
    await asyncio.gather(*kept, return_exceptions=True)  # those of the checker's run as well
    kept.clear()
    assert len({(reply.result, reply.error) for reply in replies}) == 1, "in conflict as well"
    return replies[0].result, replies[0].error


def test_what_is_taken_by_hand_is_not_forgotten() -> None:
    assert asyncio.run(outcome("by_hand")) == (3, None)


@pytest.mark.parametrize(
    ("function", "kind", "told"),
    [
        ("hands_it_on", "UnsupportedValue", "an `await` is missing: Context.get(…) gives a coroutine"),
        ("subscripts", "TypeError", "'coroutine' object is not subscriptable"),
        ("in_a_task", "ForgottenAwait", "did not await its ctx.get: write `await ctx.get()`"),
        ("twice_on_one_line", "RuntimeError", f"{TWICE}: await each ctx.get(), ctx.call(…)"),
    ],
)
def test_mistakes_with_it_end_the_transaction(function: str, kind: str, told: str) -> None:
    _, error = asyncio.run(outcome(function))
    assert error is not None
    assert error.type == kind
    assert told in error.message
