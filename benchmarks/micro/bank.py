"""The transfer that both loops run: two functions, two reads, two writes, a credit check. Reads beside it, declared as
read-only or not.
"""

from __future__ import annotations

from styx import App, Context, Operator

account = Operator("account", key_type=int)


class InsufficientFunds(Exception):
    """The debtor cannot pay."""


@account.register
async def open(ctx: Context, balance: int) -> None:
    await ctx.put({"balance": balance})


@account.register
async def credit(ctx: Context, amount: int) -> int:
    state = await ctx.get()
    state["balance"] += amount
    await ctx.put(state)
    return int(state["balance"])


@account.register
async def transfer(ctx: Context, to: int, amount: int) -> int:
    state = await ctx.get()
    if state["balance"] < amount:
        raise InsufficientFunds(f"{ctx.key} cannot pay {amount}")
    state["balance"] -= amount
    await ctx.put(state)
    ctx.call_async(account, credit, to, (amount,))
    return int(state["balance"])


@account.register(local=True)
async def move(ctx: Context, to: int, amount: int) -> int:
    """As `transfer`, to an account of the same slot."""
    state = await ctx.get()
    if state["balance"] < amount:
        raise InsufficientFunds(f"{ctx.key} cannot pay {amount}")
    state["balance"] -= amount
    await ctx.put(state)
    ctx.call_async(account, credit, to, (amount,))
    return int(state["balance"])


@account.register(read_only=True)
async def balance(ctx: Context) -> int:
    state = await ctx.get()
    return int(state["balance"])


@account.register
async def balance_undeclared(ctx: Context) -> int:
    state = await ctx.get()
    return int(state["balance"])


app = App("micro", operators=[account])
