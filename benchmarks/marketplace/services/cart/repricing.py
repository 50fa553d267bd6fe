"""Prices in open carts, if they are to change with the product's and not only at the checkout.

Either way a customer pays the same. Here customers see it earlier, and a price update finds all carts that hold the
product: it asks every partition, and is in conflict with what changes these carts.
"""

from __future__ import annotations

from benchmarks.marketplace.services.cart.rows import cart, items
from styx import PartitionContext


@cart.register_partition
async def reprice_here(ctx: PartitionContext, seller_id: int, product_id: int, version: str, price: int) -> int:
    """Gives the partition's items of this product and version the price, and says how many have changed."""
    found = await ctx.rows(items).select(seller_id=seller_id, product_id=product_id)
    others = [customer for customer, row in found if row.version == version and row.unit_price != price]
    for customer in others:
        await ctx.rows(items, of=customer).update((seller_id, product_id), unit_price=price)
    return len(others)
