"""Rows read and loaded by clients: what an embedded engine and a gateway give, and what ends a load."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

import styx
from styx import App, Check, Context, Index, Operator, Ref
from styx.client.embedded import EmbeddedClient
from styx.client.http import HttpClient
from styx.errors import BadArguments, LoadFailed, RequestRejected, UnknownOperator
from styx.gateway.app import Gateway
from styx.model.limits import Limits
from styx.testing import embedded_cluster
from tests.gateway.asgi import exchange
from tests.gateway.running import running

pytestmark = pytest.mark.anyio


class Item(msgspec.Struct, array_like=True):
    product: int
    quantity: Annotated[int, msgspec.Meta(gt=0)] = 1
    price: Decimal = Decimal(1)
    label: str | None = None


class Part(msgspec.Struct):
    number: str
    of: int


class Line(msgspec.Struct):
    text: str = ""
    number: int = 0


cart = Operator("cart")
items = cart.table(
    "items",
    Item,
    key="product",
    indexes=[Index("by_label", equal="label", unique=True)],
    checks=[Check("few", lambda row: row.quantity < 10)],
)
parts = cart.table("parts", Part, key="number", references=[Ref("of", items)])
till = Operator("till", key_type=(str, int))
receipts = till.table("receipts", Item, key="product")


lines = cart.table("lines", Line, key="number", auto="serial")


@cart.register
async def add_line(ctx: Context) -> int:
    number: int = (await ctx.rows(lines).insert(Line())).number
    return number


@cart.register
async def count(ctx: Context) -> int:
    number: int = await ctx.rows(items).count(scan=True)
    return number


app = App("shop", [cart, till])


def pairs(number: int) -> list[tuple[str, Item]]:
    return [(f"c{each % 7}", Item(each, price=Decimal(each), label=str(each))) for each in range(number)]


async def test_rows_are_loaded_and_read() -> None:
    async with styx.embedded(app) as client:
        report = await client.load_rows(items, pairs(100))
        assert report.loaded == 100
        assert [row.product for row in client.rows(items, "c3")] == list(range(3, 100, 7))
        assert client.rows("cart/items", "c3") == client.rows(items, "c3")
        assert client.rows(items, "nobody") == []
        assert await client.call(cart, "c3", count) == 14
        assert len(client.state()) == 100
        assert client.state()["cart/items", ("c3", 3)] == Item(3, price=Decimal(3), label="3")
        reply = await client.read_rows(items, "c3")
        assert len(reply.unwrap()) == 14
        assert client.entity(cart, "c3") is None


@pytest.mark.parametrize("replace", [False, True])
async def test_numbers_go_on_behind_those_of_loaded_rows(replace: bool) -> None:
    async with styx.embedded(app) as client:
        assert await client.call(cart, "a", add_line) == 1
        loaded = [(key, Line(number=number)) for key in "abc" for number in (4, 2, 3)]
        await client.load_rows(lines, [*loaded, ("b", Line()), ("c", Line(number=9))], replace=replace)
        assert [await client.call(cart, key, add_line) for key in "abcd"] == [5, 6, 10, 1]
        assert [row.number for row in client.rows(lines, "b")] == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("end", ["close", "crash"])
async def test_a_repeated_request_inserts_once(tmp_path: Path, end: str) -> None:
    client = styx.embedded(app, tmp_path)
    async with client:
        first = await client.request(cart, "a", add_line, idempotency_key="k")
        again = await asyncio.gather(*[client.request(cart, "a", add_line, idempotency_key="k") for _ in range(3)])
        assert {reply.result for reply in (first, *again)} == {1}
        if end == "crash":
            client.crash()
    async with styx.embedded(app, tmp_path) as client:
        assert (await client.request(cart, "a", add_line, idempotency_key="k")).result == 1
        assert [row.number for row in client.rows(lines, "a")] == [1]
        assert await client.call(cart, "a", add_line) == 2


async def test_keys_of_several_parts() -> None:
    async with styx.embedded(app) as client:
        await client.load_rows("till/receipts", [(("a", 1), Item(2)), (("a", 1), Item(1)), (("a", 2), Item(1))])
        assert client.rows(receipts, ("a", 1)) == [Item(1), Item(2)]
        keys = {key for table, key in client.state() if table == "till/receipts"}
        assert keys == {("a", 1, 1), ("a", 1, 2), ("a", 2, 1)}


@pytest.mark.parametrize(
    ("pair", "kind", "text"),
    [
        (("c1", Item(0)), "RowExists", "cart/items"),
        (("c1", Item(8, quantity=10)), "CheckViolation", "few"),
        (("c1", Item(8, label="1")), "UniqueViolation", "by_label"),
        (("c1", Item(8, quantity=0)), "BadArguments", "cart/items['c1'] cannot be loaded"),
        (("c1", Part("x", 1)), "BadArguments", "takes rows of type Item"),
        ((1, Item(8)), "BadKey", "key"),
    ],
)
async def test_what_ends_a_load(pair: Any, kind: str, text: str) -> None:
    async with styx.embedded(app) as client:
        await client.load_rows(items, [("c1", Item(0)), ("c1", Item(1, label="1"))])
        with pytest.raises(LoadFailed) as failed:
            await client.load_rows(items, [("c1", Item(9)), pair])
        assert (failed.value.type, failed.value.loaded) == (kind, 0)
        assert text in str(failed.value)
        assert len(client.rows(items, "c1")) == 2, "the chunk is one transaction"


async def test_a_reference_holds_for_loaded_rows() -> None:
    async with styx.embedded(app) as client:
        with pytest.raises(LoadFailed) as failed:
            await client.load_rows(parts, [("a", Part("x", 1))])
        assert failed.value.type == "ReferenceViolation"
        await client.load_rows(items, [("a", Item(1))])
        await client.load_rows(parts, [("a", Part("x", 1))])


async def test_replace_puts_rows_in_the_place_of_others() -> None:
    async with styx.embedded(app) as client:
        await client.load_rows(items, [("a", Item(1, label="x"))])
        await client.load_rows(items, [("a", Item(1, label="y")), ("b", Item(1, label="y"))], replace=True)
        assert client.rows(items, "a") == [Item(1, label="y")]


async def test_what_is_no_table() -> None:
    async with styx.embedded(app) as client:
        for wrong in ("items", cart, None, 5):
            with pytest.raises(BadArguments, match="a table is a Table, or its full name"):
                await client.load_rows(wrong, [])  # type: ignore[arg-type]
        with pytest.raises(BadArguments, match="operator 'cart' has no table 'other'; it has: items, lines, parts"):
            await client.load_rows("cart/other", [])
        with pytest.raises(UnknownOperator):
            client.rows("order/items", "a")
        reply = await client.read_rows("cart/other", "a")
        assert reply.error is not None
        assert reply.error.type == "BadArguments"


async def test_more_rows_than_a_query_may_read_are_refused() -> None:
    async with styx.embedded(app, limits=Limits(rows_per_query_max=5)) as client:
        await client.load_rows(items, [("a", Item(each)) for each in range(6)])
        reply = await client.read_rows(items, "a")
        assert reply.error is not None
        assert reply.error.type == "RowLimitExceeded"


async def test_through_a_gateway() -> None:
    async with styx.embedded(app) as embedded, running(embedded.engine) as server:
        async with HttpClient(server.url) as client:
            assert (await client.load_rows(items, pairs(50))).loaded == 50
            assert (await client.load_rows("cart/parts", [("c1", {"number": "x", "of": 1})])).loaded == 1
            assert await client.rows(items, "c3") == embedded.rows(items, "c3")
            assert await client.rows("cart/items", "c3") == msgspec.to_builtins(embedded.rows(items, "c3"))
            assert await client.rows(items, "nobody") == []
            with pytest.raises(LoadFailed) as failed:
                await client.load_rows(items, [("c3", Item(3))])
            assert (failed.value.code, failed.value.type, failed.value.loaded) == ("aborted", "RowExists", 0)
            with pytest.raises(LoadFailed, match="has no table 'other'"):
                await client.load_rows("cart/other", [("c3", {"product": 3})])
            with pytest.raises(RequestRejected, match="has no table 'other'"):
                await client.rows("cart/other", "c3")

        def use() -> None:
            with styx.connect_sync(server.url) as client:
                assert client.load_rows(items, [("z", Item(1))]).loaded == 1
                assert client.rows(items, "z") == [Item(1)]
                assert client.read_rows(items, "z").unwrap() == [[1, 1, "1", None]]

        await asyncio.to_thread(use)


async def test_in_plain_http() -> None:
    async with styx.embedded(app) as client:
        gateway = Gateway(client.engine)
        lines = b'["a",[1,2,"3.50",null]]\n["b",[2,2,"4","x"]]\n'
        loaded = await exchange(gateway, "POST", "/v1/cart?rows=items", [lines])
        assert (loaded.status, loaded.body) == (200, b'{"loaded":2}')
        read = await exchange(gateway, "GET", "/v1/cart/a?rows=items")
        assert (read.status, msgspec.json.decode(read.body)["result"]) == (200, [[1, 2, "3.50", None]])
        again = await exchange(gateway, "POST", "/v1/cart?rows=items&replace=true", [b'["a",[1,3]]'])
        assert again.status == 200
        assert client.rows(items, "a") == [Item(1, 3)]
        for path, status in (("/v1/cart?rows=other", 422), ("/v1/cart?rows=items&more=1", 400)):
            assert (await exchange(gateway, "POST", path, [lines])).status == status
        for line, status in ((b'["a",[1]]', 409), (b'["a",[9,0]]', 422), (b'["a",{"product":1}]', 422)):
            assert (await exchange(gateway, "POST", "/v1/cart?rows=items", [line])).status == status


async def test_the_state_of_an_entity_is_not_its_rows() -> None:
    async with styx.embedded(app) as client:
        await client.load_rows(items, [("a", Item(1))])
        absent = await exchange(Gateway(client.engine), "GET", "/v1/cart/a")
        assert absent.status == 404


def test_of_a_blocking_embedded_engine() -> None:
    with styx.embedded_sync(app) as client:
        assert client.load_rows(items, pairs(20)).loaded == 20
        assert len(client.rows(items, "c1")) == 3
        assert len(client.read_rows(items, "c1").unwrap()) == 3


async def test_a_test_cluster_compares_rows(tmp_path: Path) -> None:
    async with embedded_cluster(app, tmp_path) as cluster:
        await cluster.load_rows(items, pairs(30))
        before = cluster.state()
        assert len(before) == 30
        await cluster.crash_and_recover()
        assert cluster.state() == before
        assert len((await cluster.read_rows(items, "c1")).unwrap()) == 5
        with pytest.raises(LoadFailed):
            await cluster.load_rows(items, [("c1", Item(1))])


@pytest.mark.parametrize("end", ["close", "crash"])
async def test_rows_outlive_their_engine(tmp_path: Path, end: str) -> None:
    def opened() -> EmbeddedClient:
        return styx.embedded(app, tmp_path / "data", snapshot_interval=0.05)

    async with opened() as client:
        await client.load_rows(items, pairs(40))
        await client.load_rows(items, [("c1", Item(1, 5))], replace=True)
        before = client.state()
        if end == "crash":
            client.crash()
    for _ in range(2):
        async with opened() as client:
            assert client.state() == before
            assert await client.call(cart, "c3", count) == 6


async def test_a_load_names_the_first_pairs_that_cannot_be_loaded() -> None:
    """All of one chunk: by number in the load, entity and primary key, ten at most."""
    rows = [("c1", Item(n, quantity=10 if n in (2, 5) else 1, label=f"l{min(n, 6)}")) for n in range(8)]
    async with styx.embedded(app) as client:
        with pytest.raises(LoadFailed) as failed:
            await client.load_rows(items, rows)
        first, second, third = str(failed.value).splitlines()
        assert first.startswith("pair 2: CheckViolation: cart/items[('c1', 2)] cannot be loaded: table cart/items: ")
        assert second.startswith("  pair 5: cart/items[('c1', 5)] cannot be loaded: CheckViolation: ")
        assert third.startswith("  pair 7: cart/items[('c1', 7)] cannot be loaded: UniqueViolation: row 7 of table ")
        assert (failed.value.key, failed.value.index, failed.value.loaded) == ("c1", 2, 0)
        with pytest.raises(LoadFailed) as failed:
            await client.load_rows(items, [("c1", Item(n, quantity=10)) for n in range(20)])
        assert len(failed.value.message.splitlines()) == 11
        assert failed.value.message.endswith("the pairs behind it were not looked at")


async def test_a_load_numbers_the_pairs_of_the_whole_load() -> None:
    async with styx.embedded(app) as client:
        with pytest.raises(LoadFailed, match=r"^pair 1500: CheckViolation: cart/items\[\('c0', 1500\)\]") as failed:
            await client.load_rows(items, [("c0", Item(n, quantity=10 if n == 1500 else 1)) for n in range(2000)])
        assert (failed.value.key, failed.value.index, failed.value.loaded) == ("c0", 1500, 1000)
