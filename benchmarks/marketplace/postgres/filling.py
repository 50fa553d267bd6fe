"""Makes the tables anew and fills them with a marketplace's data, the same that is loaded into ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import asyncpg
import msgspec

from benchmarks.driver.workload import Loading
from benchmarks.marketplace.postgres.statements import SCHEMA

_NAMES: Final = {"product": "products", "replica": "replicas", "customer": "customers", "seller": "sellers"}
"""The tables of our entities' own states."""
NOT_HERE: Final = ("waiting", "firsts")
"""Tables of ours that are an index here."""
_COLUMNS_NOT_HERE: Final = ("oldest_hour", "latest_hour")
"""Columns of ours that tell what an index of the demand tells here."""
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("products", "replicas", "demand"), ("seller_id", "product_id")),
    **dict.fromkeys(("stock_items", "counts"), ()),
    **dict.fromkeys(("sellers", "entry_details", "order_entries", "low_stock"), ("seller_id",)),
    **dict.fromkeys(
        (
            *("customers", "items", "checkouts", "failures", "orders", "order_items", "order_history"),
            *("payments", "cards", "shipments", "packages"),
        ),
        ("customer_id",),
    ),
}
"""The columns that a table has before those of ours, for the key of the entity. The rows of stock and counts have it
themselves.
"""
_FOR_THE_CHECK: Final = """
CREATE TABLE stock_loaded AS TABLE stock_items;
CREATE VIEW new_orders AS SELECT * FROM orders WHERE checkout_id NOT LIKE 'preloaded-%';
CREATE VIEW new_checkouts AS SELECT * FROM checkouts WHERE checkout_id NOT LIKE 'preloaded-%' AND order_id IS NOT NULL;
"""
_CLEAR: Final = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"
_LAST_ORDERS: Final = """
UPDATE counts SET last_order_id = last.order_id
FROM (SELECT customer_id, max(order_id) AS order_id FROM orders GROUP BY customer_id) AS last
WHERE counts.customer_id = last.customer_id
"""


async def fill(arguments: Mapping[str, Any], initial: Iterable[Loading]) -> None:
    """In the database that `arguments` of `asyncpg.connect` name; what was there is gone. The tables end in as good a
    shape as tables can be in.
    """
    connection = await asyncpg.connect(**arguments)
    try:
        await connection.execute(_CLEAR)
        await connection.execute(SCHEMA)
        for loading in initial:
            if loading.name not in NOT_HERE:
                table = table_of(loading)
                await _copy(connection, table, loading.pairs)
        await connection.execute(_LAST_ORDERS)
        await connection.execute(_FOR_THE_CHECK)
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
        await connection.execute("SELECT pg_stat_reset()")
    finally:
        await connection.close()


def table_of(loading: Loading) -> str:
    """The table that a loading's pairs are rows of."""
    return _NAMES[loading.name] if loading.table is None else loading.name


async def _copy(connection: asyncpg.Connection, table: str, pairs: Iterable[tuple[Any, Any]]) -> None:
    rows = _rows(table, pairs)
    first = next(rows, None)
    if first is None:
        return
    columns = [*first]
    await connection.copy_records_to_table(table, records=_records(first, rows), columns=columns)


def _records(first: dict[str, Any], rest: Iterator[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    yield tuple(first.values())
    for row in rest:
        yield tuple(row.values())


def _rows(table: str, pairs: Iterable[tuple[Any, Any]]) -> Iterator[dict[str, Any]]:
    """Each row by column."""
    names = KEYS[table]
    for key, value in pairs:
        keys = key if isinstance(key, tuple) else (key,)
        yield {**dict(zip(names, keys, strict=False)), **stored(value)}


def stored(row: msgspec.Struct) -> dict[str, Any]:
    """A row of ours as its table has it: lists are JSON."""
    names = [name for name in row.__struct_fields__ if name not in _COLUMNS_NOT_HERE]
    return {name: _stored(getattr(row, name)) for name in names}


def _stored(value: Any) -> Any:
    return msgspec.json.encode(value).decode() if isinstance(value, list) else value
