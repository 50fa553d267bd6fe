"""New-Order (clause 2.4): a customer of a district orders 5 to 15 items, each from the stock of some warehouse.

The warehouse of an item is another one than the customer's now and then. A terminal knows its own, and sends all other
orders as local ones. An item that does not exist rolls the whole order back, with all that its earlier lines have done.
A call to another warehouse never carries the order's number. That number changes when the transaction is run again
after others of the district, and each change would cost the lock phase another round.
"""

from __future__ import annotations

from typing import Final

from benchmarks.tpcc import tables
from benchmarks.tpcc.answers import NewOrderAnswer, OrderedLine, Wanted
from benchmarks.tpcc.rows import now_us, there
from styx import Context

RESERVE: Final = 10
"""An item is restocked if fewer than this would be left after an order."""
RESTOCKED: Final = 91
"""How many of an item arrive when it is restocked."""
ORIGINAL: Final = "ORIGINAL"
"""In the data of items and of stock that are of a brand."""
WHOLE: Final = 10_000
"""A rate of 1, in ten-thousandths."""


class ItemNotFound(Exception):
    """The order names an item that is not in the catalogue."""


class Terms(tables.Row):
    """The customer's columns for an order."""

    last: str
    credit: str
    discount: int


class Offer(tables.Row):
    """An item's columns for an order. `original` says that it is of a brand; `price` is in cents."""

    name: str
    price: int
    original: bool


class Supplied(tables.Row):
    """The stock's columns for an order: the quantity left, and the district's text for the order's line."""

    left: int
    dist_info: str
    original: bool


@tables.district.register
async def new_order(ctx: Context, c_id: int, lines: list[Wanted]) -> NewOrderAnswer:
    """Makes the order with this district's next number. Raises `ItemNotFound`."""
    return await _make(ctx, c_id, lines)


@tables.district.register(local=True)
async def local_new_order(ctx: Context, c_id: int, lines: list[Wanted]) -> NewOrderAnswer:
    """As `new_order`, with all items from this warehouse."""
    return await _make(ctx, c_id, lines)


async def _make(ctx: Context, c_id: int, lines: list[Wanted]) -> NewOrderAnswer:
    w_id, d_id = ctx.key
    district: tables.District = there(ctx, "district", await ctx.get())
    o_id = district.next_o_id
    district.next_o_id = o_id + 1
    await ctx.put(district)
    w_tax: int = await ctx.call(tables.warehouse, sales_tax, w_id)
    terms: Terms = await ctx.call(tables.customer, terms_of_sale, (w_id, d_id, c_id))
    all_local = all(wanted.supply_w_id == w_id for wanted in lines)
    ctx.call_async(tables.order, enter, (w_id, d_id, o_id), (c_id, len(lines), all_local))
    ctx.call_async(tables.new_order, enqueue, (w_id, d_id, o_id))
    ctx.call_async(tables.customer_order, point_to, (w_id, d_id, c_id), (o_id,))
    ordered = [await order_item(ctx, o_id, number, wanted) for number, wanted in enumerate(lines, 1)]
    return NewOrderAnswer(
        o_id,
        now_us(ctx),
        terms.last,
        terms.credit,
        terms.discount,
        w_tax,
        district.tax,
        total([line.amount for line in ordered], terms.discount, w_tax + district.tax),
        ordered,
    )


async def order_item(ctx: Context, o_id: int, number: int, wanted: Wanted) -> OrderedLine:
    """Line `number` of this district's order `o_id`: takes the item from stock and writes the line down."""
    w_id, d_id = ctx.key
    i_id, supply_w_id, quantity = wanted.i_id, wanted.supply_w_id, wanted.quantity
    item: Offer = await ctx.call(tables.item, offer, (w_id, i_id))
    taken: Supplied = await ctx.call(tables.stock, supply, (supply_w_id, i_id), (d_id, quantity, supply_w_id != w_id))
    amount = quantity * item.price
    ctx.call_async(
        tables.order_line,
        enter_line,
        (w_id, d_id, o_id, number),
        (i_id, supply_w_id, quantity, amount, taken.dist_info),
    )
    brand = "B" if item.original and taken.original else "G"
    return OrderedLine(item.name, taken.left, brand, item.price, amount)


def total(amounts: list[int], discount: int, taxes: int) -> int:
    """The order's price in cents, rounded half up; rates in ten-thousandths."""
    exact = sum(amounts) * (WHOLE - discount) * (WHOLE + taxes)
    return (exact + WHOLE * WHOLE // 2) // (WHOLE * WHOLE)


@tables.warehouse.register
async def sales_tax(ctx: Context) -> int:
    """W_TAX, in ten-thousandths."""
    warehouse: tables.Warehouse = there(ctx, "warehouse", await ctx.get())
    return warehouse.tax


@tables.customer.register
async def terms_of_sale(ctx: Context) -> Terms:
    """Who this customer is to an order."""
    customer: tables.Customer = there(ctx, "customer", await ctx.get())
    return Terms(customer.last, customer.credit, customer.discount)


@tables.item.register
async def offer(ctx: Context) -> Offer:
    """This item as the catalogue has it. Raises `ItemNotFound`."""
    item: tables.Item | None = await ctx.get()
    if item is None:
        raise ItemNotFound("Item number is not valid")
    return Offer(item.name, item.price, ORIGINAL in item.data)


@tables.stock.register
async def supply(ctx: Context, d_id: int, quantity: int, remote: bool) -> Supplied:
    """Takes `quantity` out of this stock for an order of a district with the number `d_id`."""
    stock: tables.Stock = there(ctx, "stock", await ctx.get())
    stock.quantity -= quantity
    if stock.quantity < RESERVE:
        stock.quantity += RESTOCKED
    stock.ytd += quantity
    stock.order_cnt += 1
    stock.remote_cnt += remote
    await ctx.put(stock)
    return Supplied(stock.quantity, stock.dists[d_id - 1], ORIGINAL in stock.data)


@tables.order.register
async def enter(ctx: Context, c_id: int, ol_cnt: int, all_local: bool) -> None:
    """Inserts this order."""
    await ctx.put(tables.Order(c_id, now_us(ctx), None, ol_cnt, int(all_local)))


@tables.new_order.register
async def enqueue(ctx: Context) -> None:
    """Inserts this order among those to be delivered."""
    await ctx.put(tables.NewOrder())


@tables.customer_order.register
async def point_to(ctx: Context, o_id: int) -> None:
    """This customer's last order is `o_id` from now on."""
    await ctx.put(o_id)


@tables.order_line.register
async def enter_line(ctx: Context, i_id: int, supply_w_id: int, quantity: int, amount: int, dist_info: str) -> None:
    """Inserts this line of an order. `amount` in cents."""
    await ctx.put(tables.OrderLine(i_id, supply_w_id, None, quantity, amount, dist_info))
