"""The PostgreSQL line answers as ours does, and leaves the same rows in all tables, after the same requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
import pytest

from benchmarks.marketplace import settings
from benchmarks.marketplace.app import app
from benchmarks.marketplace.audit.reading import OF_CUSTOMERS, OF_PRODUCTS, OF_SELLERS
from benchmarks.marketplace.postgres.checking_out import FORMS
from benchmarks.marketplace.postgres.filling import KEYS, NOT_HERE, stored
from benchmarks.marketplace.services.shipment.rows import QUEUE, firsts
from benchmarks.marketplace.values import PaymentType
from benchmarks.reference.postgres_server import PostgresServer
from styx.messages import Reply
from styx.relational.table import Table
from styx.testing import EmbeddedCluster
from tests.benchmarks.marketplace.postgres.line import Line, line, new_server
from tests.benchmarks.marketplace.shop import CUSTOMERS, PRODUCTS, item, marketplace, request

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

Request = tuple[Any, ...]
SELLERS = (1, 2)
ALL = [item(1, 1, 2, voucher=50), item(1, 2, 3), item(2, 1, 1, unit_price=15_00), item(2, 2, 4)]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    yield from new_server()


def buying(customer_id: int, *items: Any, **given: Any) -> list[Request]:
    adding = [("cart", customer_id, "add_item", each) for each in items]
    return [*adding, ("cart", customer_id, "checkout", request(customer_id, **given))]


SEQUENCES: dict[str, list[Request]] = {
    "an order of several sellers, with vouchers": buying(1, *ALL),
    "two orders of one customer": [*buying(1, ALL[0]), *buying(1, ALL[3])],
    "no card, one installment": buying(2, ALL[1], payment_type=PaymentType.BOLETO, installments=3),
    "a discount, because the price rose": [
        ("cart", 1, "add_item", item(1, 1, 2)),
        ("product", (1, 1), "set_price", 20_00, "v0"),
        ("cart", 1, "checkout", request(1)),
    ],
    "a lower price": [
        ("cart", 1, "add_item", item(1, 1, 2)),
        ("product", (1, 1), "set_price", 5_00, "v0"),
        ("cart", 1, "checkout", request(1)),
    ],
    "a voucher that is more than the line": buying(1, item(1, 1, 1, voucher=99_00)),
    "prices of other versions and products": [
        ("product", (1, 1), "set_price", 20_00, "v0"),
        ("product", (1, 1), "set_price", 30_00, "v1"),
        ("product", (9, 9), "set_price", 30_00, "v0"),
        ("product", (1, 1), "set_price", 40_00, "v0"),
    ],
    "some lines refused: too many, another version, unknown": buying(
        1, item(1, 1, 2), item(1, 2, 11), item(2, 1, 1, version="v7"), item(7, 7, 1, unit_price=1_00)
    ),
    "nothing reserved, then another try": [*buying(1, item(1, 1, 11)), *buying(1, item(1, 1, 1))],
    "the last pieces, and no more": [*buying(1, item(1, 1, 10)), *buying(2, item(1, 1, 1))],
    "too little is left": [*buying(1, item(1, 1, 9)), *buying(2, item(1, 1, 9))],
    "the same product again": [
        ("cart", 1, "add_item", item(1, 1, 2, voucher=5)),
        *buying(1, item(1, 1, 3, unit_price=9_00)),
    ],
    "an empty cart, and one that was sealed": [
        ("cart", 1, "checkout", request(1)),
        ("cart", 1, "add_item", ALL[0]),
        ("cart", 1, "add_item", ALL[1]),
        ("cart", 1, "seal"),
        ("cart", 1, "checkout", request(1)),
        ("cart", 2, "seal"),
    ],
    "the wrong and an unknown customer": [
        ("cart", 1, "add_item", ALL[0]),
        ("cart", 1, "checkout", request(2)),
        *buying(77, ALL[0]),
    ],
    "the same submission again": [
        *buying(1, ALL[0], checkout_id="same"),
        ("cart", 1, "checkout", request(1, checkout_id="same")),
    ],
    "the same submission again, of other goods": [
        *buying(1, ALL[0], checkout_id="same"),
        *buying(1, ALL[1], checkout_id="same"),
        *buying(1, checkout_id="another"),
    ],
    "a refused submission again": [
        *buying(1, item(1, 1, 11), checkout_id="same"),
        ("cart", 1, "checkout", request(1, checkout_id="same")),
    ],
    "no more products than a cart takes": [
        *(("cart", 1, "add_item", item(1, number, unit_price=1)) for number in range(1, 102)),
        ("cart", 1, "add_item", item(1, 7, 5, unit_price=1)),
    ],
    "what does not fit": [
        ("cart", 1, "add_item", {**msgspec.to_builtins(ALL[0]), "quantity": 0}),
        ("product", (1, 1), "set_price", -1, "v0"),
    ],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("requests", SEQUENCES.values(), ids=SEQUENCES)
async def test_the_same_requests_have_the_same_answers_and_leave_the_same_rows(
    requests: list[Request], form: str, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "PAYMENT", "together")
    async with marketplace() as ours, line(server, monkeypatch, form) as theirs:
        for number, each in enumerate(requests):
            expected = _plain(await ours.request(*each))
            assert _plain(await theirs.request(*each)) == expected, (number, each)
        for table in (*OF_CUSTOMERS, *OF_SELLERS, *OF_PRODUCTS):
            if table.name not in NOT_HERE:
                assert await _theirs(theirs, table.name) == _ours(ours, table), table.name
        for operator, name in (("product", "products"), ("replica", "replicas")):
            mine = [
                _row(dict(zip(KEYS[name], key, strict=True)) | stored(ours.entity(operator, key))) for key in PRODUCTS
            ]
            assert await _theirs(theirs, name) == sorted(mine), name


async def test_what_is_not_here_is_in_the_queue_of_ours(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seller's queue of orders to deliver is an index: its first entry is the row that ours keeps apart."""
    monkeypatch.setattr(settings, "PAYMENT", "together")
    requests = [*buying(2, *ALL), *buying(1, *ALL)]
    async with marketplace() as ours, line(server, monkeypatch) as theirs:
        for each in requests:
            await ours.request(*each)
            await theirs.request(*each)
        first = await theirs.connection.fetch(
            "SELECT DISTINCT ON (seller_id) seller_id, customer_id, order_id FROM packages WHERE status = 'shipped' "
            "ORDER BY seller_id, shipping_date, customer_id, order_id"
        )
        kept = [(row.seller_id, row.customer_id, row.order_id) for row in ours.rows(firsts, QUEUE)]
        assert [tuple(row) for row in first] == kept


