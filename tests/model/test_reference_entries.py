"""References to other entities in a running engine: who is refused, what is deleted, and which entries are left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from styx import App, Check, Context, Index, Operator, PartitionContext, Ref
from styx.model.limits import Limits
from styx.testing import embedded_cluster


class Stock(msgspec.Struct):
    sku: str
    shelf: int = 0


class Line(msgspec.Struct):
    number: int
    product: int | None = None
    sku: str | None = None


class Shop:
    """Products, which have a value and stock, and carts with lines: `on_delete` is that of both references."""

    def __init__(self, on_delete: str, *, limits: Limits | None = None, default: int | None = None) -> None:
        class Row(Line):
            product: int | None = default

        self.limits = limits or Limits()
        self.Row = Row
        product = self.product = Operator("product", key_type=int)
        cart = self.cart = Operator("cart")
        stock = self.stock = product.table(
            "stock", Stock, key="sku", indexes=Index("on_shelf", equal="shelf", scope="partition")
        )
        checks = Check("not 9", lambda row: row.product != 9)
        references = [Ref("product", product, on_delete), Ref(("product", "sku"), stock, on_delete)]
        self.lines = cart.table("lines", Row, key="number", references=references, checks=checks)

        self._register_products()
        self._register_carts()
        self.app = App("shop", [product, cart])

    def _register_products(self) -> None:
        product, stock = self.product, self.stock

        @product.register
        async def create(ctx: Context) -> None:
            await ctx.put("there")

        @product.register
        async def drop(ctx: Context) -> None:
            await ctx.delete()

        @product.register
        async def drop_and_create(ctx: Context) -> None:
            await ctx.delete()
            await ctx.put("again")

        @product.register
        async def store(ctx: Context, sku: str) -> None:
            await ctx.rows(stock).put(Stock(sku))

        @product.register
        async def unstore(ctx: Context, sku: str) -> None:
            await ctx.rows(stock).delete(sku)

        @product.register
        async def clear(ctx: Context) -> int:
            return await ctx.rows(stock).delete_where()

        @product.register_partition
        async def empty(ctx: PartitionContext, shelf: int) -> None:
            for key, sku in await ctx.rows(stock).keys(shelf=shelf):
                await ctx.rows(stock, of=key).delete(sku)

        @product.register
        async def empty_all(ctx: Context, shelf: int) -> None:
            await ctx.call_all(product, "empty", (shelf,))

    def _register_carts(self) -> None:
        product, cart, lines, row = self.product, self.cart, self.lines, self.Row

        @cart.register
        async def add(ctx: Context, number: int, of: int | None, sku: str | None = None) -> None:
            await ctx.rows(lines).insert(row(number, of, sku))

        @cart.register
        async def put(ctx: Context, number: int, of: int | None, sku: str | None = None) -> None:
            await ctx.rows(lines).put(row(number, of, sku))

        @cart.register
        async def move(ctx: Context, number: int, of: int | None) -> None:
            await ctx.rows(lines).update(number, product=of)

        @cart.register
        async def remove(ctx: Context, number: int) -> None:
            await ctx.rows(lines).delete(number)

        @cart.register
        async def remove_and_drop(ctx: Context, number: int, of: int) -> None:
            await ctx.rows(lines).delete(number)
            await ctx.call(product, "drop", of)

        @cart.register
        async def drop_and_remove(ctx: Context, number: int, of: int) -> None:
            await ctx.call(product, "drop", of)
            await ctx.rows(lines).delete(number)

        @cart.register
        async def add_and_create(ctx: Context, number: int, of: int) -> None:
            await ctx.rows(lines).insert(row(number, of))
            await ctx.call(product, "create", of)

        @cart.register
        async def insert_behind_what_deletes(ctx: Context, number: int, of: int) -> None:
            ctx.call_async(cart, remove, ctx.key, (number,))
            await ctx.rows(lines).insert(row(number, of))

        @cart.register
        async def swing(ctx: Context, number: int, one: int, other: int) -> None:
            await ctx.rows(lines).update(number, product=other)
            await ctx.rows(lines).update(number, product=one)

        @cart.register
        async def move_and_drop(ctx: Context, number: int, one: int, other: int) -> None:
            await ctx.rows(lines).update(number, product=other)
            await ctx.call(product, "drop", one)

        @cart.register
        async def swing_while_gone(ctx: Context, number: int, one: int, other: int) -> None:
            ctx.call_async(product, "drop_and_create", one)
            await ctx.rows(lines).update(number, product=other)
            await ctx.rows(lines).update(number, product=one)

    def entries(self, state: dict[Any, bytes]) -> dict[tuple[Any, ...], int]:
        """The counts of all entries, by their keys, of the encoded state."""
        tables = {foreign.table.full_name: foreign.table.row_type for foreign in self.lines.consequences}
        return {key: tables[name].decode(data).times for (name, key), data in state.items() if name in tables}


class Use:
    """Sends requests, and gives what is left."""

    def __init__(self, shop: Shop, cluster: Any) -> None:
        self.shop = shop
        self.cluster = cluster

    async def cart(self, function: str, *params: Any, key: str = "ann") -> Any:
        return await self.cluster.call(self.shop.cart, key, function, *params)

    async def product(self, key: int, function: str, *params: Any) -> Any:
        return await self.cluster.call(self.shop.product, key, function, *params)

    async def refused(self, operator: Operator, key: Any, function: str, *params: Any) -> str:
        reply = await self.cluster.request(operator, key, function, *params)
        assert reply.error is not None
        return f"{reply.error.type}: {reply.error.message}"

    async def lines(self, key: str = "ann") -> list[tuple[Any, ...]]:
        rows = self.cluster.rows(self.shop.lines, key)
        return [(row.number, row.product) for row in rows]

    def entries(self) -> dict[tuple[Any, ...], int]:
        return self.shop.entries(self.cluster.engine.encoded_state())


def run(shop: Shop, test: Callable[[Use], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with embedded_cluster(shop.app, limits=shop.limits) as cluster:
            await test(Use(shop, cluster))

    asyncio.run(main())


def test_a_row_needs_the_entity_that_it_refers_to() -> None:
    shop = Shop("restrict")

    async def test(use: Use) -> None:
        for function in ("add", "put"):
            message = await use.refused(shop.cart, "ann", function, 1, 7)
            assert message.startswith(
                "ReferenceViolation: row 1 of table cart/lines of cart['ann'] refers to product[7], which does not "
                "exist: call a function of it that puts a value first"
            )
        assert await use.lines() == []
        await use.cart("add", 1, None)
        await use.cart("put", 2, None)
        assert use.entries() == {}
        await use.product(7, "create")
        await use.cart("put", 1, 7)
        assert use.entries() == {(7, "ann", 1): 1}
        message = await use.refused(shop.cart, "ann", "move", 1, 8)
        assert "refers to product[8], which does not exist" in message
        await use.product(8, "create")
        await use.cart("move", 1, 8)
        assert use.entries() == {(8, "ann", 1): 1}
        await use.cart("move", 1, None)
        assert use.entries() == {}

    run(shop, test)


def test_a_row_needs_the_row_that_it_refers_to() -> None:
    shop = Shop("restrict")

    async def test(use: Use) -> None:
        await use.product(7, "create")
        message = await use.refused(shop.cart, "ann", "add", 1, 7, "x")
        assert (
            "refers to row 'x' of table product/stock of product[7], which does not exist: insert that row" in message
        )
        await use.product(7, "store", "x")
        await use.product(7, "store", "xy")
        await use.cart("add", 1, 7, "x")
        assert use.entries() == {(7, "ann", 1): 1, (7, "x", "ann", 1): 1}
        await use.product(7, "unstore", "xy")
        message = await use.refused(shop.product, 7, "unstore", "x")
        assert message.startswith(
            "ReferenceViolation: row 'x' of table product/stock of product[7] cannot be deleted: row 1 of table "
            "cart/lines of cart['ann'] refers to it; delete that row first"
        )
        assert "cannot be deleted" in await use.refused(shop.product, 7, "clear")
        await use.cart("remove", 1)
        assert use.entries() == {}
        assert await use.product(7, "clear") == 1

    run(shop, test)


def test_what_is_referred_to_cannot_be_deleted() -> None:
    shop = Shop("restrict")

    async def test(use: Use) -> None:
        await use.product(7, "create")
        await use.cart("add", 1, 7)
        assert "product[7] cannot be deleted: row 1" in await use.refused(shop.product, 7, "drop")
        assert "product[7] cannot be deleted" in await use.refused(shop.product, 7, "drop_and_create")
        assert "product[7] cannot be deleted" in await use.refused(shop.cart, "ann", "drop_and_remove", 1, 7)
        await use.cart("remove_and_drop", 1, 7)
        assert use.entries() == {}
        assert await use.lines() == []

    run(shop, test)


def test_a_parent_may_come_later_in_the_transaction() -> None:
    shop = Shop("restrict")

    async def test(use: Use) -> None:
        await use.cart("add_and_create", 1, 7)
        assert use.entries() == {(7, "ann", 1): 1}

    run(shop, test)


def test_entries_do_not_depend_on_the_order_of_implied_calls() -> None:
    """The call that takes the entry runs before the one that adds it: it was implied earlier in call-path order."""
    shop = Shop("restrict")

    async def test(use: Use) -> None:
        await use.product(7, "create")
        await use.product(8, "create")
        await use.cart("insert_behind_what_deletes", 1, 7)
        assert use.entries() == {}
        assert await use.lines() == []
        await use.cart("add", 1, 7)
        await use.cart("swing", 1, 7, 8)
        assert use.entries() == {(7, "ann", 1): 1}
        assert await use.lines() == [(1, 7)]

    run(shop, test)


def test_rows_go_with_what_they_refer_to() -> None:
    shop = Shop("cascade")

    async def test(use: Use) -> None:
        for product in (7, 8):
            await use.product(product, "create")
            await use.product(product, "store", "x")
        for cart in ("ann", "bob"):
            await use.cart("add", 1, 7, key=cart)
            await use.cart("add", 2, 8, "x", key=cart)
            await use.cart("add", 3, 7, "x", key=cart)
        assert len(use.entries()) == 10
        await use.product(7, "drop")
        for cart in ("ann", "bob"):
            assert await use.lines(cart) == [(2, 8)]
        assert set(use.entries()) == {(8, "ann", 2), (8, "bob", 2), (8, "x", "ann", 2), (8, "x", "bob", 2)}
        assert await use.product(8, "clear") == 1
        assert use.entries() == {}
        assert await use.lines() == await use.lines("bob") == []

    run(shop, test)


def test_partition_functions_delete_what_is_referred_to() -> None:
    shop, restricted = Shop("cascade"), Shop("restrict")

    async def fill(use: Use) -> None:
        for product in range(5):
            await use.product(product, "create")
            await use.product(product, "store", "x")
            await use.cart("add", product, product, "x", key=f"c{product}")

    async def test(use: Use) -> None:
        await fill(use)
        await use.product(0, "empty_all", 0)
        assert use.entries() == {}
        assert [await use.lines(f"c{product}") for product in range(5)] == [[]] * 5

    async def refused(use: Use) -> None:
        await fill(use)
        assert "refers to it; delete that row first" in await use.refused(restricted.product, 0, "empty_all", 0)
        assert len(use.entries()) == 10

    run(shop, test)
    run(restricted, refused)


def test_a_deletion_that_makes_too_many_calls_is_refused() -> None:
    shop = Shop("cascade", limits=Limits(invocations_max=12))

    async def test(use: Use) -> None:
        await use.product(7, "create")
        for number in range(6):
            await use.cart("add", number, 7, key=f"c{number}")
        message = await use.refused(shop.product, 7, "drop")
        assert message.startswith("CallLimitExceeded")
        await use.cart("remove", 0, key="c0")
        await use.product(7, "drop")
        assert use.entries() == {}

    run(shop, test)


def test_a_row_that_leaves_and_comes_back_while_its_parent_does_is_deleted() -> None:
    shop = Shop("cascade")

    async def test(use: Use) -> None:
        await use.product(7, "create")
        await use.product(8, "create")
        await use.cart("add", 1, 7)
        await use.cart("swing_while_gone", 1, 7, 8)
        assert await use.lines() == []
        assert use.entries() == {}

    run(shop, test)


@pytest.mark.parametrize("on_delete", ["restrict", "cascade", "set_null"])
def test_a_row_that_has_left_a_parent_does_not_follow_it(on_delete: str) -> None:
    shop = Shop(on_delete)

    async def test(use: Use) -> None:
        await use.product(7, "create")
        await use.product(8, "create")
        await use.cart("add", 1, 7)
        await use.cart("move_and_drop", 1, 7, 8)
        assert await use.lines() == [(1, 8)]
        assert use.entries() == {(8, "ann", 1): 1}

    run(shop, test)


def test_columns_become_none() -> None:
    shop = Shop("set_null")

    async def test(use: Use) -> None:
        await use.product(7, "create")
        await use.cart("add", 1, 7)
        await use.cart("add", 2, 7)
        await use.product(7, "drop")
        assert await use.lines() == [(1, None), (2, None)]
        assert use.entries() == {}

    run(shop, test)


def test_columns_get_their_defaults_which_must_be_there() -> None:
    shop = Shop("set_default", default=8)

    async def test(use: Use) -> None:
        await use.product(7, "create")
        await use.cart("add", 1, 7)
        assert "refers to product[8], which does not exist" in await use.refused(shop.product, 7, "drop")
        await use.product(8, "create")
        await use.product(7, "drop")
        assert await use.lines() == [(1, 8)]
        assert use.entries() == {(8, "ann", 1): 1}
        assert "refers to product[8], which does not exist" in await use.refused(shop.product, 8, "drop")
        await use.product(8, "drop_and_create")
        assert await use.lines() == [(1, 8)]
        assert use.entries() == {(8, "ann", 1): 1}

    run(shop, test)


def test_defaults_are_checked() -> None:
    shop = Shop("set_default", default=9)

    async def test(use: Use) -> None:
        await use.product(7, "create")
        await use.product(9, "create")
        await use.cart("add", 1, 7)
        assert "does not meet the check 'not 9'" in await use.refused(shop.product, 7, "drop")
        assert await use.lines() == [(1, 7)]

    run(shop, test)


def test_loaded_rows_are_checked() -> None:
    shop = Shop("restrict")

    async def test(use: Use) -> None:
        with pytest.raises(Exception, match=r"refers to product\[7\], which does not exist"):
            await use.cluster.load_rows(shop.lines, [("ann", shop.Row(1, 7))])
        await use.cluster.load(shop.product, [(7, "there")])
        await use.cluster.load_rows(shop.lines, [("ann", shop.Row(1, 7)), ("bob", shop.Row(1, 7))])
        assert use.entries() == {(7, "ann", 1): 1, (7, "bob", 1): 1}

    run(shop, test)


def test_too_many_children_are_refused_by_name() -> None:
    shop = Shop("cascade", limits=Limits(rows_per_query_max=2))

    async def test(use: Use) -> None:
        await use.product(7, "create")
        for number in range(3):
            await use.cart("add", number, 7)
        message = await use.refused(shop.product, 7, "drop")
        assert "RowLimitExceeded: product[7] cannot be deleted: more than 2 rows refer to it" in message

    run(shop, test)


class Person(msgspec.Struct):
    friend: str


def test_a_circle_of_entities_is_deleted() -> None:
    person = Operator("person")
    friends = person.table("friends", Person, key="friend", references=Ref("friend", person, "cascade"))

    @person.register
    async def create(ctx: Context) -> None:
        await ctx.put("there")

    @person.register
    async def befriend(ctx: Context, friend: str) -> None:
        await ctx.rows(friends).insert(Person(friend))

    @person.register
    async def drop(ctx: Context) -> int:
        await ctx.delete()
        return await ctx.rows(friends).delete_where()

    async def main() -> None:
        async with embedded_cluster(App("friends", [person])) as cluster:
            for name in "abc":
                await cluster.call(person, name, create)
            for one, other in ("aa", "ab", "bc", "ca", "cb"):
                await cluster.call(person, one, befriend, other)
            await cluster.call(person, "a", drop)
            left = [key for name, key in cluster.state() if name == "person/friends"]
            assert sorted(left) == [("b", "c"), ("c", "b")]
            (entries,) = friends.consequences
            assert sorted(key for name, key in cluster.engine.encoded_state() if name == entries.table.full_name) == [
                ("b", "c", "b"),
                ("c", "b", "c"),
            ]

    asyncio.run(main())


def test_nothing_can_be_added_to_a_column_that_refers() -> None:
    shop = Shop("restrict")
    (by_product, by_stock) = shop.lines.consequences
    assert by_product.minds("product")
    assert not by_product.minds("sku")
    assert by_stock.minds("sku")


def test_an_operator_to_which_nothing_refers_deletes_alone() -> None:
    shop = Shop("restrict")
    assert not shop.product.functions["drop"].deletes_alone
    assert shop.cart.functions["remove"].deletes_alone
