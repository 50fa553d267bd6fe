"""The application's rules, each broken by replacing one function. Nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

import msgspec
import pytest

from benchmarks.marketplace import charging, graphs, settings
from benchmarks.marketplace.archive import archive
from benchmarks.marketplace.errors import EmptyCart
from benchmarks.marketplace.events import ProductChanged, ShipmentArchived, shipment_archived
from benchmarks.marketplace.services.cart import abandoning, checking_out
from benchmarks.marketplace.services.cart import replica as copies
from benchmarks.marketplace.services.cart.replica import Replica
from benchmarks.marketplace.services.cart.rows import cart, checkouts, items
from benchmarks.marketplace.services.customer.rows import counts, customer
from benchmarks.marketplace.services.order import arithmetic
from benchmarks.marketplace.services.product.rows import product
from benchmarks.marketplace.services.seller import dashboard as dashboards
from benchmarks.marketplace.services.shipment import delivering
from benchmarks.marketplace.services.shipment.rows import firsts, packages, shipment, shipments
from benchmarks.marketplace.services.stock import demand as demands
from benchmarks.marketplace.services.stock.rows import StockAnswer, stock, stock_items
from benchmarks.marketplace.values import ItemStatus, PackageStatus, ShipmentStatus
from styx import Operator

Patch = pytest.MonkeyPatch


def function(patch: Patch, operator: Operator[Any, Any], name: str, new: Callable[..., Any]) -> None:
    """Replaces what a registered function does; it takes arguments of the same types."""
    spec = operator.functions[name]
    patch.setattr(spec, "func", wraps(spec.func)(new))


def a_payment_is_not_told_to_the_customer(patch: Patch) -> None:
    async def nothing(ctx: Any, event: Any) -> None: ...

    function(patch, customer, "payment_succeeded", nothing)


def a_cart_reads_products(patch: Patch) -> None:
    patch.setattr(graphs, "CHECKOUT", [*graphs.CHECKOUT, ("cart.checkout", "product.show")])
    _asks_the_product(patch)


def a_cart_reads_products_behind_the_graph(patch: Patch) -> None:
    _asks_the_product(patch)


def _asks_the_product(patch: Patch) -> None:
    known = abandoning.retried

    async def asks(ctx: Any) -> None:
        await known(ctx)
        await ctx.call("product", "show", (1, 1))

    patch.setattr(checking_out, "retried", asks)


def a_replacement_is_not_told_to_the_stock(patch: Patch) -> None:
    async def nothing(ctx: Any, event: Any) -> None: ...

    function(patch, stock, "follow_product", nothing)


def a_replacement_comes_to_the_stock_later(patch: Patch) -> None:
    follow = stock.functions["follow_product"].func

    async def later(ctx: Any, event: Any) -> None:
        if event.product.name == "late":
            await follow(ctx, event)
        else:
            event.product.name = "late"
            ctx.after(timedelta(seconds=20), stock, "follow_product", ctx.key, (event,))

    function(patch, stock, "follow_product", later)


def a_submission_is_not_known_by_its_id(patch: Patch) -> None:
    async def forgetful(ctx: Any, sent: Any) -> Any:
        if await ctx.rows(checkouts).exists(checkout_id=sent.checkout_id) and not await ctx.rows(items).keys():
            raise EmptyCart("it was submitted, and is empty")
        return await original(ctx, sent)

    original = cart.functions["checkout"].func
    function(patch, cart, "checkout", forgetful)


def a_repeated_submission_is_told_as_a_new_one(patch: Patch) -> None:
    result = checking_out._result
    patch.setattr(checking_out, "_result", lambda row, *, repeated: result(row, repeated=False))


def a_cart_is_not_emptied(patch: Patch) -> None:
    async def checkout(ctx: Any, sent: Any) -> Any:
        before = await ctx.rows(items).select()
        result = await original(ctx, sent)
        if not result.repeated:
            for row in before:
                await ctx.rows(items).put(row)
        return result

    original = cart.functions["checkout"].func
    function(patch, cart, "checkout", checkout)


def more_is_reserved_than_there_is(patch: Patch) -> None:
    """Neither the function nor the table's check refuses it."""

    async def reserve(ctx: Any, quantity: int, version: str) -> StockAnswer:
        row = await ctx.rows(stock_items).get(ctx.key)
        if row.version != version:
            return StockAnswer(ItemStatus.UNAVAILABLE, 0)
        row.qty_reserved += quantity
        await ctx.rows(stock_items).put(row)
        return StockAnswer(ItemStatus.RESERVED, 0)

    function(patch, stock, "reserve", reserve)
    patch.setattr(stock_items, "checks", ())


def a_reservation_is_confirmed_twice(patch: Patch) -> None:
    confirm = stock.functions["confirm"].func

    async def twice(ctx: Any, quantity: int) -> None:
        row = await ctx.rows(stock_items).get(ctx.key)
        await confirm(ctx, quantity)
        if row.qty_reserved >= 2 * quantity:
            await confirm(ctx, quantity)

    function(patch, stock, "confirm", twice)


