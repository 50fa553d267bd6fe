"""An app that takes the records of a foreign topic, and notices any that comes twice or out of order."""

from __future__ import annotations

import msgspec

from styx.model.app import App
from styx.model.context import Context
from styx.model.ingest import Ingest
from styx.model.operator import Operator

TOPIC_PREFIX = "others.numbers"
"""Each run has a topic of its own; the app is made for it."""


class Number(msgspec.Struct):
    """A record: the numbers of one account come in ascending order."""

    account: int
    number: int


class Account(msgspec.Struct):
    """What came: how many, their sum, the last one, and how many were not above the one before."""

    count: int = 0
    total: int = 0
    last: int = -1
    disordered: int = 0


ledger = Operator("ledger", key_type=int, state_type=Account)


@ledger.register
async def write(ctx: Context, number: int) -> None:
    """Takes a number."""
    account = await ctx.get(Account())
    account.count += 1
    account.total += number
    account.disordered += number <= account.last
    account.last = number
    await ctx.put(account)


@ledger.register(read_only=True)
async def read(ctx: Context) -> list[int]:
    """Count, sum, and how many came out of order."""
    account = await ctx.get(Account())
    return [account.count, account.total, account.disordered]


numbers = Ingest(
    "numbers",
    topic=TOPIC_PREFIX,
    value=Number,
    to=(ledger, write),
    key=lambda record: record.value.account,
    params=lambda record: (record.value.number,),
)
app = App("ingest", [ledger, numbers])
