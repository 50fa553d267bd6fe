"""The app: the price of a product in one operator, its discount in another, and a cart that shows both.

An administrator changes both in one transaction, and both get the same number. So whoever sees two numbers has seen a
torn state: a new price with an old discount. After the test case in section 4.2 of the μTCC paper.
"""

from __future__ import annotations

from styx import App, Context, Operator

price = Operator("price", key_type=int)
discount = Operator("discount", key_type=int)
cart = Operator("cart", key_type=int)


@price.register
async def change(ctx: Context) -> int:
    """Gives the product another price, and another discount."""
    number: int = await ctx.get(0) + 1
    await ctx.put(number)
    ctx.call_async(discount, put, ctx.key, (number,))
    return number


@discount.register
async def put(ctx: Context, number: int) -> None:
    """Called with the price's change only."""
    await ctx.put(number)


@price.register(read_only=True)
async def price_now(ctx: Context) -> int:
    """The number of the price."""
    return int(await ctx.get(0))


@discount.register(read_only=True)
async def discount_now(ctx: Context) -> int:
    """The number of the discount."""
    return int(await ctx.get(0))


@cart.register(read_only=True)
async def shown(ctx: Context, product: int) -> list[int]:
    """The numbers of price and discount, as a cart shows the product."""
    return [await ctx.call(price, price_now, product), await ctx.call(discount, discount_now, product)]


app = App("read_anomalies", [price, discount, cart])
