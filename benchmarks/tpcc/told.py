"""The replies to all clients, and their requests without an answer, by the rows that they concern.

Everything stays packed until it is asked for: one district's share at a time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from benchmarks.tpcc.records import (
    AskedDelivery,
    AskedOrder,
    AskedPayment,
    Delivered,
    Levelled,
    Ordered,
    Paid,
    Records,
    Shown,
    unpacked,
)
from benchmarks.tpcc.tables import Row

R = TypeVar("R", bound=Row)
Home = tuple[int, int]
"""A warehouse, and the district; 0 where all districts are meant."""


class Told:
    """The sum of the reports of all witnesses; `witnessed` is False if there are none.

    `counts` are of requests: under a kind those that committed, under `unknown` and a kind those without an answer,
    `rolled back`, `not run` and `violations`. `noted` are the violations that the witnesses describe.
    """

    def __init__(self, reports: Iterable[Mapping[str, Any]]) -> None:
        self.witnessed = False
        self.counts: Counter[str] = Counter()
        self.noted: list[str] = []
        self._sorted: defaultdict[tuple[type[Row], Home], Records[Any]] = defaultdict(Records)
        for report in reports:
            self.witnessed = True
            self.counts.update(report["counts"])
            self.noted += report["violations"]
            for kind in (Ordered, Paid, Delivered, Shown, Levelled, AskedOrder, AskedPayment, AskedDelivery):
                for record in unpacked(report[kind.__name__], kind):
                    self._sorted[kind, home_of(record)].append(record)

    def about(self, kind: type[R], w_id: int, d_id: int = 0) -> Iterator[R]:
        """The records of this kind, of this district; deliveries have none."""
        records = self._sorted.get((kind, (w_id, d_id)))
        return iter(()) if records is None else unpacked(records.blocks(), kind)


def home_of(record: Row) -> Home:
    """The home of the rows of a record. The home of a payment is that of its customer."""
    match record:
        case Paid() | AskedPayment():
            return record.c_w_id, record.c_d_id
        case Delivered() | AskedDelivery():
            return record.w_id, 0
        case Ordered() | Shown() | Levelled() | AskedOrder():
            return record.w_id, record.d_id
    raise AssertionError(record)
