"""A shop: carts, stock and payments, with typed state, exact money and synchronous calls.

A checkout touches the cart, every product in it, the customer's wallet and a new order. It is one transaction: if a
product is sold out or the wallet is too light, all of it is undone and the customer sees only the error. The functions
need no rollback code, no lock and no retry.

Run it by itself with `python -m examples.shop`, or serve it over HTTP with `styx dev examples.shop:app`.
"""

import asyncio
from decimal import Decimal
from typing import Annotated

import msgspec

import styx
from styx import App, Context, Operator

# State types. With a `state_type` (below), `get` returns an object of the type, and `put` checks it. Such a state may
# contain values that plain state refuses, such as Decimal. Money is Decimal, never float: 0.1 + 0.2 must be 0.3.


class Product(msgspec.Struct):
    price: Decimal
    stock: int


class Cart(msgspec.Struct):
    quantities: dict[str, int]  # by product


class Wallet(msgspec.Struct):
    balance: Decimal


class Order(msgspec.Struct):
    customer: str
    quantities: dict[str, int]
    total: Decimal


class Receipt(msgspec.Struct):
    order: str
    total: Decimal


product = Operator("product", state_type=Product)  # key: the product's name
cart = Operator("cart", state_type=Cart)  # key: the customer
wallet = Operator("wallet", state_type=Wallet)  # key: the customer
order = Operator("order", state_type=Order)  # key: the order's number

# Arguments are checked against their annotations before a function runs: a quantity of 0 or "many" stays out.
Quantity = Annotated[int, msgspec.Meta(ge=1)]


# An exception raised in any function aborts the transaction; the caller sees its class name and message.


class SoldOut(Exception): ...


class EmptyCart(Exception): ...


class PaymentRefused(Exception): ...


@product.register
async def stock_up(ctx: Context, price: Decimal, quantity: Quantity) -> int:
    """Sets the price and adds to the stock; returns the new stock."""
    item: Product = await ctx.get(Product(price, 0))
    item.price = price
    item.stock += quantity
    await ctx.put(item)  # `get` returned a copy: without `put`, nothing would change
    return item.stock


@product.register
async def take(ctx: Context, quantity: Quantity) -> Decimal:
    """Takes from the stock; returns the total price."""
    item: Product | None = await ctx.get()
    if item is None or item.stock < quantity:
        left = 0 if item is None else item.stock
        raise SoldOut(f"{quantity} x {ctx.key} wanted, {left} in stock")
    item.stock -= quantity
    await ctx.put(item)
    return item.price * quantity


@wallet.register
async def top_up(ctx: Context, amount: Decimal) -> Decimal:
    """Adds money; returns the balance."""
    purse: Wallet = await ctx.get(Wallet(Decimal(0)))
    purse.balance += amount
    await ctx.put(purse)
    return purse.balance


@wallet.register
async def pay(ctx: Context, amount: Decimal) -> None:
    """Takes money out, or refuses."""
    purse: Wallet = await ctx.get(Wallet(Decimal(0)))
    if purse.balance < amount:
        raise PaymentRefused(f"{ctx.key} has {purse.balance}, {amount} is due")
    purse.balance -= amount
    await ctx.put(purse)


@order.register
async def record(ctx: Context, customer: str, quantities: dict[str, int], total: Decimal) -> None:
    """Writes the order down."""
    await ctx.put(Order(customer, quantities, total))


@cart.register
async def add(ctx: Context, product_name: str, quantity: Quantity = 1) -> dict[str, int]:
    """Puts a product into the cart; returns the cart's contents. It does not yet reserve stock."""
    basket: Cart = await ctx.get(Cart({}))
    basket.quantities[product_name] = basket.quantities.get(product_name, 0) + quantity
    await ctx.put(basket)
    return dict(basket.quantities)


@cart.register
async def checkout(ctx: Context) -> Receipt:
    """Buys the cart's contents: takes the stock, charges the wallet, records the order."""
    basket: Cart | None = await ctx.get()
    if basket is None:
        raise EmptyCart(f"{ctx.key} has nothing to buy")

    # `call` waits for the result. If `take` raises, this function never resumes: the transaction is over.
    total = Decimal(0)
    for name, quantity in basket.quantities.items():
        total += await ctx.call(product, take, key=name, params=(quantity,))
    await ctx.call(wallet, pay, key=ctx.key, params=(total,))

    # `checkout` needs no result of `record`, so it does not wait. The call still belongs to the transaction.
    # `ctx.uuid()` is the same in every run of this request; after a crash, `uuid.uuid4()` would give another id.
    number = str(ctx.uuid())
    ctx.call_async(order, record, key=number, params=(ctx.key, basket.quantities, total))

    await ctx.delete()
    return Receipt(number, total)


app = App("shop", operators=[product, cart, wallet, order])


async def main() -> None:
    """Runs the shop in this process and in memory; with `data_dir="…"` it would be durable."""
    async with styx.embedded(app) as client:
        await client.call("product", "tea", "stock_up", Decimal("4.50"), 3)
        await client.call("wallet", "ada", "top_up", Decimal("20.00"))

        await client.call("cart", "ada", "add", "tea", 2)
        print("receipt:", await client.call("cart", "ada", "checkout"))

        await client.call("cart", "ada", "add", "tea", 2)
        try:
            await client.call("cart", "ada", "checkout")
        except styx.TransactionAborted as aborted:
            # One tea is left. The wallet was not charged, and the cart is still full.
            print("refused:", aborted)


if __name__ == "__main__":
    asyncio.run(main())
