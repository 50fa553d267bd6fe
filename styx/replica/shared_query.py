"""A query over a moment of a replica: its process reads the rows where the replica has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from styx.query.process import QueryProcess
from styx.query.running import RunningQuery
from styx.query.service import Asked, Cause, Limits
from styx.query.shared_rows import SharedRows
from styx.replica.arrow_rows import ArrowRows
from styx.replica.follower import Moment

FRAME_BYTES_MAX: Final = 64 * 2**20
"""Bytes of a result that come at once: one row, if it is large."""
GIVEN_MAX: Final = 64
"""Slots of a table that are given at once."""
_OPTIONS: Final[Mapping[Cause, str]] = {
    "memory": "a server with more memory for a query",
    "seconds": "a larger number of seconds, up to the server's limit,",
    "rows": "a larger number of rows, up to the server's limit,",
}


class Killed(Exception):
    """Whoever has asked the query has left."""


class SharedQuery(RunningQuery):
    """A query over `moment`. Raises `QueryFailed`, `Killed`, and `UnsupportedValue` for stored values that cannot be
    shown.
    """

    def __init__(self, process: QueryProcess, moment: Moment, rows: ArrowRows, asked: Asked, limits: Limits) -> None:
        self._moment = moment
        self._shared = rows
        self._killed = False
        tables = [each.table for each in moment.relations]
        super().__init__(process, tables, asked, limits, _OPTIONS, FRAME_BYTES_MAX)

    def load(self, number: int) -> None:
        """Has the rows of a table made that are not there yet, and gives them."""
        relation = self._moment.relations[number]
        made: list[SharedRows] = []
        for slot in self._moment.state.slots:
            if self._killed:
                raise Killed
            rows = self._shared.rows(self._moment.state, relation, slot)
            if rows is None:
                continue
            self.check_columns(rows.unfit)
            made.append(rows)
            if len(made) == GIVEN_MAX:
                self.share_rows(made)
                made = []
        if made:
            self.share_rows(made)

    def end(self) -> None:
        """As `RunningQuery.end`; who has rows made for it gets `Killed` when those of a slot are there."""
        self._killed = True
        super().end()
