"""Subscriptions on a real engine: readers of a group see a beginning of its events, and nothing is lost in a crash."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from styx import App, Context, Event, Operator, Retry
from styx.errors import OutcomeUnknown
from styx.messages import Reply
from styx.testing import embedded_cluster

pytestmark = pytest.mark.anyio

PRODUCTS = 6
HOSTILE = 13
"""A price that no copy takes."""


class Priced(msgspec.Struct):
    product: str
    price: int


priced: Event[Priced] = Event("priced", Priced)
seller, copy, cart = Operator("seller"), Operator("copy"), Operator("cart")


@seller.register
async def update(ctx: Context, product: str) -> int:
    """Each price is the number of the seller's update."""
    price: int = await ctx.get(0) + 1
    await ctx.put(price)
    ctx.emit(priced, Priced(product, price))
    return price


@seller.register
async def update_often(ctx: Context, count: int) -> None:
    """As many updates."""
    price: int = await ctx.get(0)
    for number in range(price, price + count):
        ctx.emit(priced, Priced(f"p{number % PRODUCTS}", number + 1))
    await ctx.put(price + count)


@seller.register
async def learn(ctx: Context) -> None:
    await ctx.put(1)


@seller.register
async def report(ctx: Context, product: str, price: int) -> None:
    if await ctx.get(0):
        ctx.emit(priced, Priced(product, price))


@seller.register
async def announce(ctx: Context, product: str, price: int) -> None:
    ctx.emit(priced, Priced(product, price))


@copy.on(
    priced,
    key=lambda event: event.product,
    after_commit=True,
    retry=Retry(3, timedelta(milliseconds=1)),
    ordered_by=lambda event: "all",
)
async def keep(ctx: Context, event: Priced) -> None:
    if event.price == HOSTILE:
        raise ValueError("no such price")
    await ctx.put([*await ctx.get([]), event.price])


@copy.on(priced, key=lambda event: "others", after_commit=True)
async def disturb(ctx: Context, event: Priced) -> None:
    await ctx.put([*await ctx.get([]), event.price])


@copy.register(read_only=True)
async def prices(ctx: Context) -> list[int]:
    found: list[int] = await ctx.get([])
    return found


@cart.register
async def look(ctx: Context) -> list[int]:
    """All prices that the copies have; it writes, so that it is in conflict with whatever changes them."""
    await ctx.put(0)
    seen: list[int] = []
    for number in range(PRODUCTS):
        seen += await ctx.call(copy, prices, f"p{number}")
    return sorted(seen)


app = App("market", [seller, copy, cart], events=[priced])


def is_beginning(seen: list[int]) -> bool:
    return seen == [price for price in range(1, len(seen) + 2) if price != HOSTILE][: len(seen)]


async def test_a_reader_sees_a_beginning_of_the_group() -> None:
    async with embedded_cluster(app, n_slots=7) as cluster:
        rng = random.Random(1)
        looks: list[Any] = []
        for _ in range(60):
            await cluster.call("seller", "ada", "update", f"p{rng.randrange(PRODUCTS)}")
            looks.append(cluster.submit("cart", f"c{rng.randrange(3)}", "look"))
        seen = [(await reply).result for reply in looks]
        await cluster.advance(timedelta(seconds=1))
        last = await cluster.call("cart", "c", "look")
        assert all(map(is_beginning, seen)), seen
        assert max(map(len, seen)) > min(map(len, seen))
        assert last == [price for price in range(1, 61) if price != HOSTILE]
        for number in range(PRODUCTS):
            kept = cluster.entity("copy", f"p{number}") or []
            assert kept == sorted(kept)
        assert cluster.entity("copy", "others") == list(range(1, 61))


async def test_calls_that_wait_are_made_together() -> None:
    async with embedded_cluster(app, n_slots=3) as cluster:
        reply = await cluster.submit("seller", "ada", "update_often", 500)
        await cluster.advance(timedelta(seconds=1))
        assert await cluster.call("cart", "c", "look") == [n for n in range(1, 501) if n != HOSTILE]
        assert cluster.entity("copy", "others") == list(range(1, 501))
        for number in range(PRODUCTS):
            assert cluster.entity("copy", f"p{number}") == sorted(cluster.entity("copy", f"p{number}"))
        last = await cluster.submit("seller", "ada", "update")
        assert last.epoch - reply.epoch < 100, "there are 1,000 calls"


async def test_what_runs_again_and_only_then_emits_is_handled_behind_the_others() -> None:
    """The lock phase is behind phase 1 in the serial order, also for a lower transaction id."""
    async with embedded_cluster(app, n_slots=3) as cluster:
        requests = [("learn", ()), ("report", ("p1", 1)), ("announce", ("p1", 2))]
        replies = [cluster.submit("seller", "eve", function, *arguments) for function, arguments in requests]
        places = [(reply.epoch, reply.phase, reply.tid) for reply in [await reply for reply in replies]]
        assert places == [(0, 1, places[0][2]), (0, 2, places[1][2]), (0, 1, places[2][2])]
        assert places[1][2] < places[2][2]
        await cluster.advance(timedelta(seconds=1))
        assert cluster.entity("copy", "p1") == [2, 1]
        assert cluster.entity("copy", "others") == [2, 1]


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_is_lost_or_handled_twice_in_a_crash(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    async with embedded_cluster(app, tmp_path, n_slots=4, snapshot_interval=0.01) as cluster:
        for _ in range(4):
            submitted = [cluster.submit("seller", "ada", "update", f"p{rng.randrange(PRODUCTS)}") for _ in range(20)]
            for _ in range(rng.randrange(80)):
                await asyncio.sleep(0)
            await asyncio.gather(*submitted[: rng.randrange(20)])
            await cluster.crash_and_recover()
            outcomes = await asyncio.gather(*submitted, return_exceptions=True)
            assert all(isinstance(outcome, Reply | OutcomeUnknown) for outcome in outcomes)
        await cluster.advance(timedelta(seconds=1))
        updates = cluster.entity("seller", "ada")
        assert await cluster.call("cart", "c", "look") == [n for n in range(1, updates + 1) if n != HOSTILE]
        assert cluster.entity("copy", "others") == list(range(1, updates + 1))
