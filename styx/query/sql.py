"""A query over a snapshot: a process of its own runs it, and gets the rows of the tables that it names.

The query's time is limited by ending that process, its memory by the kernel, its rows here. Only tables that the query
names are read. Imports the extra `sql`: see `styx.query.extra`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Final, Self

import msgspec
import pyarrow as pa

from styx.query.arrow import batches, ipc_stream
from styx.query.frames import BEGINS, END, FAILED, HEADER, NEEDS, ROWS, Closed, FrameReader, OutOfTime, write_frame
from styx.query.header import header_bytes
from styx.query.relations import Relation, relations
from styx.query.schema import Schema
from styx.query.service import Asked, Limits, QueryFailed
from styx.query.slots import Slots
from styx.query.source import Source

MIB: Final = 2**20
START_SECONDS_MAX: Final = 120.0
"""The start of the process, and its look at the query, which does not count as the query's time."""
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "STYX_PLAIN")
"""The variables that the process gets: none with a secret."""


class Query:
    """A query that runs; to be used as a context manager, whose end ends it.

    Raises `QueryFailed`, `UnsupportedValue` for stored values that cannot be shown, and as `Slots`.
    """

    def __init__(self, source: Source, schema: Schema, asked: Asked, limits: Limits) -> None:
        self._source = source
        self._relations = relations(schema)
        self._asked = asked
        self._limits = limits

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "styx.query.sql_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is for the parent, which ends it
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to: IO[bytes] = self._process.stdin
        # Neither a table's batch nor a result's is larger than what the process may hold.
        self._frames = FrameReader(self._process.stdout.fileno(), self._limits.memory_mib * MIB)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout):
            try:
                assert file is not None
                file.close()
            except BrokenPipeError:
                pass  # what was not yet written is for nobody

    def end(self) -> None:
        """Ends the query's process at once, from any thread: whoever waits for it gets `QueryFailed`."""
        self._process.kill()

    def result(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The columns of the result, and its rows as they come: at most so many as the limit says, then
        `QueryFailed`.
        """
        tables = [each.table for each in self._relations]
        self._send(HEADER, header_bytes(self._asked, tables, self._limits.memory_mib * MIB, self._limits.seconds))
        self._frames.seconds_left = START_SECONDS_MAX
        needs = msgspec.json.decode(self._next(NEEDS), type=list[int])
        self._frames.seconds_left = None
        for at in needs:
            self._load(self._relations[at])
        self._next(BEGINS)
        self._frames.seconds_left = self._limits.seconds
        schema = pa.ipc.open_stream(self._next(ROWS)).schema
        return schema, self._rows()

    def _rows(self) -> Iterator[pa.RecordBatch]:
        left = self._limits.rows
        while data := self._next(ROWS, END):
            for batch in pa.ipc.open_stream(data):
                yield batch.slice(0, left)
                left -= batch.num_rows
                if left < 0:
                    raise QueryFailed(
                        f"the result has more than {self._limits.rows} rows: --rows N allows more", "rows"
                    )

    def _load(self, relation: Relation) -> None:
        dataset, fields = relation.dataset, relation.fields
        for entries in Slots(self._source).all_entries(dataset.tables):
            for batch in batches(fields, dataset.records(entries)):
                self._send(ROWS, ipc_stream(batch.schema, batch))
        self._send(END)

    def _send(self, kind: bytes, data: bytes = b"") -> None:
        try:
            write_frame(self._to, kind, data)
        except BrokenPipeError:
            self._next()  # which says why
            raise self._died() from None

    def _next(self, *kinds: bytes) -> bytes:
        """The content of the next frame, which is of one of these kinds."""
        try:
            kind, data = self._frames.read()
        except OutOfTime:
            if NEEDS in kinds:
                raise QueryFailed(
                    f"the query's process has not begun within {START_SECONDS_MAX:g} s", "seconds"
                ) from None
            raise QueryFailed(
                f"the query has not ended within {self._limits.seconds:g} s: --seconds N allows more", "seconds"
            ) from None
        except ValueError as error:
            raise QueryFailed(
                f"a few rows of the result are too large: {error}; --memory MIB allows more", "memory"
            ) from None
        except Closed:
            raise self._died() from None
        if kind == FAILED:
            raise self._failed(data.decode())
        assert kind in kinds, "the process answers what it was asked"
        return data

    def _failed(self, text: str) -> QueryFailed:
        if text.startswith("Out of Memory"):
            return QueryFailed(
                f"the query needs more than {self._limits.memory_mib} MiB: --memory MIB allows more", "memory"
            )
        if "does not exist" in text and text.startswith("Catalog Error: Table"):
            known = ", ".join(sorted(f"{each.table.schema}.{each.table.name}" for each in self._relations)) or "none"
            text = f"{text}\nThe tables are: {known}"
        return QueryFailed(text)

    def _died(self) -> QueryFailed:
        status = self._process.wait()
        return QueryFailed(
            f"the query's process has ended with status {status}: most often it needs more than "
            f"{self._limits.memory_mib} MiB; --memory MIB allows more",
            "memory",
        )


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
