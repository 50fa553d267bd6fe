"""A query of books, as a history holds it, and what it must give: a plain model of an index's conditions and order.

It shares no code with the engine. Conditions are `{column: value}` or `{column: [low, high]}`, both ends included. The
order is by rank and id where an index orders by rank, else by id.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

Row = list[Any]
"""[id, topic, kind, rank, stamp, seen]; `seen` is text: the stamps that the writer had seen, in their order."""
Conditions = dict[str, Any]

ID, TOPIC, KIND, RANK, STAMP, SEEN = range(6)
COLUMNS: Final = {"id": ID, "topic": TOPIC, "kind": KIND, "rank": RANK}


def matches(conditions: Conditions, row: Row | None) -> bool:
    """Whether a version of a row meets the conditions. None is a row that is not there."""
    if row is None:
        return False
    for column, wanted in conditions.items():
        value = row[COLUMNS[column]]
        if not (wanted[0] <= value <= wanted[1] if isinstance(wanted, list) else value == wanted):
            return False
    return True


def ordered_by_rank(conditions: Conditions) -> bool:
    """Whether the index that serves the conditions orders rows by rank."""
    return "topic" in conditions or "rank" in conditions


def position(conditions: Conditions, row: Row) -> tuple[int, ...]:
    """Where a row stands in the order of the index that serves the conditions."""
    return (row[RANK], row[ID]) if ordered_by_rank(conditions) else (row[ID],)


def answer(rows: Iterable[Row], conditions: Conditions, limit: int) -> list[Row]:
    """The rows that a query gives: of all that match, the first `limit`, the last `-limit`, or with 0 all."""
    found = sorted((row for row in rows if matches(conditions, row)), key=lambda row: position(conditions, row))
    if limit < 0:
        return found[limit:]
    return found[:limit] if limit else found


def told(kind: str, rows: list[Row]) -> Any:
    """What a query of a kind (`select`, `keys`, `count` or `exists`) tells of the rows that it has found."""
    results = {"select": rows, "keys": [row[ID] for row in rows], "count": len(rows), "exists": bool(rows)}
    return results[kind]


def seen_in(rows: Iterable[Row]) -> str:
    """The text that stands for having seen rows."""
    return ",".join(str(row[STAMP]) for row in rows)
