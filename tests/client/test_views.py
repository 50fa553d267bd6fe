"""Views read by clients, as tables are, and kept by loads of rows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import styx
from styx import App, Operator
from styx.client.http import HttpClient
from styx.errors import LoadFailed
from styx.testing import embedded_cluster
from tests.gateway.running import running

pytestmark = pytest.mark.anyio


class Item(msgspec.Struct):
    product: int
    shelf: str = "s"


cart = Operator("cart")
items = cart.table("items", Item, key="product")
shelves: Any = items.view("shelves", group_by="shelf", sum="product")
everywhere: Any = items.view("everywhere", scope="app")
app = App("shop", [cart])


async def test_a_load_keeps_views_and_replaces_rows_in_them() -> None:
    async with embedded_cluster(app) as cluster:
        await cluster.load_rows(items, [("a", Item(1)), ("a", Item(2, "t")), ("b", Item(3))])
        await cluster.load_rows(items, [("a", Item(1, "t"))], replace=True)
        assert msgspec.to_builtins(cluster.rows(shelves, "a")) == [{"shelf": "t", "count": 2, "product": 3}]
        found = [value for (table, _), value in cluster.state().items() if table == everywhere.full_name]
        assert msgspec.to_builtins(found) == [{"count": 3}]
        with pytest.raises(LoadFailed, match="view 'shelves' of table cart/items is kept by the engine"):
            await cluster.load_rows(shelves, [("a", shelves.row_type.declared("s", 1, 1))])


async def test_through_a_gateway() -> None:
    async with styx.embedded(app) as embedded, running(embedded.engine) as server, HttpClient(server.url) as client:
        await client.load_rows("cart/items", [("a", {"product": 1}), ("a", {"product": 2})])
        for name in ("cart/shelves", shelves.full_name):
            assert await client.rows(name, "a") == [{"shelf": "s", "count": 2, "product": 3}]
        with pytest.raises(LoadFailed, match="is kept by the engine: load rows of the table"):
            await client.load_rows("cart/shelves", [("a", {"shelf": "s", "count": 1, "product": 3})])