def a_failed_payment_gives_nothing_back(patch: Patch) -> None:
    async def nothing(ctx: Any, quantity: int) -> None: ...

    function(patch, stock, "release", nothing)


def a_failed_payment_gives_back_later(patch: Patch) -> None:
    """E7 is processed outside its transaction; in the end all is as it should be."""
    patch.setattr(settings, "REJECTED", 100.0)
    release = stock.functions["release"].func

    async def later(ctx: Any, quantity: int) -> None:
        if quantity < 1_000:
            ctx.after(timedelta(seconds=30), stock, "release", ctx.key, (quantity + 1_000,))
        else:
            await release(ctx, quantity - 1_000)

    function(patch, stock, "release", later)


def a_count_is_read_before_it_is_written(patch: Patch) -> None:
    async def payment(ctx: Any, event: Any) -> None:
        row = await ctx.rows(counts).get(ctx.key)
        if event.total_amount >= 0:
            event = replace_amount(event, -1 - row.success_payment_count)
            ctx.after(timedelta(seconds=5), customer, "payment_succeeded", ctx.key, (event,))
        else:
            row.success_payment_count = -event.total_amount
            await ctx.rows(counts).put(row)

    function(patch, customer, "payment_succeeded", payment)


def replace_amount(event: Any, amount: int) -> Any:
    return type(event)(event.buyer, event.order_id, amount, event.lines, event.date)


def a_package_is_counted_twice(patch: Patch) -> None:
    async def twice(ctx: Any, number: int) -> None:
        await ctx.rows(counts).add(ctx.key, delivery_count=number + 1)

    function(patch, customer, "packages_delivered", twice)


def a_stale_price_is_applied(patch: Patch) -> None:
    set_price = product.functions["set_price"].func

    async def anyway(ctx: Any, price: int, version: str) -> Any:
        found = await ctx.get()
        return await set_price(ctx, price, found.version)

    function(patch, product, "set_price", anyway)


def a_price_is_written_to_what_was_read_before(patch: Patch) -> None:
    """A price update reads the product in one transaction and writes it in another one."""
    set_price = product.functions["set_price"].func
    read: dict[Any, Any] = {}

    async def torn(ctx: Any, price: int, version: str) -> Any:
        current = await ctx.get()
        before = read.get(ctx.key)
        read[ctx.key] = (current.version, current.price)
        if before is not None and before[0] != current.version:
            current.version, _ = before
            await ctx.put(current)
            return await set_price(ctx, price, current.version)
        return await set_price(ctx, price, version)

    function(patch, product, "set_price", torn)


def a_delivery_takes_ten_shipments(patch: Patch) -> None:
    """By customers, of whom it serves a few, instead of by sellers."""

    async def oldest(ctx: Any) -> Any:
        found = await ctx.rows(firsts).select()
        return sorted(found, key=lambda first: (first.shipping_date, first.customer_id))[:2]

    patch.setattr(delivering, "oldest", oldest)


def a_delivery_sorts_by_text(patch: Patch) -> None:
    async def oldest(ctx: Any) -> Any:
        found = await ctx.rows(firsts).select()
        return sorted(found, key=lambda first: f"{first.customer_id}|{first.order_id}|{first.seller_id}")[:10]

    patch.setattr(delivering, "oldest", oldest)


def a_delivered_package_is_delivered_again(patch: Patch) -> None:
    async def deliver(ctx: Any, order_id: int, seller_ids: list[int]) -> None:
        theirs = [each for each in await ctx.rows(packages).select(order_id=order_id) if each.seller_id in seller_ids]
        already = [each for each in theirs if each.status == PackageStatus.DELIVERED]
        await original(ctx, order_id, seller_ids)
        again = already or theirs[:1]
        for each in again:
            await delivering._hand_over(ctx, each)
        ctx.call_async("customer", "packages_delivered", ctx.key, (len(again),))

    original = shipment.functions["deliver"].func
    function(patch, shipment, "deliver", deliver)


def a_delivery_fails(patch: Patch) -> None:
    async def deliver(ctx: Any, order_id: int, seller_ids: list[int]) -> None:
        raise LookupError("nothing to deliver")

    function(patch, shipment, "deliver", deliver)


def a_shipment_ends_before_its_last_package(patch: Patch) -> None:
    async def deliver(ctx: Any, order_id: int, seller_ids: list[int]) -> None:
        before = await ctx.rows(packages).select(order_id=order_id)
        theirs = [each for each in before if each.seller_id in seller_ids and each.status == PackageStatus.SHIPPED]
        steps = delivering._steps(before, theirs)
        await delivering._go_on(ctx, order_id, steps, before)
        for each in theirs:
            await delivering._hand_over(ctx, each)
        delivering._tell(ctx, before, theirs, steps)

    function(patch, shipment, "deliver", deliver)


