"""Implied calls: every statement that changes a row makes them, in its transaction, wherever it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from styx import App, Context, Operator, PartitionContext, Ref, Rows, TransactionAborted
from styx.errors import RequestRejected
from styx.messages import Request
from styx.model.consequence import Consequence, ImpliedCall
from styx.model.internal_operator import InternalOperator
from styx.testing import EmbeddedCluster, SerialReference, embedded_cluster

pytestmark = pytest.mark.anyio


class Item(msgspec.Struct):
    product: int
    quantity: int = 1
    of: int | None = None


class Total(msgspec.Struct):
    """What is held of a product over all carts."""

    one: int
    quantity: int


cart = Operator("cart", key_type=int)
items = cart.table("items", Item, key="product", references=[Ref("of", "items", on_delete="cascade")])
totals_of = InternalOperator("cart*totals", int)
totals: Any = totals_of.table("totals", Total, key="one")


async def add(ctx: Context, quantity: int, who: Any) -> None:
    rows = ctx.rows(totals)
    held = await rows.get(0, Total(0, 0))
    if held.quantity + quantity > 100:
        raise ValueError(f"{who}: too many")
    await rows.put(Total(0, held.quantity + quantity))


totals_of.register(add)


class Totals(Consequence):
    """Adds what a change of a row adds to the total of its product."""

    def calls(self, key: Any, old: Any, new: Any) -> Iterator[ImpliedCall]:
        change = (new.quantity if new else 0) - (old.quantity if old else 0)
        if change:
            yield ImpliedCall(totals_of, "add", key[-1], (change, key))


items.consequences.append(Totals())
cart.internal.append(totals_of)


def of(ctx: Any) -> Rows[Item]:
    rows: Rows[Item] = ctx.rows(items)
    return rows


@cart.register
async def insert(ctx: Context, product: int, quantity: int, under: int | None = None) -> None:
    await of(ctx).insert(Item(product, quantity, under))


@cart.register
async def put(ctx: Context, product: int, quantity: int) -> None:
    await of(ctx).put(Item(product, quantity))


@cart.register
async def update(ctx: Context, product: int, quantity: int) -> None:
    await of(ctx).update(product, quantity=quantity)


@cart.register
async def delete(ctx: Context, product: int) -> None:
    await of(ctx).delete(product)


@cart.register
async def clear(ctx: Context) -> None:
    await of(ctx).delete_where(scan=True)


@cart.register
async def twice(ctx: Context, product: int) -> None:
    """The called function's change comes after this one's, and its implied call before."""
    ctx.call_async(cart, update, ctx.key, (product, 7))
    await of(ctx).update(product, quantity=50)


@cart.register
async def all_get(ctx: Context, keys: list[int], quantity: int) -> None:
    ctx.call_all_async(cart, each_gets, (keys, quantity))


@cart.register_partition
async def each_gets(ctx: PartitionContext, keys: list[int], quantity: int) -> None:
    for key in keys:
        if ctx.holds(key):
            await ctx.rows(items, of=key).put(Item(1, quantity))


@cart.register
async def forbidden(ctx: Context) -> None:
    await ctx.call("cart*totals", "add", 1, (5, "me"))


app = App("shop", [cart])
STEPS: list[tuple[int, str, list[Any]]] = [
    (1, "insert", [1, 10]),
    (2, "put", [1, 20]),
    (2, "put", [1, 5]),
    (2, "update", [1, 6]),
    (1, "insert", [2, 30, 1]),
    (2, "twice", [1]),
    (1, "delete", [1]),  # and product 2 with it
    (3, "insert", [3, 101]),  # refused
    (3, "all_get", [[3, 4, 5, 6], 9]),
    (4, "clear", []),
]
HELD = {1: 34, 2: 0}


async def run(cluster: EmbeddedCluster) -> list[Any]:
    results = []
    for key, function, arguments in STEPS:
        try:
            results.append(await cluster.call(cart, key, function, *arguments))
        except TransactionAborted as error:
            results.append(str(error))
    return results


def held(state: Any) -> dict[int, int]:
    decode = totals.row_type.decode
    return {key[0]: decode(data).quantity for (name, key), data in state.items() if name == totals.full_name}


async def test_all_statements_imply_their_calls() -> None:
    async with embedded_cluster(app) as cluster:
        results = await run(cluster)
    reference = SerialReference(app)
    for number, (key, function, arguments) in enumerate(STEPS):
        request = Request(str(number), "cart", key, function, msgspec.msgpack.encode(arguments))
        outcome = reference.run(number, 0, request)
        assert (outcome.error is None) == (results[number] is None), (number, outcome, results[number])
    assert held(reference.state) == HELD
    assert "[3, 3]: too many" in results[7]


async def test_nobody_else_can_call_what_the_engine_has_made() -> None:
    async with embedded_cluster(app) as cluster:
        with pytest.raises(RequestRejected, match="no operator 'cart\\*totals'"):
            await cluster.call("cart*totals", 1, "add", 5, "me")
        with pytest.raises(TransactionAborted, match="has no operator"):
            await cluster.call(cart, 1, forbidden)
