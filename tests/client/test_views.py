"""Views read by clients, as tables are, and kept by loads of rows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import styx
from styx import App, Operator
from styx.client.http import HttpClient
from styx.errors import LoadFailed, RequestRejected
from styx.testing import embedded_cluster
from tests.gateway.running import running

pytestmark = pytest.mark.anyio


class Item(msgspec.Struct):
    product: int
    shelf: str = "s"


cart = Operator("cart")
items = cart.table("items", Item, key="product")
shelves: Any = items.view("shelves", group_by="shelf", sum="product")
ends: Any = items.view("ends", group_by="shelf", min="product", max=("product", "shelf"))
wide: Any = items.view("wide", scope="partition")
everywhere: Any = items.view("everywhere", scope="app")
app = App("shop", [cart])


async def test_a_load_keeps_views_and_replaces_rows_in_them() -> None:
    async with embedded_cluster(app) as cluster:
        await cluster.load_rows(items, [("a", Item(1)), ("a", Item(2, "t")), ("b", Item(3))])
        await cluster.load_rows(items, [("a", Item(1, "t"))], replace=True)
        assert msgspec.to_builtins(cluster.rows(shelves, "a")) == [{"shelf": "t", "count": 2, "product": 3}]
        found = [data for (table, _), data in cluster.engine.encoded_state().items() if table == everywhere.full_name]
        assert [msgspec.msgpack.decode(data) for data in found] == [{"count": 3}]
        with pytest.raises(LoadFailed, match="view 'shelves' of table cart/items is kept by the engine"):
            await cluster.load_rows(shelves, [("a", shelves.row_type.declared("s", 1, 1))])


async def test_least_and_greatest_values() -> None:
    whole = {"shelf": "s", "count": 2, "min_product": 1, "max_product": 4, "max_shelf": "s"}
    other = {"shelf": "t", "count": 1, "min_product": 3, "max_product": 3, "max_shelf": "t"}
    async with embedded_cluster(app) as cluster:
        await cluster.load_rows(items, [("a", Item(4)), ("a", Item(1)), ("a", Item(3, "t")), ("b", Item(9))])
        assert msgspec.to_builtins(cluster.rows(ends, "a")) == [whole, other]
        state = {
            key: msgspec.to_builtins(row) for (name, key), row in cluster.state().items() if name == ends.full_name
        }
        assert [state["a", "s"], state["a", "t"], state["b", "s"]["max_product"]] == [whole, other, 9]
        assert {name for name, _ in cluster.state()} == {items.full_name, shelves.full_name, ends.full_name}
    async with styx.embedded(app) as embedded, running(embedded.engine) as server, HttpClient(server.url) as client:
        await client.load_rows(
            "cart/items", [("a", {"product": 1}), ("a", {"product": 4}), ("a", {"product": 3, "shelf": "t"})]
        )
        assert await client.rows("cart/ends", "a") == [whole, other]
        for name in ("cart/wide", "cart/everywhere"):
            with pytest.raises(RequestRejected, match="of no entity: a client reads it through a function of the app"):
                await client.rows(name, "a")


async def test_through_a_gateway() -> None:
    async with styx.embedded(app) as embedded, running(embedded.engine) as server, HttpClient(server.url) as client:
        await client.load_rows("cart/items", [("a", {"product": 1}), ("a", {"product": 2})])
        for name in ("cart/shelves", shelves.full_name):
            assert await client.rows(name, "a") == [{"shelf": "s", "count": 2, "product": 3}]
        with pytest.raises(LoadFailed, match="is kept by the engine: load rows of the table"):
            await client.load_rows("cart/shelves", [("a", {"shelf": "s", "count": 1, "product": 3})])
