"""A dashboard by the function as a transaction, by the function outside the log, and in SQL: the same at one epoch."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import styx
from benchmarks.driver.loading import load
from benchmarks.driver.sql_target import ReplicaTarget
from benchmarks.driver.styx_target import ClientTarget
from benchmarks.driver.workload import Planned, SqlQuery
from benchmarks.marketplace.app import app
from benchmarks.marketplace.driving.board_sql import FIRST, board_query, dashboard_of
from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.population.whole import initial
from benchmarks.marketplace.services.seller.rows import seller
from styx.client.embedded import EmbeddedClient
from styx.messages import Reply
from styx.protocol.reads import READ_PHASE
from tests.replica.moments import follower_of
from tests.replica.served import replica_of

pytestmark = pytest.mark.slow

SETTINGS = Settings(size=0.005)
NOBODY = 1_000


def test_all_three_ways_give_the_same(tmp_path: Path) -> None:
    asyncio.run(compared(tmp_path))


async def compared(directory: Path) -> None:
    async with styx.embedded(app, directory, snapshot_interval=1000.0) as client:
        for loading in initial(app, SETTINGS):
            await load(client, loading, 60.0)
        assert await client.engine.snapshot()
        follower = follower_of(directory)
        async with replica_of(follower) as (url, _):
            target = ReplicaTarget(ClientTarget(lambda: client, 60.0), url, 60.0, at_least=0)
            await target.open()
            for seller_id in (*range(1, SETTINGS.sellers + 1), NOBODY):
                await _compare(client, target, seller_id)
            wrong = await asked(target, board_query(1)._replace(sql="select nothing"))
            assert wrong.error is not None
            assert wrong.error.code == "bad_request"
        lost = await asyncio.gather(asked(target, board_query(1)), return_exceptions=True)
        assert isinstance(lost[0], ConnectionError)
        await target.leave()


async def _compare(client: EmbeddedClient, target: ReplicaTarget, seller_id: int) -> None:
    in_sql = await asked(target, board_query(seller_id))
    outside = await client.read_request(seller, seller_id, "dashboard", at=in_sql.epoch)
    inside = await client.request(seller, seller_id, "dashboard")
    assert in_sql.result == outside.result == inside.result
    assert (in_sql.epoch, in_sql.phase) == (outside.epoch, outside.phase)
    assert in_sql.phase == READ_PHASE
    assert bool(in_sql.result["entries"]) == (seller_id != NOBODY)


async def asked(target: ReplicaTarget, query: SqlQuery) -> Reply:
    answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    target.submit(Planned("dashboard", seller, query.parameters[0], "dashboard", (), query=query), answer)
    return await answer


def test_a_replica_that_is_behind_the_data_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.driver.sql_target.READY_SECONDS_MAX", 0.5)

    async def run() -> None:
        async with styx.embedded(app) as client:
            target = ReplicaTarget(ClientTarget(lambda: client, 60.0), "http://127.0.0.1:1", 60.0, at_least=0)
            with pytest.raises(ConnectionError, match=r"is not ready after 0\.5 s"):
                await target.open()
            await target.leave()

    asyncio.run(run())


def test_a_dashboard_of_more_entries_is_not_complete() -> None:
    sums: dict[str, Any] = dict.fromkeys(
        ("total_amount", "freight_value", "total_incentive", "total_invoice", "total_items"), 5
    )
    board = {"orders": 1, "products": 1, "lines": FIRST + 1, **sums}
    found = dashboard_of(7, [{**board, "e_order_id": None}])
    assert (found.board.count_lines, found.entries, found.complete) == (FIRST + 1, [], False)
