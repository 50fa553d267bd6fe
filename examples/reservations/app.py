"""Reservations that expire: an order holds its items for 15 minutes, and gives them back unless it is paid by then.

Each change is told once: in one mail, and on a page that shows it at once. Nothing here polls, locks, retries or cleans
up. `python -m examples.reservations` serves it, with the page.
"""

import os
from datetime import timedelta

from msgspec import Struct

from styx import App, Context, Event, Operator

HOLD = timedelta(seconds=float(os.environ.get("HOLD_SECONDS", "900")))


class Order(Struct):
    item: str
    quantity: int
    email: str
    status: str = "reserved"


class OrderChanged(Struct):
    order: str
    email: str
    status: str


class SoldOut(Exception): ...


class NotReserved(Exception): ...


stock = Operator("stock", state_type=int)  # key: the item
order = Operator("order", state_type=Order)  # key: the order's number
mail = Operator("mail")  # key: the order's number
changed = Event("order-changed", OrderChanged)


@stock.register
async def add(ctx: Context, quantity: int) -> int:
    left = await ctx.get(0) + quantity
    if left < 0:
        raise SoldOut(f"{left - quantity} of {ctx.key} are left")
    await ctx.put(left)
    return left


@order.register
async def reserve(ctx: Context, item: str, quantity: int, email: str) -> str:
    if await ctx.get() is not None:
        raise NotReserved(f"there is an order {ctx.key} already")
    await ctx.call(stock, add, item, (-quantity,))
    ctx.after(HOLD, order, expire, ctx.key, name="expiry")
    return await become(ctx, Order(item, quantity, email), "reserved")


@order.register
async def pay(ctx: Context) -> str:
    found = await ctx.get()
    if found is None or found.status != "reserved":
        raise NotReserved(f"order {ctx.key} is not reserved, or no longer")
    await ctx.cancel("expiry")
    return await become(ctx, found, "paid")


@order.register
async def expire(ctx: Context) -> str:
    found = await ctx.get()
    await ctx.call(stock, add, found.item, (found.quantity,))
    return await become(ctx, found, "expired")


async def become(ctx: Context, found: Order, status: str) -> str:
    found.status = status
    await ctx.put(found)
    ctx.emit(changed, OrderChanged(ctx.key, found.email, status))
    return status


@mail.on(changed, key=lambda event: event.order, after_commit=True)
async def tell(ctx: Context, event: OrderChanged) -> None:
    await ctx.call_external(send, event.email, f"Order {event.order} is {event.status}.")


def send(to: str, text: str, idempotency_key: str) -> None:
    # A mail service's client, in earnest. A crash in its midst repeats the call with the same key, so it is one mail.
    print(f"mail to {to}: {text}", flush=True)


app = App("reservations", [stock, order, mail], events=[changed])
