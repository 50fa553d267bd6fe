"""New-Order (clause 2.4): a customer of a district orders 5 to 15 items, each from the stock of some warehouse.

The warehouse of an item is another one than the customer's now and then. A terminal knows its own, and sends all other
orders as local ones. An item that does not exist rolls the whole order back, with all that its earlier lines have done.
The district writes the order. The home warehouse prices all lines in one call, and takes from its own stock those that
it supplies; each other warehouse gets one call for its lines.
Rows under a fresh number are put, not inserted: whether one is there need not be read.
A call to another warehouse never carries the order's number. That number changes when the transaction is run again
after others of the district, and each change would cost the lock phase another round.
"""

from __future__ import annotations

from typing import Final, NamedTuple

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


class Supplied(NamedTuple):
    """The stock's columns for a line: the quantity left, and the district's text for the line."""

    left: int
    dist_info: str
    original: bool


class Offer(NamedTuple):
    """An item's columns for a line. `original` says that it is of a brand; `price` is in cents."""

    name: str
    price: int
    original: bool


class Sale(tables.Row):
    """The home warehouse's part of an order: W_TAX, each line's item, and the stock of the lines that it supplies."""

    w_tax: int
    offers: list[Offer]
    supplied: list[Supplied]


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
    customer = there(ctx, "customer", await ctx.rows(tables.customer).get(c_id), c_id)
    sale: Sale = await ctx.call(tables.warehouse, sell, w_id, (d_id, lines))
    supplied = await _supplied(ctx, lines, sale.supplied)
    all_local = len(sale.supplied) == len(lines)
    now = now_us(ctx)
    await ctx.rows(tables.order).put(tables.OrderRow(c_id, now, None, len(lines), int(all_local), o_id))
    await ctx.rows(tables.new_order).put(tables.NewOrderRow(o_id))
    ordered = await _enter_lines(ctx, o_id, lines, sale.offers, supplied)
    return NewOrderAnswer(
        o_id,
        now,
        customer.last_name,
        customer.credit,
        customer.discount,
        sale.w_tax,
        district.tax,
        total([line.amount for line in ordered], customer.discount, sale.w_tax + district.tax),
        ordered,
    )


async def _supplied(ctx: Context, lines: list[Wanted], at_home: list[Supplied]) -> list[Supplied]:
    """What was taken from stock for each line: at home already, from other warehouses now."""
    w_id, d_id = ctx.key
    taken = {w_id: iter(at_home)}
    for other in dict.fromkeys(line.supply_w_id for line in lines if line.supply_w_id != w_id):
        theirs = [line for line in lines if line.supply_w_id == other]
        taken[other] = iter(await ctx.call(tables.warehouse, supply, other, (d_id, theirs)))
    return [next(taken[line.supply_w_id]) for line in lines]


async def _enter_lines(
    ctx: Context, o_id: int, lines: list[Wanted], offers: list[Offer], supplied: list[Supplied]
) -> list[OrderedLine]:
    """Inserts the lines of this district's order `o_id`."""
    rows = ctx.rows(tables.order_line)
    ordered = []
    for number, (line, item, taken) in enumerate(zip(lines, offers, supplied, strict=True), 1):
        amount = line.quantity * item.price
        await rows.put(
            tables.OrderLineRow(line.i_id, line.supply_w_id, None, line.quantity, amount, taken.dist_info, o_id, number)
        )
        brand = "B" if item.original and taken.original else "G"
        ordered.append(OrderedLine(item.name, taken.left, brand, item.price, amount))
    return ordered


def total(amounts: list[int], discount: int, taxes: int) -> int:
    """The order's price in cents, rounded half up; rates in ten-thousandths."""
    exact = sum(amounts) * (WHOLE - discount) * (WHOLE + taxes)
    return (exact + WHOLE * WHOLE // 2) // (WHOLE * WHOLE)


@tables.warehouse.register
async def sell(ctx: Context, d_id: int, lines: list[Wanted]) -> Sale:
    """Prices all lines of an order of this warehouse's district `d_id`, and takes from stock those that it supplies.

    Raises `ItemNotFound`.
    """
    w_id = ctx.key
    warehouse: tables.Warehouse = there(ctx, "warehouse", await ctx.get())
    catalogue = ctx.rows(tables.item)
    offers = []
    for line in lines:
        item = await catalogue.get(line.i_id)
        if item is None:
            raise ItemNotFound("Item number is not valid")
        offers.append(Offer(item.name, item.price, ORIGINAL in item.data))
    own = [line for line in lines if line.supply_w_id == w_id]
    return Sale(warehouse.tax, offers, await _take(ctx, d_id, own, remote=False))


@tables.warehouse.register
async def supply(ctx: Context, d_id: int, lines: list[Wanted]) -> list[Supplied]:
    """Takes the lines of another warehouse's order out of this stock, for a district with the number `d_id`."""
    return await _take(ctx, d_id, lines, remote=True)


async def _take(ctx: Context, d_id: int, lines: list[Wanted], *, remote: bool) -> list[Supplied]:
    rows = ctx.rows(tables.stock)
    supplied = []
    for line in lines:
        stock = there(ctx, "stock", await rows.get(line.i_id), line.i_id)
        stock.quantity -= line.quantity
        if stock.quantity < RESERVE:
            stock.quantity += RESTOCKED
        stock.ytd += line.quantity
        stock.order_cnt += 1
        stock.remote_cnt += remote
        await rows.put(stock)
        supplied.append(Supplied(stock.quantity, stock.dists[d_id - 1], ORIGINAL in stock.data))
    return supplied
