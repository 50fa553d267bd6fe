"""A tiny wholesaler for tests of the transactions, every row of which can be seen here: 2 warehouses on 2 slots.

Each district has customers 1 to 5, of whom 1 to 4 are called BARBARBAR; 3 has bad credit. Districts 1 to 3 have two
orders of customer 2, of which the second is not delivered. Items 1 to 6; the sixth is of a brand.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.tpcc import tables
from benchmarks.tpcc.app import app
from styx import Operator
from styx.client.embedded import EmbeddedClient
from styx.testing import embedded_cluster

HOME, REMOTE = 1, 2
ITEMS = 6
LAST = "BARBARBAR"
ORDERED = 3
"""Districts with orders are 1 to this one."""
PLACE = tables.Address("Elm 1", "", "Delft", "ZH", "123411111")

State = dict[tuple[str, Any], Any]


def rows() -> Iterator[tuple[Operator, Any, Any]]:
    """Every row of the initial state, with its table and key."""
    for w in (HOME, REMOTE):
        yield tables.warehouse, w, tables.Warehouse(f"W{w}", PLACE, 500, 30_000_000)
        for i in range(1, ITEMS + 1):
            text = "an ORIGINAL one" if i == ITEMS else "plain"
            yield tables.item, (w, i), tables.Item(i, f"item {i}", 100 * i, text)
            dists = [f"w{w} i{i} d{d}" for d in range(1, tables.DISTRICTS + 1)]
            yield tables.stock, (w, i), tables.Stock(20, dists, 0, 0, 0, text)
        for d in range(1, tables.DISTRICTS + 1):
            yield from district_rows(w, d)


def district_rows(w: int, d: int) -> Iterator[tuple[Operator, Any, Any]]:
    """A district with its customers and orders."""
    n_orders = 2 if d <= ORDERED else 0
    yield tables.district, (w, d), tables.District(f"D{d}", PLACE, 1000, 3_000_000, n_orders + 1)
    # By first name: 4, 2, 3, 1.
    yield tables.customer_name, (w, d, LAST), [4, 2, 3, 1]
    yield tables.customer_name, (w, d, "OUGHTOUGHT"), [5]
    for c, first in enumerate(("Dora", "Bert", "Carl", "Anne", "Emil"), 1):
        last, credit = ("OUGHTOUGHT" if c == 5 else LAST), ("BC" if c == 3 else "GC")
        yield (
            tables.customer,
            (w, d, c),
            tables.Customer(first, "OE", last, PLACE, "555", 1, credit, 5_000_000, 2500, -1000, 1000, 1, 0, "old data"),
        )
        yield tables.history, (w, d, c, 1), tables.History(w, d, 1, 1000, "first")
    yield tables.undelivered, (w, d), n_orders or 1
    if n_orders:
        yield tables.customer_order, (w, d, 2), 2
        yield tables.new_order, (w, d, 2), tables.NewOrder()
        yield tables.order, (w, d, 1), tables.Order(2, 10, 7, 1, 1)
        yield tables.order_line, (w, d, 1, 1), tables.OrderLine(1, w, 10, 5, 0, "one")
        yield tables.order, (w, d, 2), tables.Order(2, 20, None, 2, 1)
        yield tables.order_line, (w, d, 2, 1), tables.OrderLine(2, w, None, 5, 111, "two")
        yield tables.order_line, (w, d, 2, 2), tables.OrderLine(3, w, None, 5, 222, "two")


@asynccontextmanager
async def wholesaler() -> AsyncIterator[EmbeddedClient]:
    """A client of the app with these rows; at the end its history is checked against a serial one."""
    by_table: dict[str, list[tuple[Any, Any]]] = {}
    for table, key, row in rows():
        by_table.setdefault(table.name, []).append((key, row))
    async with embedded_cluster(app) as client:
        for name, pairs in by_table.items():
            await client.load(name, pairs)
        yield client


def changes(before: State, after: State) -> State:
    """The rows that are new or not what they were, as they are now; None for those that are gone."""
    return {entity: after.get(entity) for entity in before | after if before.get(entity) != after.get(entity)}
