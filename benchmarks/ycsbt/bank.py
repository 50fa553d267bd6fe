"""The app of YCSB-T: accounts, and transfers between them that happen as a whole or not at all.

A transfer is two functions and two reads and two writes (§8). Money is neither made nor lost, so the sum of all
balances is the same before and after any number of transactions, and within each that reads all accounts.
"""

from __future__ import annotations

import msgspec

from styx import App, Context, Operator


class Account(msgspec.Struct):
    """An account's state, in whole units of money."""

    balance: int


class NoSuchAccount(Exception):
    """This account does not exist."""


class InsufficientFunds(Exception):
    """The debtor has less than it is to pay."""


account = Operator("account", key_type=int, state_type=Account)


def opened(ctx: Context, state: Account | None) -> Account:
    """The state of the account that `ctx` is at, if it is one."""
    if state is None:
        raise NoSuchAccount(f"there is no account {ctx.key}")
    return state


def debited(ctx: Context, debtor: Account, amount: int) -> Account:
    """The account that `ctx` is at, without `amount`."""
    if debtor.balance < amount:
        raise InsufficientFunds(f"account {ctx.key} has {debtor.balance} and cannot pay {amount}")
    debtor.balance -= amount
    return debtor


@account.register
async def credit(ctx: Context, amount: int) -> None:
    """Adds `amount` to this account."""
    creditor = opened(ctx, await ctx.get())
    creditor.balance += amount
    await ctx.put(creditor)


@account.register
async def transfer(ctx: Context, to: int, amount: int) -> int:
    """Moves `amount` from this account to the account `to`, without waiting for it; this one's balance afterwards."""
    debtor = debited(ctx, opened(ctx, await ctx.get()), amount)
    await ctx.put(debtor)
    ctx.call_async(account, credit, to, (amount,))
    return debtor.balance


@account.register
async def transfer_and_wait(ctx: Context, to: int, amount: int) -> int:
    """See `transfer`, but this function ends after the creditor's has."""
    debtor = debited(ctx, opened(ctx, await ctx.get()), amount)
    await ctx.put(debtor)
    await ctx.call(account, credit, to, (amount,))
    return debtor.balance


@account.register
async def read(ctx: Context) -> int:
    """This account's balance."""
    return opened(ctx, await ctx.get()).balance


@account.register
async def read_many(ctx: Context, others: list[int]) -> list[int]:
    """The balances of this account and of the accounts `others`, all at one point in the serial order."""
    balances = [opened(ctx, await ctx.get()).balance]
    for other in others:
        balances.append(await ctx.call(account, read, other))
    return balances


app = App("ycsbt", [account])


def partitioned(n_partitions: int) -> App:
    """The same app with its accounts in so many partitions, rather than one for each slot of the deployment."""
    spread = Operator(account.name, n_partitions, key_type=int, state_type=Account)
    for function in account.functions.values():
        spread.register(function.func)
    return App(app.name, [spread])


def __getattr__(name: str) -> App:
    """`partitions_N` is `partitioned(N)`, so that `MODULE:APP` can say it: processes know an app by that only."""
    word, _, number = name.partition("_")
    if word == "partitions" and number.isascii() and number.isdecimal():
        return partitioned(int(number))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
