"""Pieces are reserved by checkouts, and taken or given back when the order is paid or not."""

from __future__ import annotations

from typing import Any

from benchmarks.marketplace.errors import StillReserved, UnknownStock
from benchmarks.marketplace.events import ProductUpdated, StockIncreased, product_updated, stock_increased
from benchmarks.marketplace.services.stock.demand import asked, forgotten, judge
from benchmarks.marketplace.services.stock.rows import StockAnswer, StockItem, stock, stock_items
from benchmarks.marketplace.values import ItemStatus, Pieces
from styx import Context


async def there(ctx: Context[Any, Any]) -> StockItem:
    """The entity's row. Raises `UnknownStock`."""
    item = await ctx.rows(stock_items).get(ctx.key)
    if item is None:
        raise UnknownStock(f"there is no stock of product {ctx.key[1]} of seller {ctx.key[0]}")
    return item


async def keep(ctx: Context[Any, Any], item: StockItem) -> None:
    """Writes the row, as changed now."""
    item.updated_at = ctx.now()
    await ctx.rows(stock_items).put(item)


@stock.register
async def reserve(ctx: Context, quantity: Pieces, version: str) -> StockAnswer:
    """Reserves pieces of this version, or says why not. What is asked for counts as demand in any case."""
    item = await ctx.rows(stock_items).get(ctx.key)
    if item is None:
        return StockAnswer(ItemStatus.UNAVAILABLE, 0)
    left = item.qty_available - item.qty_reserved
    if not item.active or item.version != version:
        status = ItemStatus.UNAVAILABLE
    elif quantity > left:
        status = ItemStatus.OUT_OF_STOCK
    else:
        status = ItemStatus.RESERVED
        item.qty_reserved += quantity
    await asked(ctx, item, quantity)
    await judge(ctx, item)
    await keep(ctx, item)
    return StockAnswer(status, left)


@stock.register
async def confirm(ctx: Context, quantity: Pieces) -> None:
    """Reserved pieces are paid, and leave."""
    item = await there(ctx)
    item.qty_available -= quantity
    item.qty_reserved -= quantity
    item.order_count += 1
    item.ytd += quantity
    await keep(ctx, item)


@stock.register
async def release(ctx: Context, quantity: Pieces) -> None:
    """Reserved pieces are not paid, and stay."""
    item = await there(ctx)
    item.qty_reserved -= quantity
    await judge(ctx, item)
    await keep(ctx, item)


@stock.register
async def restock(ctx: Context, quantity: Pieces) -> StockItem:
    """Pieces come. Raises `UnknownStock`."""
    item = await there(ctx)
    item.qty_available += quantity
    await judge(ctx, item)
    await keep(ctx, item)
    ctx.emit(stock_increased, StockIncreased(item.seller_id, item.product_id, quantity, item.qty_available))
    return item


@stock.on(product_updated, key=lambda event: (event.seller_id, event.product_id))
async def follow_product(ctx: Context, event: ProductUpdated) -> None:
    """Takes over version and activity of the product; quantities stay. A product may have no stock yet."""
    item = await ctx.rows(stock_items).get(ctx.key)
    if item is not None:
        item.version, item.active = event.product.version, event.product.active
        await keep(ctx, item)


@stock.register
async def clear(ctx: Context) -> None:
    """Prepares the row to go with its product. Raises `StillReserved`."""
    item = await ctx.rows(stock_items).get(ctx.key)
    if item is None:
        return
    if item.qty_reserved:
        raise StillReserved(
            f"{item.qty_reserved} pieces of product {ctx.key[1]} of seller {ctx.key[0]} are reserved: wait for their "
            "payments"
        )
    await forgotten(ctx, item)


@stock.register(read_only=True)
async def show(ctx: Context) -> StockItem | None:
    """The row as it is."""
    return await ctx.rows(stock_items).get(ctx.key)
