"""A bank for conservation checks: accounts that pay each other, and what all payments together made out of nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from styx.model.context import Context
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.values.codec import decode_plain

INITIAL_BALANCE: Final = 100
"""What an account holds before its first transfer."""


class InsufficientFunds(Exception):
    """An account cannot pay."""


account = Operator("account", n_partitions=4)


@account.register
async def credit(ctx: Context, amount: int) -> int:
    """Adds to the account; gives the new balance."""
    balance: int = await ctx.get(INITIAL_BALANCE) + amount
    await ctx.put(balance)
    return balance


@account.register
async def transfer(ctx: Context, to: str, amount: int) -> int:
    """Moves money to another account, or raises `InsufficientFunds`; gives the balance left."""
    balance: int = await ctx.get(INITIAL_BALANCE) - amount
    if balance < 0:
        raise InsufficientFunds(f"{ctx.key} cannot pay {amount}")
    await ctx.put(balance)
    ctx.call_async(account, credit, to, (amount,))
    return balance


@account.register(local=True)
async def move(ctx: Context, to: str, amount: int) -> int:
    """As `transfer`, between accounts of one slot as a rule."""
    balance: int = await transfer(ctx, to, amount)
    return balance


def money_made(state: Mapping[tuple[str, Key], bytes]) -> int:
    """What all transfers together created out of nothing: 0, or the engine is broken."""
    balances: list[int] = [decode_plain(data) for (operator, _), data in state.items() if operator == account.name]
    return sum(balances) - INITIAL_BALANCE * len(balances)
