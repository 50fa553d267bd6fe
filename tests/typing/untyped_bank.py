"""An app as it was always written, without types of keys and states: a type checker finds nothing."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

import styx
from styx import App, Context, Operator

account = styx.Operator("account", n_partitions=4)


class Seat(msgspec.Struct):
    holder: str
    price: Decimal


seat = Operator("seat", key_type=(int, str), state_type=Seat, partition_key=lambda key: key[0])
maybe = Operator("maybe", state_type=Seat | None)
numbers: dict[str, Operator] = {"one": Operator("one", key_type=int, state_type=dict[str, int])}


@account.register
async def deposit(ctx: styx.Context, amount: int) -> None:
    await ctx.put(await ctx.get(0) + amount)


@account.register
async def transfer(ctx: styx.Context, to: str, amount: int) -> None:
    if await ctx.get(0) < amount:
        raise ValueError(f"{ctx.key} cannot pay {amount}")
    await ctx.put(await ctx.get(0) - amount)
    ctx.call_async(account, deposit, key=to, params=(amount,))
    ctx.call_async("account", "deposit", to, [amount])


@account.register
async def take(ctx: Context, amount: int, **rest: int) -> int:
    state = await ctx.get()
    state["balance"] -= amount + sum(rest.values())
    await ctx.state.put(state)
    await ctx.delete()
    await ctx.call_external(len, "text")
    return int(state["balance"])


@seat.register
async def book(ctx: Context, holder: str, price: Decimal) -> Seat:
    if await ctx.get() is not None:
        raise ValueError(f"seat {ctx.key} is taken")
    await ctx.put(Seat(holder, price))
    row, _ = ctx.key
    found: Seat = await ctx.call(seat, book, (row, "b"), (holder, price))
    anything: Any = await ctx.call("seat", "book", (row, "b"))
    return found if anything else Seat("", price)


def reads(operator: Operator, context: Context) -> str:
    return operator.name + context.operator


app = App("bank", operators=[account, seat, maybe, *numbers.values()])


async def main() -> None:
    async with styx.embedded(app, "bank-data") as bank:
        await bank.call("account", "alice", "deposit", 100, timeout=5)
        await bank.call(account, "alice", deposit, 30, idempotency_key="k")
        reply = await bank.request(seat, (7, "12A"), book, "ada", Decimal(1))
        print(bank.state(), reply.result)
