"""An app with an ingest, for tests."""

from __future__ import annotations

from typing import Any

import msgspec

from styx import App, Context, Ingest, Operator, Retry
from styx.model.ingest_position import Batch, RawRecord

TOPIC = "bank.payments"


class Payment(msgspec.Struct):
    """A record's value."""

    account: str
    amount: int


def pay(account: str, amount: int) -> bytes:
    """The value of a good record."""
    return msgspec.json.encode(Payment(account, amount))


def made_app(**given: Any) -> tuple[App, Ingest]:
    """A new app, and its ingest `payments`, which adds each payment to its account's list."""
    account = Operator("account")

    @account.register
    async def paid(ctx: Context, payment: Payment) -> None:
        if payment.amount < 0:
            raise ValueError("nobody pays less than nothing")
        await ctx.put([*await ctx.get([]), payment.amount])

    arguments: dict[str, Any] = {
        "topic": TOPIC,
        "value": Payment,
        "to": (account, paid),
        "key": lambda record: record.value.account,
        "retry": Retry(1),
    }
    ingest = Ingest("payments", **(arguments | given))
    return App("bank", [account, ingest]), ingest


def raw(offset: int, value: bytes | None, **more: Any) -> RawRecord:
    """A record as it stands in the topic."""
    return RawRecord(offset, 1_700_000_000_000, None, value, **more)


def batch(begin: int, *values: bytes | None, topic_id: str = "t1", end: int | None = None) -> Batch:
    """A batch of records without gaps."""
    records = [raw(begin + number, value) for number, value in enumerate(values)]
    return Batch(topic_id, begin, begin + len(values) if end is None else end, records)
