"""Rows read and loaded by clients: what an embedded engine and a gateway give, and what ends a load."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import pytest

import styx
from styx import App, Check, Context, Index, Operator, Ref
from styx.client.base import Client
from styx.client.http import HttpClient
from styx.errors import BadArguments, LoadFailed, RequestRejected, UnknownOperator
from styx.model.limits import Limits

pytestmark = pytest.mark.anyio


class Item(msgspec.Struct, array_like=True):
    product: int
    quantity: Annotated[int, msgspec.Meta(gt=0)] = 1
    price: Decimal = Decimal(1)
    label: str | None = None


class Part(msgspec.Struct):
    number: str
    of: int


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


async def test_keys_of_several_parts() -> None:
    async with styx.embedded(app) as client:
        await client.load_rows("till/receipts", [(("a", 1), Item(2)), (("a", 1), Item(1)), (("a", 2), Item(1))])
        assert client.rows(receipts, ("a", 1)) == [Item(1), Item(2)]
        assert client.state().keys() == {("till/receipts", ("a", 1, 1)), ("till/receipts", ("a", 1, 2)), ("till/receipts", ("a", 2, 1))}


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
        with pytest.raises(BadArguments, match="operator 'cart' has no table 'other'; it has: items, parts"):
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
