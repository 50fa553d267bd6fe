"""The demo's app: accounts, and transfers between them that either happen or do not."""

from __future__ import annotations

from typing import Any

from styx import App, Context, Operator

account = Operator("account")


class InsufficientFunds(Exception):
    """The account holds less than was to be paid."""


@account.register
async def open(ctx: Context, balance: int) -> None:
    """Opens the account with so much money."""
    await ctx.put({"balance": balance})


@account.register
async def balance(ctx: Context) -> int:
    """What the account holds."""
    state: dict[str, int] = await ctx.get()
    return state["balance"]


@account.register
async def credit(ctx: Context, amount: int) -> int:
    """Adds to the account; gives the new balance."""
    state: dict[str, int] | None = await ctx.get()
    if state is None:
        raise KeyError(f"no account {ctx.key}")
    state["balance"] += amount
    await ctx.put(state)
    return state["balance"]


@account.register
async def transfer(ctx: Context, to: str, amount: int) -> int:
    """Pays to another account; gives what is left."""
    state: dict[str, int] | None = await ctx.get()
    if state is None or state["balance"] < amount:
        raise InsufficientFunds(f"{ctx.key} cannot pay {amount}")
    state["balance"] -= amount
    await ctx.put(state)
    ctx.call_async(account, credit, to, (amount,))
    return state["balance"]


app = App("bank", operators=[account])


def encoded_state(balance: int) -> bytes:
    """An account's state with this balance, as the engine keeps it."""
    state: dict[str, Any] = {"balance": balance}
    return account.encode_state(state)
