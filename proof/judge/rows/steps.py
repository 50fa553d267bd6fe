"""The committed transactions of a history of shelves, for the checks: what each has seen and written, and when.

A shelf that a transaction of unknown outcome may have changed is not judged, because its rows may be anything.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from proof.judge.recorded import Recorded
from proof.judge.rows.query import ID, SEEN, STAMP, Row
from proof.judge.rows.request import Step


class Committed(NamedTuple):
    """A transaction that has committed. `began` and `ended` are the lines of the history."""

    began: int
    ended: int
    steps: list[Step]

    def __str__(self) -> str:
        return f"the transaction ended at {self.ended}"


def committed_of(recorded: Recorded) -> list[Committed]:
    """The committed transactions in the order of their ends, without steps on shelves that are not judged."""
    unknown = shelves_unknown(recorded)
    begun: dict[int, int] = {}
    found = []
    for op in recorded.ops:
        if op.type == "invoke":
            begun[op.process] = op.index
        elif op.type == "ok":
            steps = [step for step in op.value if step[1] not in unknown]
            found.append(Committed(begun[op.process], op.index, steps))
    return found


def shelves_unknown(recorded: Recorded) -> set[int]:
    """The shelves that transactions of unknown outcomes may have changed."""
    return {shelf for op in recorded.ops if op.type == "info" for _, shelf, *_ in op.value}


def stamps_refused(recorded: Recorded) -> set[int]:
    """The stamps of transactions that were refused."""
    return {step[4] for op in recorded.ops if op.type == "fail" for step in op.value}


def seen_by_echoes(committed: list[Committed]) -> dict[int, str]:
    """What echoes have seen, by the id of their rows, so far as a query gave the row. Rows keep it when they move."""
    seen: dict[int, str] = {}
    for transaction in committed:
        for step in transaction.steps:
            if step[0] == "query" and step[2] == "select":
                seen.update((row[ID], row[SEEN]) for row in step[5])
    return seen


def version(row: Row) -> list[Any]:
    """A row without what its writer had seen."""
    return row[: STAMP + 1]
