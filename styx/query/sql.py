"""A query over a snapshot: a process of its own runs it, and gets the rows of the tables that it names.

Only tables that the query names are read. Imports the extra `sql`: see `styx.query.extra`.
"""

from __future__ import annotations

from styx.query.arrow import batches
from styx.query.process import QueryProcess
from styx.query.relations import relations
from styx.query.running import RunningQuery
from styx.query.schema import Schema
from styx.query.service import Asked, Limits
from styx.query.slots import Slots
from styx.query.source import Source


class Query(RunningQuery):
    """A query over a snapshot. Raises `QueryFailed`, `UnsupportedValue` for stored values that cannot be shown, and as
    `Slots`.
    """

    def __init__(self, source: Source, schema: Schema, asked: Asked, limits: Limits) -> None:
        self._source = source
        self._relations = relations(schema)
        super().__init__(QueryProcess(), [each.table for each in self._relations], asked, limits)

    def load(self, number: int) -> None:
        """Reads the rows, one slot after the other."""
        relation = self._relations[number]
        dataset, fields = relation.dataset, relation.fields
        for entries in Slots(self._source).all_entries(dataset.tables):
            unfit: dict[str, str] = {}
            for batch in batches(fields, dataset.records(entries), unfit):
                self.check_columns(unfit)
                self.send_rows(batch)
