"""A seller's dashboard in SQL, as a replica is asked for it: one query gives the board, the entries and their orders'
details, so all are of one moment. `result` makes of its rows what the function `dashboard` gives a client.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from benchmarks.driver.workload import SqlQuery
from benchmarks.marketplace.answers import Board, Dashboard
from benchmarks.marketplace.services.seller.rows import EntryDetails, OrderEntry
from styx.values.codec import decode_plain

FIRST: Final = 1_000
"""Entries of a dashboard, as the function gives if it is not told how many."""
_SUMS: Final = ("total_amount", "freight_value", "total_incentive", "total_invoice", "total_items")
_ENTRY: Final = OrderEntry.__struct_fields__
_DETAILS: Final = EntryDetails.__struct_fields__


def _columns(table: str, fields: tuple[str, ...]) -> str:
    return ", ".join(f"{table}.{name} as {table}_{name}" for name in fields)


SQL: Final = f"""
with own as (select * from seller.order_entries where key = $1),
board as (
  select count(distinct (customer_id, order_id)) as orders, count(distinct product_id) as products, count(*) as lines,
    {", ".join(f"coalesce(sum({name}), 0)::bigint as {name}" for name in _SUMS)}
  from own)
select board.*, {_columns("e", _ENTRY)}, {_columns("d", _DETAILS)}
from board left join own e on true
  left join seller.entry_details d
    on d.key = $1 and d.customer_id = e.customer_id and d.order_id = e.order_id
order by e.customer_id, e.order_id, e.product_id limit {FIRST}
"""  # noqa: S608 - names of columns


def board_query(seller_id: int) -> SqlQuery:
    """The query for a seller's dashboard."""

    def result(rows: list[dict[str, Any]]) -> Any:
        return decode_plain(msgspec.msgpack.encode(dashboard_of(seller_id, rows)))

    return SqlQuery(SQL, (seller_id,), result)


def dashboard_of(seller_id: int, rows: list[dict[str, Any]]) -> Dashboard:
    """The dashboard that the query's rows are, of which there is one without an entry if there is none."""
    sums = rows[0]
    board = Board(seller_id, sums["orders"], sums["products"], sums["lines"], *(sums[name] for name in _SUMS))
    there = [row for row in rows if row["e_order_id"] is not None]
    entries = msgspec.convert([_values(row, "e", _ENTRY) for row in there], list[OrderEntry], strict=False)
    of_orders = {(row["e_customer_id"], row["e_order_id"]): _values(row, "d", _DETAILS) for row in there}
    details = msgspec.convert([*of_orders.values()], list[EntryDetails], strict=False)
    return Dashboard(board, entries, details, len(entries) == board.count_lines)


def _values(row: dict[str, Any], table: str, fields: tuple[str, ...]) -> list[Any]:
    return [row[f"{table}_{name}"] for name in fields]
