"""Contended functions as an app meets them: they run once, in the lock phase, with the effect of any other function."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from styx import App, Context, Operator
from styx.model.limits import Limits
from styx.testing import embedded_cluster

pytestmark = pytest.mark.anyio

RUNS: Counter[str] = Counter()
"""How often a function has run, by its name: a test's own look, which no app may take."""


async def tripled(number: int) -> int:
    """An external function."""
    return 3 * number


def made() -> App:
    RUNS.clear()
    counter = Operator("counter", state_type=int)
    taker = Operator("taker", state_type=list[int])

    @counter.register(contended=True)
    async def take(ctx: Context) -> int:
        RUNS["take"] += 1
        number = (await ctx.get() or 0) + 1
        await ctx.put(number)
        ctx.call_async(taker, receive, f"taker {number % 3}", (number,))
        return number

    @counter.register
    async def plain(ctx: Context) -> int:
        RUNS["plain"] += 1
        number = (await ctx.get() or 0) + 1
        await ctx.put(number)
        ctx.call_async(taker, receive, f"taker {number % 3}", (number,))
        return number

    @counter.register(contended=True)
    async def refuse(ctx: Context, number: int) -> None:
        await ctx.put(number)
        raise ValueError(f"no {number}")

    @counter.register(contended=True)
    async def ask(ctx: Context) -> int:
        RUNS["ask"] += 1
        found: int = await ctx.call_external(tripled, await ctx.get() or 2)
        await ctx.put(found)
        return found

    @counter.register(contended=True)
    async def spread(ctx: Context, n: int) -> int:
        RUNS["spread"] += 1
        for number in range(n):
            ctx.call_async(taker, receive, f"taker {number}", (number,))
        return n

    @counter.register
    async def through(ctx: Context, key: str) -> Any:
        return await ctx.call(counter, take, key)

    @taker.register
    async def receive(ctx: Context, number: int) -> None:
        RUNS["receive"] += 1
        await ctx.put([*(await ctx.get() or []), number])

    return App("contended", [counter, taker])


@pytest.mark.parametrize("n_slots", [1, 4, 16])
async def test_each_runs_once_in_the_order_of_its_transactions(n_slots: int) -> None:
    async with embedded_cluster(made(), n_slots=n_slots, carried_max=0) as cluster:
        replies = await asyncio.gather(*[cluster.submit("counter", "all", "take") for _ in range(30)])
        assert {reply.phase for reply in replies} == {2}
        in_order = sorted(replies, key=lambda reply: (reply.epoch, reply.phase, reply.tid))
        assert [reply.result for reply in in_order] == list(range(1, 31))
        assert [cluster.entity("taker", f"taker {n}") for n in (1, 2)] == [[*range(1, 31, 3)], [*range(2, 31, 3)]]
        assert RUNS == {"take": 30, "receive": 30}


async def test_without_the_declaration_they_run_again() -> None:
    async with embedded_cluster(made(), n_slots=4) as cluster:
        await asyncio.gather(*[cluster.submit("counter", "all", "plain") for _ in range(30)])
        assert RUNS["plain"] > 45


async def test_an_abort_leaves_nothing_and_is_told_once() -> None:
    async with embedded_cluster(made()) as cluster:
        replies = await asyncio.gather(
            cluster.submit("counter", "all", "take"),
            cluster.submit("counter", "all", "refuse", 100),
            cluster.submit("counter", "all", "take"),
        )
        assert [reply.phase for reply in replies] == [2, 2, 2]
        error = replies[1].error
        assert error is not None
        assert (error.type, error.message) == ("ValueError", "no 100")
        assert cluster.entity("counter", "all") == 2


@pytest.mark.parametrize("arguments", [(), (1, 2), ("x",)])
async def test_arguments_that_do_not_fit_are_refused(arguments: tuple[Any, ...]) -> None:
    async with embedded_cluster(made()) as cluster:
        reply = await cluster.request("counter", "all", "refuse", *arguments)
        assert reply.error is not None
        assert reply.error.type == "BadArguments"
        assert cluster.entity("counter", "all") is None


async def test_an_external_call_takes_it_into_the_next_epoch_and_is_made_once() -> None:
    async with embedded_cluster(made()) as cluster:
        reply = await cluster.request("counter", "all", "ask")
        assert reply.result == 6
        assert cluster.entity("counter", "all") == 6
        assert RUNS["ask"] <= 3, "in the lock phase, up to the call, and with its result"


async def test_many_calls_take_it_into_the_next_epoch() -> None:
    limits = Limits(invocations_max=64)
    async with embedded_cluster(made(), n_slots=1, limits=limits) as cluster:
        assert (await cluster.request("counter", "all", "spread", 31)).phase == 2
        RUNS.clear()
        reply = await cluster.request("counter", "all", "spread", 63)
        assert (reply.error, reply.result) == (None, 63)
        refused = await cluster.request("counter", "all", "spread", 64)
        assert refused.error is not None
        assert refused.error.type == "CallLimitExceeded"


async def test_another_functions_call_of_it_is_an_ordinary_call() -> None:
    async with embedded_cluster(made()) as cluster:
        reply = await cluster.request("counter", "another", "through", "all")
        assert (reply.phase, reply.result) == (1, 1)
        assert RUNS == {"take": 1, "receive": 1}
