"""Ingests in a package and in a fingerprint: the declaration is rebuilt with the app's functions and types."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import styx
from styx import App, Ingest, Inlet, Operator
from styx.deployment.fingerprint import fingerprint
from styx.deployment.package import pack, unpack
from styx.model.ingest_position import Batch, RawRecord
from styx.schema.description import describe
from tests.deployment.conftest import Load
from tests.model.ingest_app import made_app

SECRET = b"a secret of this test"
SOURCE = """
from __future__ import annotations
import msgspec
from styx import App, Context, Ingest, Operator, Retry
from styx.formats import Avro, Protobuf

CENTS = 100

class Payment(msgspec.Struct):
    account: str
    amount: int

account = Operator("account")

@account.register
async def paid(ctx: Context, payment: Payment) -> None:
    await ctx.put(await ctx.get(0) + payment.amount * CENTS)

def holder(record):
    return record.value.account

payments = Ingest("payments", topic="bank.payments", value=Payment, to=(account, paid), key=holder,
                  where=lambda record: record.value.amount < CENTS, retry=Retry(2), start="latest")
app = App("bank", [account, payments])
"""


async def handled(app: App) -> Any:
    async with styx.embedded(app) as client:
        await client.call("payments", ("bank.payments", 0), "begin", "t", 0)
        values = [b'{"account": "a", "amount": %d}' % amount for amount in (1, 2, 500)]
        records = [RawRecord(offset, 0, None, value) for offset, value in enumerate(values)]
        await client.call("payments", ("bank.payments", 0), "take", Batch("t", 0, 3, records))
        while (found := (await client.call("payments", ("bank.payments", 0), "position"))[0])["settled"] < 3:
            assert found["next"] == 3
        await client.engine.settled(60)
        return client.entity("account", "a")


def test_an_ingest_comes_back_as_it_was(load: Load) -> None:
    app = load({"bank.py": SOURCE}, "bank").app
    unpacked = unpack(pack(app, SECRET), SECRET)
    ingest = unpacked.operators["payments"]
    assert isinstance(ingest, Ingest)
    assert (ingest.topic, ingest.start, ingest.retry.attempts) == ("bank.payments", "latest", 2)
    assert ingest.to is unpacked.operators["account"]
    assert ingest.value is not app.operators["payments"].value
    assert describe(unpacked) == describe(app)
    for one in (app, unpacked, unpack(pack(unpacked, SECRET), SECRET)):
        assert asyncio.run(handled(one)) == 300


def changed(load: Load, old: str, new: str) -> str:
    app = load({"bank.py": SOURCE.replace(old, new)}, "bank").app
    return fingerprint(app, ["bank"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("CENTS = 100", "CENTS = 1"),
        ("bank.payments", "bank.other"),
        ("latest", "earliest"),
        ("amount: int", "amount: float"),
    ],
)
def test_what_an_ingest_says_counts(load: Load, old: str, new: str) -> None:
    assert changed(load, old, new) != changed(load, "none", "none") == changed(load, "none", "none")


def _app(**given: Any) -> App:
    account = Operator("account")

    async def paid(ctx: styx.Context, payment: Any) -> None: ...

    account.register(paid)
    arguments: dict[str, Any] = {"topic": "t", "to": (account, paid), "key": _key} | given
    return App("bank", [account, Ingest("payments", **arguments)])


def _key(record: Any) -> str:
    return str(record.offset)


@pytest.mark.parametrize(
    "other",
    [lambda: _app(topic="u"), lambda: _app(start="latest"), lambda: _app(value=int)],
    ids=["topic", "start", "value"],
)
def test_declarations_that_no_source_shows_count(other: Callable[[], App]) -> None:
    assert fingerprint(other(), []) != fingerprint(_app(), []) == fingerprint(_app(), [])


def test_the_engines_own_functions_do_not_count() -> None:
    from styx.deployment.fingerprint import function_modules

    assert all(not name.startswith("styx.") for name in function_modules(made_app()[0]))


EVENTS = """
import msgspec
from styx import App, Event, Ingest, Inlet
from styx.webhooks import HmacSignature

class Price(msgspec.Struct):
    product: str
    cents: int

changed = Event("price-changed", Price)
inlet = Inlet(changed, key=lambda price: price.product, verify=HmacSignature("X-Sig", "SECRET"), once="X-Id")
topic = Ingest("prices", topic="others.prices", event=changed, key=lambda record: record.value.product)
app = App("shop", [inlet, topic], events=[changed])
"""


async def published(app: App) -> None:
    changed = app.events["price-changed"]
    async with styx.embedded(app) as client:
        await client.publish("price-changed", changed.from_json(b'{"product": "tea", "cents": 1}'))


def test_inlets_and_ingests_of_events_come_back(load: Load) -> None:
    app = load({"shop.py": EVENTS}, "shop").app
    unpacked = unpack(pack(app, SECRET), SECRET)
    inlet, topic = unpacked.operators["inlet.price-changed"], unpacked.operators["prices"]
    assert isinstance(inlet, Inlet)
    assert isinstance(topic, Ingest)
    assert inlet.event is topic.event is unpacked.events["price-changed"]
    assert inlet.event is not app.events["price-changed"]
    assert inlet.once_header == "x-id"
    assert inlet.verify is not None
    asyncio.run(published(unpacked))
