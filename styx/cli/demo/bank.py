"""The demo's app, and the calls that it is sent: accounts are opened, and transfers crowd on a few of them.

The same seed gives the same calls.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final, NamedTuple

from styx import App, Context, Operator

OPENING_BALANCE: Final = 100
AMOUNT_MAX: Final = 60
"""The largest transfer: large beside the opening balance, so that transfers from empty accounts abort."""
ZIPF_EXPONENT: Final = 0.9
"""Account n is chosen in proportion to 1 / n ** ZIPF_EXPONENT: of 1,000 accounts, the first takes part in every fifth
transfer.
"""

account = Operator("account")


class InsufficientFunds(Exception):
    """The account holds less than was to be paid."""


@account.register
async def open(ctx: Context, balance: int) -> None:
    """Opens the account with so much money."""
    await ctx.put({"balance": balance})


@account.register
async def balance(ctx: Context) -> int:
    """Gives the balance of the account."""
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
    """The encoded state of an account with this balance."""
    state: dict[str, Any] = {"balance": balance}
    return account.encode_state(state)


class Call(NamedTuple):
    """One request to the bank: a function of an account, with its arguments."""

    key: str
    function: str
    arguments: tuple[Any, ...] = ()


def account_key(number: int) -> str:
    """The key of an account, numbered from 0."""
    return f"a{number:06}"


def openings(accounts: int) -> Iterator[Call]:
    """One opening for each account."""
    return (Call(account_key(number), "open", (OPENING_BALANCE,)) for number in range(accounts))


def balances(accounts: int) -> Iterator[Call]:
    """One question for the balance of each account."""
    return (Call(account_key(number), "balance") for number in range(accounts))


def transfers(accounts: int, seed: int) -> Iterator[Call]:
    """Transfers between two different accounts, without end."""
    rng = random.Random(seed)  # noqa: S311 - a workload, not a secret
    weights = list(accumulate(1 / rank**ZIPF_EXPONENT for rank in range(1, accounts + 1)))
    numbers = range(accounts)
    while True:
        source, target = rng.choices(numbers, cum_weights=weights, k=2)
        if source != target:
            yield Call(account_key(source), "transfer", (account_key(target), rng.randint(1, AMOUNT_MAX)))
