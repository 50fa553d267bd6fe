"""A tiny wholesaler for tests of the transactions, every row of which can be seen here: 2 warehouses on 2 slots.

Each district has customers 1 to 5, of whom 1 to 4 are called BARBARBAR; 3 has bad credit. Districts 1 to 3 have two
orders of customer 2, of which the second is not delivered. Items 1 to 6; the sixth is of a brand.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from benchmarks.driver.loading import load
from benchmarks.driver.workload import Loading
from benchmarks.tpcc import tables
from benchmarks.tpcc.app import app
from styx import Operator
from styx.client.embedded import EmbeddedClient
from styx.relational.table import Table
from styx.testing import embedded_cluster
from tests.benchmarks.tpcc.serial_run import BY_NAME, under_key

HOME, REMOTE = 1, 2
ITEMS = 6
LAST = "BARBARBAR"
ORDERED = 3
"""Districts with orders are 1 to this one."""
PLACE = tables.Address("Elm 1", "", "Delft", "ZH", "123411111")

State = dict[tuple[str, Any], Any]


def rows() -> Iterator[tuple[Operator | Table, Any, Any]]:
    """Every row of the initial state, with its table and whole key."""
    for w in (HOME, REMOTE):
        yield tables.warehouse, w, tables.Warehouse(f"W{w}", PLACE, 500, 30_000_000)
        for i in range(1, ITEMS + 1):
            text = "an ORIGINAL one" if i == ITEMS else "plain"
            yield tables.item, (w, i), tables.Item(i, f"item {i}", 100 * i, text)
            dists = [f"w{w} i{i} d{d}" for d in range(1, tables.DISTRICTS + 1)]
            yield tables.stock, (w, i), tables.Stock(20, dists, 0, 0, 0, text)
        for d in range(1, tables.DISTRICTS + 1):
            yield from district_rows(w, d)


def district_rows(w: int, d: int) -> Iterator[tuple[Operator | Table, Any, Any]]:
    """A district with its customers and orders."""
    n_orders = 2 if d <= ORDERED else 0
    yield tables.district, (w, d), tables.District(f"D{d}", PLACE, 1000, 3_000_000, n_orders + 1)
    # By first name: 4, 2, 3, 1.
    for c, first in enumerate(("Dora", "Bert", "Carl", "Anne", "Emil"), 1):
        last, credit = ("OUGHTOUGHT" if c == 5 else LAST), ("BC" if c == 3 else "GC")
        yield (
            tables.customer,
            (w, d, c),
            tables.Customer(first, "OE", last, PLACE, "555", 1, credit, 5_000_000, 2500, -1000, 1000, 1, 0, "old data"),
        )
        yield tables.history, (w, d, c, 1), tables.History(w, d, 1, 1000, "first")
    if n_orders:
        yield tables.new_order, (w, d, 2), tables.NewOrder()
        yield tables.order, (w, d, 1), tables.Order(2, 10, 7, 1, 1)
        yield tables.order_line, (w, d, 1, 1), tables.OrderLine(1, w, 10, 5, 0, "one")
        yield tables.order, (w, d, 2), tables.Order(2, 20, None, 2, 1)
        yield tables.order_line, (w, d, 2, 1), tables.OrderLine(2, w, None, 5, 111, "two")
        yield tables.order_line, (w, d, 2, 2), tables.OrderLine(3, w, None, 5, 222, "two")


@asynccontextmanager
async def wholesaler() -> AsyncIterator[EmbeddedClient]:
    """A client of the app with these rows; at the end its history is checked against a serial one."""
    async with embedded_cluster(app) as client:
        for target, pairs in groupby(sorted(rows(), key=lambda each: each[0].name), key=itemgetter(0)):
            await load(client, _loading(target, [(key, row) for _, key, row in pairs]))
        yield client


def _loading(target: Operator | Table, pairs: list[tuple[Any, Any]]) -> Loading:
    if isinstance(target, Operator):
        return Loading(target, len(pairs), pairs)
    parts = target.entity_parts
    of_entities = [(key[:parts] if parts > 1 else key[0], under_key(target.name, key, row)) for key, row in pairs]
    return Loading(app.operators[target.operator], len(pairs), of_entities, target)


def state_of(client: EmbeddedClient) -> State:
    """All rows by (table, whole key), without the columns of their keys."""
    by_full_name = {table.full_name: table for table in BY_NAME.values()}
    state: State = {}
    for (name, key), row in client.state().items():
        if name not in by_full_name:
            state[name, key] = row
            continue
        table = by_full_name[name]
        columns = msgspec.structs.astuple(row)[: len(table.columns) - len(table.key)]
        without_key: Any = table.row_type.declared.__base__
        state[table.name, key] = without_key(*columns)
    return state


def changes(before: State, after: State) -> State:
    """The rows that are new or not what they were, as they are now; None for those that are gone."""
    return {entity: after.get(entity) for entity in before | after if before.get(entity) != after.get(entity)}