def _plain(reply: Reply) -> Any:
    """What both answer alike: a result, or the kind of the refusal."""
    if reply.error is None:
        return msgspec.to_builtins(reply.result)
    return reply.error.code, reply.error.type if reply.error.code == "aborted" else ""


def _ours(cluster: EmbeddedCluster, table: Table) -> list[Any]:
    keys: dict[str, Any] = {"customer_id": [*CUSTOMERS, 77], "seller_id": [*SELLERS, 7]}
    columns = KEYS[table.name]
    if table in OF_PRODUCTS:
        entities: list[Any] = PRODUCTS
    else:
        entities = keys["seller_id" if table in OF_SELLERS else "customer_id"]
    found = []
    for key in entities:
        whole = dict(zip(columns, key if isinstance(key, tuple) else (key,), strict=False))
        found += [_row(whole | stored(row)) for row in cluster.rows(table, key)]
    return sorted(found)


async def _theirs(theirs: Line, table: str) -> list[Any]:
    return sorted(_row(row) for row in await theirs.rows(table))


def _row(row: dict[str, Any]) -> str:
    """Without what is each one's own: clocks, and the numbers of steps."""
    kept = {
        name: "a time" if isinstance(value, datetime) else value
        for name, value in row.items()
        if name not in ("seq", "last_order_id")
    }
    if "invoice_number" in kept:
        first, _, last = kept["invoice_number"].split("-")
        kept["invoice_number"] = first, last
    if isinstance(kept.get("refused"), str):
        kept["refused"] = msgspec.json.decode(kept["refused"])
    return json.dumps(kept, sort_keys=True)


def test_every_table_of_ours_is_here_or_an_index() -> None:
    """So that a table that is added to ours is not forgotten."""
    names = {table.name for operator in app.operators.values() for table in operator.tables.values()}
    assert names <= KEYS.keys() | {*NOT_HERE}
