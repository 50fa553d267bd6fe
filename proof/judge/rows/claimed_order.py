"""Checks a history of shelves by the serial order that the engine claims: one pass over a model of the shelves.

Every query must give what the model gives at its place, every write must replace the version that the model holds, and
the order must respect real time. So the claimed order is a witness: a history that passes is strictly serializable.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from proof.judge.claimed_order import order_problems
from proof.judge.recorded import Recorded
from proof.judge.rows.query import Row, answer, seen_in, told
from proof.judge.rows.request import Step
from proof.judge.rows.steps import committed_of

PROBLEMS_MAX: Final = 10


def problems(recorded: Recorded) -> list[str]:
    """The problems of the claimed order; empty if it explains the history."""
    return order_problems(recorded) + _unexplained(recorded)[:PROBLEMS_MAX]


def _unexplained(recorded: Recorded) -> list[str]:
    model = Shelves()
    found = []
    for transaction in sorted(committed_of(recorded), key=lambda each: recorded.order[each.ended]):
        for step in transaction.steps:
            wrong = model.apply(step)
            if wrong:
                found.append(f"{transaction} {wrong}")
    return found


class Shelves:
    """All shelves at one place of the order."""

    def __init__(self) -> None:
        self._shelves: dict[int, dict[int, Row]] = defaultdict(dict)

    def apply(self, step: Step) -> str:
        """Does a step. Returns what is wrong with it; empty if nothing is."""
        kind, shelf, *arguments = step
        rows = self._shelves[shelf]
        if kind == "query":
            return _query(shelf, rows, *arguments)
        if kind == "write":
            return _write(shelf, rows, *arguments)
        conditions, row = arguments
        seen = seen_in(answer(rows.values(), conditions, 0))
        return _write(shelf, rows, row[0], None, row[4], [*row[:5], seen])


def _query(shelf: int, rows: dict[int, Row], kind: str, conditions: dict[str, Any], limit: int, saw: Any) -> str:
    if kind == "get":
        row = rows.get(conditions["id"])
        expected = row[4] if row else None
    else:
        expected = told(kind, answer(rows.values(), conditions, limit))
    if saw == expected:
        return ""
    asked = f"{kind} {conditions}" + (f" with limit {limit}" if limit else "")
    return f"was told {saw} by {asked} on shelf {shelf}, where {expected} is in the claimed order"


def _write(shelf: int, rows: dict[int, Row], id: int, before: int | None, stamp: int, row: Row | None) -> str:
    held = rows.get(id)
    holds = held[4] if held else None
    if row is None:
        rows.pop(id, None)
    else:
        # A row keeps what its first writer had seen.
        rows[id] = [*row[:5], held[5] if held else row[5]]
    if holds == before:
        return ""
    return f"replaced version {before} of row {id} on shelf {shelf} by {stamp}, where {holds} is in the claimed order"
