"""Bulk loads through the embedded engine: with calls beside them, through crashes and snapshots, at the limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

import styx
from styx import App, Context, Limits, LoadFailed, LoadReport, Operator
from styx.testing.fixture import embedded_cluster
from tests.embedded.ledger_app import app, ledger, pair

pytestmark = pytest.mark.anyio


class Price(msgspec.Struct):
    amount: Decimal
    tags: set[str] = set()


priced = Operator("priced", key_type=int, state_type=Price)


@priced.register
async def amount(ctx: Context) -> Decimal:
    price: Price = await ctx.get()
    return price.amount


shop = App("shop", [priced])


async def test_a_load_is_there_when_it_returns() -> None:
    async with embedded_cluster(app) as client:
        assert await client.load(ledger, ((f"k{n}", n) for n in range(2500))) == LoadReport(2500, 4)
        assert client.state() == {("ledger", f"k{n}"): n for n in range(2500)}
        assert await client.call("ledger", "k7", "add", 1) == 8
    assert client.report is not None
    assert client.report.committed == 5


async def test_by_name_and_from_an_asynchronous_iterable() -> None:
    async def pairs() -> AsyncIterator[tuple[tuple[int, str], int]]:
        for n in range(10):
            yield (n, "x"), n

    async with embedded_cluster(app) as client:
        assert (await client.load("pair", pairs())).loaded == 10
        assert client.entity(pair, (3, "x")) == 3


async def test_typed_states_are_checked_before_anything_is_sent() -> None:
    async with embedded_cluster(shop) as client:
        await client.load("priced", [(1, Price(Decimal("1.50"), {"a", "b"}))])
        assert client.entity(priced, 1) == Price(Decimal("1.50"), {"a", "b"})
        assert await client.call("priced", 1, "amount") == "1.50"
        assert await client.call(priced, 1, amount) == Decimal("1.50"), "as it is annotated, if the function is given"
        with pytest.raises(LoadFailed, match=r"pair 1: BadArguments: priced\[3\] cannot be loaded: 7 ") as caught:
            await client.load(priced, [(2, Price(Decimal(1))), (3, 7)])
        assert (caught.value.loaded, caught.value.index) == (0, 1)
        assert set(client.state()) == {("priced", 1)}


async def test_existing_keys_and_replace() -> None:
    async with embedded_cluster(app) as client:
        await client.call("ledger", "k1500", "add", 1)
        with pytest.raises(LoadFailed, match=r"pair 1500: KeyExists: ledger\['k1500'\] exists already") as caught:
            await client.load(ledger, [(f"k{n}", n) for n in range(2000)])
        failed = caught.value
        assert (failed.key, failed.index, failed.type, failed.code) == ("k1500", 1500, "KeyExists", "aborted")
        assert failed.loaded == len(client.state()) - 1
        assert client.entity(ledger, "k1500") == 1
        assert (await client.load(ledger, [(f"k{n}", n) for n in range(2000)], replace=True)).loaded == 2000
        assert client.entity(ledger, "k1500") == 1500


async def test_calls_beside_a_load_see_all_of_a_chunk_or_nothing() -> None:
    async with embedded_cluster(app, n_slots=1) as client:

        async def traffic() -> None:
            for _ in range(40):
                calls = [client.submit("ledger", f"k{n}", "add", 1000) for n in range(0, 600, 7)]
                await asyncio.gather(*calls)

        running = asyncio.ensure_future(traffic())
        for start in range(0, 600, 100):
            await client.load(ledger, [(f"k{n}", 1) for n in range(start, start + 100)], replace=True)
            try:
                await client.load(ledger, [(f"k{n}", 1) for n in range(start, start + 700)])
            except LoadFailed as failed:
                assert failed.type == "KeyExists"  # noqa: PT017 - whether one is there is not this test's concern
        await running
    assert client.report is not None


async def test_a_crash_in_the_middle(tmp_path: Path) -> None:
    def pairs() -> Iterator[tuple[str, int]]:
        for n in range(20_000):
            yield f"k{n}", n

    async with embedded_cluster(app, tmp_path) as cluster:
        loading = asyncio.ensure_future(cluster.load(ledger, pairs()))
        while not cluster.state():  # noqa: ASYNC110 - the engine tells nobody when the first chunk is committed
            await asyncio.sleep(0)
        await cluster.crash_and_recover()
        with pytest.raises(LoadFailed) as caught:
            await loading
        assert caught.value.code == "unknown", "the chunks in flight may have been recorded"
        found = cluster.state()
        assert caught.value.loaded <= len(found) < 20_000
        assert all(found[entity] == int(entity[1][1:]) for entity in found)
        assert (await cluster.load(ledger, pairs(), replace=True)).loaded == 20_000
        await cluster.engine.snapshot()
        await cluster.crash_and_recover()
        assert len(cluster.state()) == 20_000


async def test_a_load_outlives_its_engine(tmp_path: Path) -> None:
    async with styx.embedded(app, tmp_path) as client:
        await client.load(ledger, [(f"k{n}", n) for n in range(3000)])
        client.crash()
    async with styx.embedded(app, tmp_path) as client:
        assert len(client.state()) == 3000


async def test_chunks_stay_below_the_limits() -> None:
    limits = Limits(request_bytes_max=6_000, value_bytes_max=1_500)
    async with embedded_cluster(app, limits=limits, n_slots=1) as client:
        report = await client.load(ledger, [(f"k{n}", "x" * 1000) for n in range(10)])
        assert report == LoadReport(10, 10)
        with pytest.raises(LoadFailed, match=r"pair 0: .*big.* has a state of 2003 bytes") as caught:
            await client.load(ledger, [("big", "x" * 2000)])
        assert (caught.value.code, caught.value.key) == ("too_large", "big")


async def test_an_operator_that_is_not_there() -> None:
    async with styx.embedded(app) as client:
        with pytest.raises(styx.errors.UnknownOperator, match="ledgers"):
            await client.load("ledgers", [("a", 1)])
        with pytest.raises(ValueError, match="timeout"):
            await client.load(ledger, [("a", 1)], timeout=0)