def a_refusal_is_not_told_to_the_customer(patch: Patch) -> None:
    async def nothing(ctx: Any, event: Any) -> None: ...

    function(patch, customer, "reservation_failed", nothing)


def a_price_is_not_told_to_the_copy(patch: Patch) -> None:
    follow = copies.follow

    async def drops(ctx: Any, event: ProductChanged) -> None:
        if event.change % 2:
            await follow(ctx, event)

    drops.__name__ = "follow"
    patch.setattr(copies, "follow", drops)


def copies_lag(seconds: Callable[[Any], float], *, guarded: bool) -> Callable[[Patch], None]:
    """Copies take each change over so much later, whatever came in between if they are not `guarded`."""

    def mutation(patch: Patch) -> None:
        async def relay(ctx: Any, event: ProductChanged) -> None:
            ctx.after(timedelta(seconds=seconds(event)), "replica", "follow", ctx.key, (event,))

        async def follow(ctx: Any, event: ProductChanged) -> None:
            copy = await ctx.get()
            if not guarded or copy is None or copy.change < event.change:
                await ctx.put(Replica(event.price, event.version, event.active, event.change))

        patch.setattr(copies, "relay", relay)
        patch.setattr(copies, "follow", follow)

    return mutation


def a_board_is_of_another_moment(patch: Patch) -> None:
    read = dashboards._board
    kept: dict[int, Any] = {}

    async def board(ctx: Any) -> Any:
        before = kept.get(ctx.key)
        kept[ctx.key] = await read(ctx)
        return before or kept[ctx.key]

    patch.setattr(dashboards, "_board", board)


def not_archived(which: Callable[[Any], bool], module: Any) -> Callable[[Patch], None]:
    """What `which` holds of is not archived by this module."""
    original = module.archive

    def mutation(patch: Patch) -> None:
        patch.setattr(module, "archive", lambda ctx, event, value: which(value) or original(ctx, event, value))

    return mutation


def only_the_last_seller_hears_of_the_end(patch: Patch) -> None:
    follow = delivering._tell

    def tell(ctx: Any, everything: Any, delivered: Any, steps: list[ShipmentStatus]) -> None:
        class Deaf:
            def __getattr__(self, name: str) -> Any:
                return getattr(ctx, name)

            def call_async(self, operator: Any, called: Any, key: Any, params: Any = ()) -> None:
                if ShipmentStatus.CONCLUDED not in steps or operator != "seller" or key == last:
                    ctx.call_async(operator, called, key, params)

        last = max(each.seller_id for each in everything)
        deaf: Any = Deaf()
        follow(deaf, everything, delivered, steps)

    patch.setattr(delivering, "_tell", tell)


def a_shipment_is_archived_before_its_last_package(patch: Patch) -> None:
    go_on = delivering._go_on

    async def early(ctx: Any, order_id: int, steps: list[ShipmentStatus], everything: Any) -> None:
        await go_on(ctx, order_id, steps, everything)
        if ShipmentStatus.IN_PROGRESS in steps:
            found = await ctx.rows(shipments).get(order_id)
            archive(ctx, shipment_archived, ShipmentArchived(ctx.key, found, everything))

    patch.setattr(delivering, "_go_on", early)
    patch.setattr(delivering, "archive", lambda ctx, event, value: None)


def the_provider_is_not_listened_to(patch: Patch) -> None:
    patch.setattr(charging, "decide", lambda number: charging.Answer.APPROVED)


def freight_is_paid_for_each_piece(patch: Patch) -> None:
    patch.setattr(
        arithmetic,
        "total_invoice",
        lambda lines: sum(line.total_amount + line.freight_value * line.quantity for line in lines),
    )


def a_voucher_pays_more_than_its_line(patch: Patch) -> None:
    line = arithmetic.line

    def uncapped(number: int, item: Any) -> Any:
        made = line(number, item)
        incentive = item.voucher + item.price_discount
        values = {name: getattr(made, name) for name in made.__struct_fields__}
        return type(made)(
            **values | {"total_incentive": incentive, "total_amount": made.total_items - incentive // 100}
        )

    patch.setattr(arithmetic, "line", uncapped)


def a_retry_does_not_count(patch: Patch) -> None:
    async def nothing(ctx: Any) -> None: ...

    patch.setattr(checking_out, "retried", nothing)


def low_stock_counts_what_is_reserved(patch: Patch) -> None:
    async def judge(ctx: Any, row: Any, **given: Any) -> None:
        reserved, row.qty_reserved = row.qty_reserved, 0
        await original(ctx, row, **given)
        row.qty_reserved = reserved

    original = demands.judge
    for module in (stock.functions["reserve"].func.__globals__, demands.__dict__):
        patch.setitem(module, "judge", judge)


def a_price_that_rose_is_paid(patch: Patch) -> None:
    matched = checking_out.matched

    def without_discount(row: Any, answer: Any) -> Any:
        made = matched(row, answer)
        return msgspec.structs.replace(made, price_discount=0)

    patch.setattr(checking_out, "matched", without_discount)
