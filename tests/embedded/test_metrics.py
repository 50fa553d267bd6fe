"""The metrics, read by Prometheus' own parser."""

from __future__ import annotations

import asyncio
import math

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

import styx
from styx import App, Context, Operator, at_least
from styx.embedded_engine.engine import EmbeddedEngine
from tests.embedded.ledger_app import app

pytestmark = pytest.mark.anyio


def _values(engine: EmbeddedEngine) -> dict[tuple[str, str], float]:
    text = engine.metrics()
    assert text.endswith("\n")
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_metrics_say_what_happened() -> None:
    async with styx.embedded(app, snapshot_interval=1000) as client:
        assert math.isnan(_values(client.engine)["styx_snapshot_age_seconds", ""])
        for _ in range(3):
            await client.call("ledger", "a", "add")
        await client.request("ledger", "a", "move", "b", 100)
        await client.request("ledger", "a", "mov")
        assert await client.engine.snapshot()
        values = _values(client.engine)
    expected = {
        ("styx_transactions_total", "committed"): 3,
        ("styx_transactions_total", "aborted"): 1,
        ("styx_transactions_total", "rejected"): 1,
        ("styx_calls_total", ""): 4,
        ("styx_epoch_size", ""): 0,
        ("styx_epochs_total", ""): 6,
        ("styx_in_flight", ""): 0,
        ("styx_requests_held", ""): 0,
        ("styx_ready", ""): 1,
        ("styx_generation", ""): 1,
        ("styx_snapshots_total", ""): 1,
        ("styx_snapshots_failed_total", ""): 0,
        ("styx_poison_records_total", ""): 0,
        ("styx_log_records", "requests"): 5,
        ("styx_log_records", "replies"): 5,
    }
    assert {name: values[name] for name in expected} == expected
    assert 0 <= values["styx_snapshot_age_seconds", ""] < 60
    assert values["styx_recovery_seconds", ""] > 0


async def test_contended_transactions_count_as_locked() -> None:
    async with styx.embedded(app) as client:
        for waiting in [client.submit("ledger", "a", "add") for _ in range(10)]:
            await waiting
        assert _values(client.engine)["styx_lock_phase_transactions_total", ""] == 9


async def test_metrics_before_the_start_and_after_the_end() -> None:
    client = styx.embedded(app)
    assert _values(client.engine) == {("styx_ready", ""): 0}
    assert (client.engine.in_flight, client.engine.held) == (0, 0)
    async with client:
        pass
    assert _values(client.engine)["styx_ready", ""] == 0


class Item(msgspec.Struct):
    product: int


async def test_rows_and_indexes_by_table() -> None:
    cart = Operator("cart", n_partitions=1)
    items = cart.table("items", Item, key="product")
    async with styx.embedded(App("shop", [cart])) as client:
        assert ("styx_rows", "cart/items") not in _values(client.engine)
        await client.load_rows(items, [("a", Item(number)) for number in range(5)])
        (await client.read_rows(items, "a")).unwrap()
        values = _values(client.engine)
        assert (values["styx_rows", "cart/items"], values["styx_indexes_made", "cart/items"]) == (5, 1)


async def test_rows_read_and_conflicts_of_ranges_by_table() -> None:
    cart = Operator("cart", n_partitions=1)
    items = cart.table("items", Item, key="product")

    @cart.register
    async def add(ctx: Context) -> int:
        number: int = await ctx.rows(items).count(product=at_least(0), scan=True)
        await ctx.rows(items).insert(Item(number))
        return len(await ctx.rows(items).select())

    async with styx.embedded(App("shop", [cart])) as client:
        await client.call(cart, "a", add)
        values = _values(client.engine)
        assert values["styx_rows_read_total", "cart/items"] == 1
        assert ("styx_range_conflicts_total", "cart/items") not in values
        found = await asyncio.gather(*[client.call(cart, "a", add) for _ in range(5)])
        assert sorted(found) == [2, 3, 4, 5, 6]
        assert 1 <= _values(client.engine)["styx_range_conflicts_total", "cart/items"] <= 4
