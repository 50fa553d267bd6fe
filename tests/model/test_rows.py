"""`ctx.rows` in a real engine, replayed serially: what functions see, what ends them, and what stays."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import pytest

from styx import App, Check, Context, Index, Operator, Page, Ref, TransactionAborted, at_least
from styx.testing import embedded_cluster

pytestmark = pytest.mark.anyio


class Item(msgspec.Struct, array_like=True):
    product: int
    seller: str
    quantity: Annotated[int, msgspec.Meta(gt=0)]
    price: Decimal
    voucher: Decimal = Decimal(0)


class Payment(msgspec.Struct):
    product: int
    id: str = ""


class Line(msgspec.Struct):
    text: str
    number: int = 0


cart = Operator("cart", key_type=int)
items = cart.table(
    "items",
    Item,
    key="product",
    indexes=[
        Index("by_price", order="price"),
        Index("of_seller", equal="seller", order="price"),
        Index("one_price", equal="price", unique=True),
    ],
    checks=[Check("voucher_fits", lambda row: 0 <= row.voucher <= row.price * row.quantity)],
)
payments = cart.table("payments", Payment, key="id", auto="unique", references=[Ref("product", items, "cascade")])
lines = cart.table("lines", Line, key="number", auto="serial")


@cart.register
async def add(ctx: Context, product: int, quantity: int, price: Decimal, voucher: Decimal = Decimal(0)) -> Item:
    return await ctx.rows(items).insert(Item(product, "a", quantity, price, voucher))


@cart.register
async def fill(ctx: Context, number: int) -> None:
    rows = ctx.rows(items)
    for product in range(number):
        await rows.put(Item(product, "ab"[product % 2], 1, Decimal(100 - product)))


@cart.register
async def dear(ctx: Context, least: Decimal) -> list[int]:
    found = await ctx.rows(items).select(price=at_least(least), last=3)
    return [row.product for row in found]


@cart.register
async def pay(ctx: Context, product: int) -> int:
    payment = await ctx.rows(payments).insert(Payment(product))
    assert await ctx.rows(payments).get(payment.id) == payment
    return await ctx.rows(payments).count()


@cart.register
async def drop(ctx: Context, product: int) -> tuple[bool, int]:
    return await ctx.rows(items).delete(product), await ctx.rows(payments).count()


@cart.register
async def page(ctx: Context, after: str | None = None) -> Page[Item]:
    return await ctx.rows(items).pages(seller="a", size=2, after=after)


@cart.register
async def note(ctx: Context, text: str) -> int:
    return (await ctx.rows(lines).insert(Line(text))).number


@cart.register
async def caught(ctx: Context, product: int, quantity: int, price: Decimal, voucher: Decimal = Decimal(0)) -> None:
    try:
        await ctx.rows(items).insert(Item(product, "a", quantity, price, voucher))
    except Exception:  # noqa: BLE001 - whatever it is
        return


@cart.register
async def forgets(ctx: Context) -> None:
    ctx.rows(items).get(1)  # type: ignore[unused-coroutine]  # the mistake


@cart.register(read_only=True)
async def told(ctx: Context) -> int:
    return await ctx.rows(items).count()


@cart.register(read_only=True)
async def writes(ctx: Context) -> None:
    await ctx.rows(items).delete(1)


APP = App("shop", [cart])


async def test_rows_of_entities() -> None:
    async with embedded_cluster(APP) as cluster:
        await cluster.call(cart, 1, fill, 7)
        await cluster.call(cart, 2, fill, 2)
        assert await cluster.call(cart, 1, dear, Decimal(90)) == [2, 1, 0]
        assert await cluster.call(cart, 2, dear, Decimal(90)) == [1, 0]
        assert await cluster.call(cart, 1, pay, 3) == 1
        assert await cluster.call(cart, 1, pay, 3) == 2
        assert await cluster.call(cart, 1, told) == 7
        assert await cluster.call(cart, 1, drop, 3) == (True, 0)
        assert await cluster.call(cart, 1, drop, 3) == (False, 0)
        assert [await cluster.call(cart, 1, note, text) for text in "abc"] == [1, 2, 3]
        assert await cluster.call(cart, 2, note, "a") == 1
        first = await cluster.call(cart, 1, page)
        second = await cluster.call(cart, 1, page, first.next)
        assert [[row.product for row in each.rows] for each in (first, second)] == [[6, 4], [2, 0]]
        assert second.next is None


@pytest.mark.parametrize(
    ("item", "error", "told"),
    [
        ((1, 1, Decimal(5)), "RowExists", "row 1 of table cart/items of cart[1] exists already"),
        ((9, 1, Decimal(99)), "UniqueViolation", "1 has price=Decimal('99') already"),
        ((9, 1, Decimal(5), Decimal(6)), "CheckViolation", "does not meet the check 'voucher_fits'"),
        ((9, 0, Decimal(5)), "UnsupportedValue", "does not fit the row type Item: Expected `int` >= 1"),
    ],
    ids=["key", "unique", "check", "type"],
)
async def test_what_breaks_a_constraint_ends_the_transaction(item: tuple[Any, ...], error: str, told: str) -> None:
    async with embedded_cluster(APP) as cluster:
        await cluster.call(cart, 1, fill, 2)
        for function in (add, caught):
            with pytest.raises(TransactionAborted) as raised:
                await cluster.call(cart, 1, function, *item)
            assert raised.value.type == error
            assert told in raised.value.message


async def test_what_ends_a_function_of_rows() -> None:
    async with embedded_cluster(APP) as cluster:
        for function, error, text in [
            (forgets, "ForgottenAwait", "did not await ctx.rows(items).get: write `await ctx.rows(items).get(…)`"),
            (writes, "ReadOnlyViolation", "used ctx.rows(…).delete"),
        ]:
            with pytest.raises(TransactionAborted) as raised:
                await cluster.call(cart, 1, function)
            assert raised.value.type == error
            assert text in raised.value.message
        with pytest.raises(TransactionAborted, match="refers by product=5 to no row of cart/items"):
            await cluster.call(cart, 1, pay, 5)


async def test_many_at_once() -> None:
    """Concurrent inserts of one unique value: one commits, whatever the order."""
    async with embedded_cluster(APP) as cluster:
        calls = [cluster.call(cart, 1, add, number, 1, Decimal(7)) for number in range(20)]
        results: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
        assert sorted(type(each).__name__ for each in results) == ["Item"] + ["TransactionAborted"] * 19
        assert await cluster.call(cart, 1, told) == 1
