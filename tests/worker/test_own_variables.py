"""Context variables of one function are seen by no other, as if each were a task: in all executors, and outside."""

from __future__ import annotations

import asyncio
import contextvars
import decimal
from contextvars import ContextVar
from decimal import Decimal
from typing import Any

from styx import App, Context, Operator
from styx.testing import embedded_cluster
from styx.worker.own_variables import OwnVariables, apart

mark: ContextVar[str] = ContextVar("mark", default="nothing")
third = Operator("third")


@third.register
async def divide(ctx: Context, digits: int | None, over: str) -> str:
    """A third with `digits`, or as many as there are when nobody says how many; over another function's run."""
    if digits is None:
        before = Decimal(1) / 3
        await ctx.call(third, plain, over)
        await ctx.put(str(Decimal(1) / 3))
        assert before == Decimal(1) / 3
        return str(before)
    with decimal.localcontext() as own:
        own.prec = digits
        await ctx.call(third, plain, over)
        await ctx.put(str(Decimal(1) / 3))
        return str(Decimal(1) / 3)


@third.register
async def plain(ctx: Context) -> str:
    return str(Decimal(1) / 3)


@third.register
async def never_resets(ctx: Context, word: str) -> list[str]:
    found = [mark.get()]
    mark.set(word)
    decimal.getcontext().prec = len(word)
    await ctx.put(await ctx.get("") + word)
    return [*found, mark.get()]


@third.register
async def sees(ctx: Context) -> list[str]:
    return [mark.get(), str(Decimal(1) / 3)]


@third.register
async def calls_many(ctx: Context, word: str) -> list[Any]:
    token = mark.set(word)
    found = [await ctx.call(third, never_resets, f"of {n}", (word * 2,)) for n in range(2)]
    ctx.call_async(third, never_resets, "shared", ("later",))
    kept = mark.get()
    mark.reset(token)
    return [*found, kept, mark.get()]


@third.register
async def fails_over_a_call(ctx: Context) -> None:
    with decimal.localcontext() as own:
        own.prec = 2
        mark.set("failed")
        await ctx.call(third, "fails", "f")


@third.register
async def fails(ctx: Context) -> None:
    mark.set("fails")
    raise ValueError("no")


async def outside(word: str) -> str:
    found = mark.get()
    mark.set(word)
    await asyncio.sleep(0)
    return f"{found} {mark.get()}"


def outside_on_a_thread(word: str) -> str:
    found = mark.get()
    mark.set(word)
    decimal.getcontext().prec = 3
    return f"{found} {mark.get()}"


@third.register
async def goes_outside(ctx: Context, word: str) -> list[Any]:
    mark.set(word)
    found: list[Any] = [
        await ctx.call_external(each, "out") for each in (outside, outside_on_a_thread, outside_on_a_thread)
    ]
    return [*found, mark.get()]


app = App("thirds", [third])
EXACT = str(Decimal(1) / 3)


def test_a_decimal_context_is_that_of_its_function() -> None:
    async def run() -> None:
        async with embedded_cluster(app) as cluster:
            calls = [cluster.submit("third", f"k{n}", "divide", 3 if n % 2 else None, "o") for n in range(20)]
            results = [reply.unwrap() for reply in await asyncio.gather(*calls)]
            assert results == [EXACT, "0.333"] * 10
            assert {cluster.entity("third", f"k{n}") for n in range(0, 20, 2)} == {EXACT}

    asyncio.run(run())


def test_what_is_never_reset_is_gone_with_its_function() -> None:
    async def run() -> None:
        async with embedded_cluster(app) as cluster:
            # On one key, so that all but one are run again in the lock phase, one way or the other.
            words = [cluster.submit("third", "one", "never_resets", "word") for _ in range(10)]
            others = [cluster.submit("third", "one", "sees") for _ in range(3)]
            chains = [cluster.submit("third", f"c{n % 2}", "calls_many", f"w{n}") for n in range(6)]
            assert [reply.unwrap() for reply in await asyncio.gather(*words)] == [["nothing", "word"]] * 10
            assert [reply.unwrap() for reply in await asyncio.gather(*others)] == [["nothing", EXACT]] * 3
            for n, reply in enumerate(await asyncio.gather(*chains)):
                assert reply.unwrap() == [["nothing", f"w{n}" * 2]] * 2 + [f"w{n}", "nothing"]

    asyncio.run(run())


def test_a_function_that_fails_while_it_waits_leaves_nothing() -> None:
    async def run() -> None:
        async with embedded_cluster(app) as cluster:
            failing = [cluster.submit("third", "a", "fails_over_a_call") for _ in range(5)]
            seeing = [cluster.submit("third", "a", "sees") for _ in range(5)]
            assert {reply.error.type for reply in await asyncio.gather(*failing) if reply.error} == {"ValueError"}
            assert [reply.unwrap() for reply in await asyncio.gather(*seeing)] == [["nothing", EXACT]] * 5

    asyncio.run(run())


def test_outside_functions_have_their_own_too() -> None:
    async def run() -> None:
        async with embedded_cluster(app) as cluster:
            for n in range(3):
                found = await cluster.call("third", f"e{n}", "goes_outside", "in")
                assert found == ["nothing out"] * 3 + ["in"]

    asyncio.run(run())


def test_the_application_around_it_is_neither_seen_nor_changed() -> None:
    async def run() -> None:
        mark.set("mine")
        decimal.getcontext().prec = 7
        async with embedded_cluster(app) as cluster:
            assert await cluster.call("third", "a", "sees") == ["nothing", EXACT]
            await cluster.call("third", "a", "never_resets", "word")
            assert (mark.get(), decimal.getcontext().prec) == ("mine", 7)

    contextvars.copy_context().run(asyncio.run, run())


# The record itself -----------------------------------------------------------------------------------------------


def test_what_sets_nothing_shares_one_context() -> None:
    variables = OwnVariables()
    shared = variables.shared
    assert variables.run(lambda count: count - 1, 3) == 2
    assert variables.run(lambda count: len(mark.get()), 3) == len("nothing")
    assert variables.shared is shared


def test_who_waits_goes_on_with_what_it_has_set() -> None:
    variables = OwnVariables()

    async def sets_and_sees() -> str:
        return mark.get()

    def sets(count: int) -> int:
        mark.set("own")
        variables.waits("first")
        return count

    variables.run(sets, 1)
    results = []
    for invocation in ("first", "second"):

        def goes_on(count: int, invocation: str = invocation) -> int:
            try:
                variables.send(invocation, sets_and_sees(), None)
            except StopIteration as stop:
                results.append(stop.value)
            return 0

        variables.run(goes_on, 1)
    assert results == ["own", "nothing"]
    variables.clear()
    apart(mark.set, "dropped")
    assert mark.get() == "nothing"
