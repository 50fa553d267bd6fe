"""What queries of ranges have cost on one worker, by table: for metrics. The protocol never reads it."""

from __future__ import annotations


class RangeCounts:
    """`rows_read`: rows that queries have found, re-runs included. `conflicts`: transactions that were in conflict
    because of rows in a range that they had read, each on each slot once.
    """

    __slots__ = ("conflicts", "rows_read")

    def __init__(self) -> None:
        self.rows_read: dict[str, int] = {}
        self.conflicts: dict[str, int] = {}

    def read(self, table: str, rows: int) -> None:
        """A query has found rows."""
        counted = self.rows_read
        counted[table] = counted.get(table, 0) + rows

    def conflict(self, table: str) -> None:
        """A transaction is in conflict because of a range."""
        counted = self.conflicts
        counted[table] = counted.get(table, 0) + 1

    def take(self, other: RangeCounts) -> None:
        """Adds what another one has counted, and leaves it with nothing."""
        for own, others in ((self.rows_read, other.rows_read), (self.conflicts, other.conflicts)):
            for table, number in others.items():
                own[table] = own.get(table, 0) + number
            others.clear()
