"""The rows of each table and slot as Arrow in shared memory: made when a query first needs them, and kept until what
they were made of changes, or memory is needed for others. Calls block, and may come from any thread.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from typing import NamedTuple

from styx.query.arrow import arrow_schema, batches
from styx.query.relations import Relation
from styx.query.schema import Dataset
from styx.query.shared_rows import SharedRows
from styx.replica.state import EpochState, SlotTable


class _Made(NamedTuple):
    """Rows, and what they were made of, of which no part is ever changed."""

    epoch: int
    dataset: Dataset
    source: tuple[SlotTable | None, ...]
    rows: SharedRows


class ArrowRows:
    """Keeps rows of at most `bytes_max` bytes and `files_max` tables' slots, those used last. Queries that run may hold
    others for as long as they run.
    """

    def __init__(self, bytes_max: int, files_max: int) -> None:
        self.bytes = 0
        self.rows_made = 0
        self._bytes_max = bytes_max
        self._files_max = files_max
        self._made: OrderedDict[tuple[str, int], _Made] = OrderedDict()
        self._lock = threading.Lock()
        self._of_table: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def rows(self, state: EpochState, relation: Relation, slot: int) -> SharedRows | None:
        """What a slot has of a table, None if nothing; raises `UnsupportedValue`. While one query has rows of a table
        made, others wait that need the same table.
        """
        dataset = relation.dataset
        source = state.slot_tables(slot, dataset.tables)
        if source[0] is None:
            return None
        with self._lock:
            of_table = self._of_table[dataset.name]
        with of_table:
            made = self._kept((dataset.name, slot), dataset, source)
            if made is not None:
                return made
            tables = zip(dataset.tables, source, strict=True)
            entries = {name: table.entries() for name, table in tables if table is not None}
            fields = relation.fields
            unfit: dict[str, str] = {}
            rows = SharedRows(arrow_schema(fields), batches(fields, dataset.records(entries), unfit), unfit)
            self._keep((dataset.name, slot), _Made(state.epoch, dataset, source, rows))
            return rows

    def _kept(self, key: tuple[str, int], dataset: Dataset, source: tuple[SlotTable | None, ...]) -> SharedRows | None:
        with self._lock:
            made = self._made.get(key)
            if made is None or made.dataset is not dataset or made.source != source:
                return None
            self._made.move_to_end(key)
            return made.rows

    def _keep(self, key: tuple[str, int], made: _Made) -> None:
        with self._lock:
            self.rows_made += made.rows.rows
            before = self._made.get(key)
            if before is not None:
                if before.epoch > made.epoch:
                    return  # a query of an older epoch, whose rows nobody else will ask for
                del self._made[key]
                self.bytes -= before.rows.bytes
            self._made[key] = made
            self.bytes += made.rows.bytes
            while self.bytes > self._bytes_max or len(self._made) > self._files_max:
                _, oldest = self._made.popitem(last=False)
                self.bytes -= oldest.rows.bytes
