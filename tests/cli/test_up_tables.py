"""Rows in a real cluster: a lost worker, versions that change their table, refused and taken, and a rollback."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_up_process import Cluster, running, until
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow
APP = """
from __future__ import annotations
import msgspec
from styx import App, Check, Context, Index, Operator

class Old(msgspec.Struct):
    product: int
    quantity: int = 1

class Item(msgspec.Struct):
    product: int
    {columns}

cart = Operator("cart")
items = cart.table("{table}", Item, key="product"{more})

@cart.register
async def fill(ctx: Context, quantities: list[int]) -> None:
    for number, quantity in enumerate(quantities):
        await ctx.rows(items).put(Item(number, quantity))

app = App("{app}", [cart]{drops})
"""


def source(
    app: str, columns: str = "quantity: int = 1", *, table: str = "items", more: str = "", drops: str = ""
) -> str:
    return APP.format(app=app, columns=columns, table=table, more=more, drops=drops)


@pytest.fixture
def cluster(tmp_path: Path, kafka: RealKafka) -> Iterator[Cluster]:
    yield from running(Cluster(tmp_path, kafka, None, "up_tables", source("up_tables")))


def rows(cluster: Cluster, key: str, table: str = "items") -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{cluster.port}/v1/cart/{key}?rows={table}", timeout=60) as answer:
        found: list[dict[str, Any]] = json.loads(answer.read())["result"]
    return found


def test_a_tables_versions(cluster: Cluster) -> None:
    keys = [f"c{number}" for number in range(8)]
    for number, key in enumerate(keys):
        ran = cluster.styx("call", "cart", key, "fill", json.dumps([1, number]), "--timeout", "60")
        assert ran.status == 0, ran
    stored = {key: rows(cluster, key) for key in keys}
    assert stored["c3"] == [{"product": 0, "quantity": 1}, {"product": 1, "quantity": 3}]

    cluster.module(source(cluster.name, more=', checks=[Check("few", lambda row: row.quantity < 6)]'))
    ran = cluster.styx("deploy", "shop:app")
    assert ran.status == 1
    assert "2 of 16 stored entities and rows do not fit the new version" in ran.err
    assert "does not meet the check 'few'" in ran.err
    cluster.module(source(cluster.name, table="goods"))
    ran = cluster.styx("deploy", "shop:app")
    assert ran.status == 1
    assert "table 'cart/items' has rows, and the new version lacks it" in ran.err
    assert {key: rows(cluster, key) for key in keys} == stored

    migrate = ', was="items", migrate=lambda old: Item(old["product"], old["quantity"] * 10)'
    cluster.module(source(cluster.name, "cents: int", table="goods", more=migrate))
    ran = cluster.styx("deploy", "shop:app")
    assert (ran.status, ran.err) == (0, ""), ran
    assert "table 'cart/items': converted by migrate=: 16" in ran.out
    assert rows(cluster, "c3", "goods") == [{"product": 0, "cents": 10}, {"product": 1, "cents": 30}]

    killed = cluster.pids()["worker-1"]
    os.kill(killed, signal.SIGKILL)
    until(lambda: cluster.pids().get("worker-1", killed) != killed)
    until(lambda: cluster.members() == ["worker-1", "worker-2"])
    expected = {key: [{"product": 0, "cents": 10}, {"product": 1, "cents": 10 * n}] for n, key in enumerate(keys)}
    assert {key: rows(cluster, key, "goods") for key in keys} == expected
    ran = cluster.styx("deploy", "--rollback")
    assert ran.status == 1
    assert "table 'cart/goods' has rows, and the new version lacks it" in ran.err

    cluster.module(source(cluster.name, drops=', drops=["cart/goods"]'))
    ran = cluster.styx("deploy", "shop:app")
    assert (ran.status, ran.err) == (0, ""), ran
    assert "table 'cart/goods': rows that are dropped: 16" in ran.out
    assert {key: rows(cluster, key) for key in keys} == {key: [] for key in keys}
    ran = cluster.styx("deploy", "--rollback")
    assert ran.status == 0, ran
    assert rows(cluster, "c3", "goods") == [], "what was dropped does not come back"
