"""What an audit reads is the same, wherever it reads it: from the engine, by requests, and from a snapshot."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.marketplace import events, settings
from benchmarks.marketplace.app import app
from benchmarks.marketplace.audit import driven
from benchmarks.marketplace.audit.audit import audit, checked
from benchmarks.marketplace.audit.driven import judged
from benchmarks.marketplace.audit.history import History
from benchmarks.marketplace.audit.reading import (
    CannotRead,
    calls_of,
    history_of,
    state_by_requests,
    state_here,
    state_in_snapshot,
)
from benchmarks.marketplace.audit.run import Run, Terms
from benchmarks.marketplace.audit.state import State
from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.population.whole import initial
from benchmarks.marketplace.record import Record
from benchmarks.marketplace.services.order.rows import orders
from benchmarks.marketplace.services.seller.rows import board
from styx.client.base import Client
from styx.embedded_engine.storage import OBJECTS_NAME
from styx.store.directory import DirectoryStore
from tests.benchmarks.marketplace.audit.workload import EXTRA_SELLERS, Shop, Unchecked
from tests.benchmarks.marketplace.shop import CUSTOMERS, item, load, request

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def used(data_dir: Path | None = None) -> AsyncIterator[tuple[Unchecked, State, Shop]]:
    """A marketplace in which some things have happened, and what was loaded into it."""
    async with Unchecked(app, data_dir, 16, None, 3600.0) as cluster:
        await load(cluster, EXTRA_SELLERS, 25)
        before, shop = state_here(cluster), Shop(cluster, 2)
        await shop.mix(4)
        yield cluster, before, shop


def same(one: State, other: State) -> bool:
    """Whether both have the same values, and the same rows but those of views."""
    tables = [table for table in app.tables.values() if table.view_rule is None]
    values = all(one.values(name) == other.values(name) for name in ("product", "replica"))
    return values and all(dict_of(one, table) == dict_of(other, table) for table in tables)


def dict_of(state: State, table: Any) -> dict[Any, list[Any]]:
    return {key: state.rows(table, key) for key in state.keys(table)}


async def test_requests_read_what_the_engine_has() -> None:
    async with used() as (cluster, before, _):
        here = state_here(cluster)
        asked = await state_by_requests(cluster, CUSTOMERS, range(1, 3 + EXTRA_SELLERS), before.values("product"))
        assert same(here, asked)
        assert (here.has_views, asked.has_views) == (True, False)
        assert here.rows(board, 1)
        assert here.keys(orders)


async def test_a_product_that_was_purged_is_read_as_none() -> None:
    async with used() as (cluster, before, _):
        await cluster.call("product", (14, 1), "delete")
        await cluster.call("product", (14, 1), "purge")
        asked = await state_by_requests(cluster, [], [], before.values("product"))
        assert asked.value("product", (14, 1)) is None
        assert asked.value("product", (1, 1)) is not None


async def test_what_cannot_be_read_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    async with used() as (cluster, _, _):
        with pytest.raises(CannotRead, match=r"rows of cart/items of x: BadKey.*audit a snapshot"):
            await state_by_requests(cluster, ["x"], [], [])  # type: ignore[list-item]


async def test_a_snapshot_is_audited_with_the_log_up_to_its_epoch(tmp_path: Path) -> None:
    async with used(tmp_path) as (cluster, before, shop):
        assert await cluster.engine.snapshot()
        epoch = cluster.engine.last_snapshot_epoch
        await shop.mix(2)
        history, end = await history_of(cluster), state_here(cluster)
        store = DirectoryStore(tmp_path / OBJECTS_NAME)
        found_epoch, then = state_in_snapshot(store, app, epoch=epoch)
        assert found_epoch == epoch
        assert not same(then, end)
        run = Run(before=before, after=then, history=history.until(found_epoch), settled=False)
        assert audit(run) == []
        assert run.stories
        assert audit(replace(run, history=history)) != []
        with pytest.raises(CannotRead, match="no snapshot of epoch 999999"):
            state_in_snapshot(store, app, epoch=999999)


async def test_a_run_of_the_driver_is_audited_with_what_it_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "REJECTED", 30.0)
    chosen = Settings(size=0.002, orders=3)
    async with Unchecked(app, None, 16, None, 3600.0) as cluster:
        for loading in initial(app, chosen):
            await _load(cluster, loading)
        for number in range(12):
            await cluster.call("queue", 0, "update_delivery", f"d{number}")
        found = await judged(cluster, app, initial(app, chosen), Record(), None, complete=True)
        assert found.violations == []
        assert "60 orders" in found.checked[0]
        (row,) = cluster.rows(orders, 1)[:1]
        row.total_invoice += 1
        await cluster.load_rows(orders, [(1, row)], replace=True)
        found = await judged(cluster, app, initial(app, chosen), Record(), None, complete=True)
        assert any(text.startswith("MONEY: order (1, 1): found total_invoice") for text in found.violations)


async def _load(client: Client, loading: Any) -> None:
    if loading.table is None:
        await client.load(loading.operator, loading.pairs)
    else:
        await client.load_rows(loading.table, loading.pairs)


async def test_the_logs_are_read_whole_and_counted() -> None:
    async with used() as (cluster, before, shop):
        history = await history_of(cluster)
        assert history.count(events.reserve_stock) > 5
        run = Run(
            before=before,
            after=state_here(cluster),
            history=history,
            record=Record.of(shop.asked),
            terms=Terms(),
            calls=calls_of(app),
        )
        assert audit(run) == []
        assert "criteria on" in checked(run)[0]
        assert ("cart.checkout", "order.place") in run.calls


async def test_logs_that_lack_the_first_events_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = Settings(size=0.002, orders=0)
    async with Unchecked(app, None, 16, None, 3600.0) as cluster:
        for loading in initial(app, chosen):
            await _load(cluster, loading)
        key = (1, 1)
        shown = cluster.entity("product", key)
        for number in range(3):
            bought = item(*key, version=shown.version, unit_price=shown.price)
            await cluster.call("cart", 1, "add_item", bought)
            await cluster.call("cart", 1, "checkout", request(1, checkout_id=f"c{number}"))
        await cluster.advance(timedelta(0))
        assert (await judged(cluster, app, initial(app, chosen), Record(), None)).violations == []

        async def cut(client: Client) -> History:
            whole, made = await history_of(client), History()
            for event in events.EVENTS:
                for told in list(whole.of(event))[1:]:
                    made.add(event, told)
            return made

        monkeypatch.setattr(driven, "history_of", cut)
        (why,) = (await judged(cluster, app, initial(app, chosen), Record(), None)).violations
        assert why.startswith("unread: the audit ended early: the logs have 2 of 3 checkouts, and lack the first ones")
