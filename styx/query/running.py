"""A query on its way: it sends the tables that its process asks for, and gets the result back.

The query's time is limited by ending the process, its memory by the kernel, its rows here. Where rows come from is not
known here. Imports the extra `sql`: see `styx.query.extra`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

import msgspec
import pyarrow as pa

from styx.query.arrow import ipc_stream
from styx.query.frames import (
    BEGINS,
    END,
    FAILED,
    HEADER,
    NEEDS,
    ROWS,
    SHARED,
    Closed,
    FrameReader,
    OutOfTime,
    write_frame,
)
from styx.query.header import Needs, header_bytes
from styx.query.process import QueryProcess
from styx.query.relations import Table
from styx.query.service import Asked, Cause, Limits, QueryFailed
from styx.query.shared_rows import SharedRows, give

MIB: Final = 2**20
START_SECONDS_MAX: Final = 120.0
"""The start of the process, and its look at the query, which does not count as the query's time."""
OPTIONS: Final[Mapping[Cause, str]] = {"memory": "--memory MIB", "seconds": "--seconds N", "rows": "--rows N"}
"""How a command's options allow more."""


class RunningQuery:
    """A query that a process runs; to be used as a context manager, whose end ends the process. `tables` are all there
    are, `options` how the sender allows more, and a frame of the result has at most `frame_bytes_max` bytes.

    Raises `QueryFailed`, and what `load` raises, which a subclass defines.
    """

    def __init__(
        self,
        process: QueryProcess,
        tables: Sequence[Table],
        asked: Asked,
        limits: Limits,
        options: Mapping[Cause, str] = OPTIONS,
        frame_bytes_max: int | None = None,
    ) -> None:
        self._process = process
        self._tables = tables
        self._asked = asked
        self._limits = limits
        self._options = options
        # Neither a table's batch nor a result's is larger than what the process may hold.
        self._frames = FrameReader(process.descriptor, frame_bytes_max or limits.memory_mib * MIB)
        self._columns: list[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.end()

    def end(self) -> None:
        """Ends the query's process at once, from any thread: whoever waits for it gets `QueryFailed`."""
        self._process.kill()

    def load(self, number: int) -> None:
        """Sends the rows of the table of that number, by `send_rows` or `share_rows`."""
        raise NotImplementedError

    def check_columns(self, unfit: Mapping[str, str]) -> None:
        """Raises `QueryFailed` if the query may read a column with a value that its type lacks. `unfit`: these columns,
        and why.
        """
        for name, why in unfit.items():
            if self._columns is None or name.casefold() in self._columns:
                raise QueryFailed(f"{why}. A query that names its columns, and not this one, runs")

    def send_rows(self, batch: pa.RecordBatch) -> None:
        """Sends rows of a table."""
        self._send(ROWS, ipc_stream(batch.schema, batch))

    def share_rows(self, rows: Sequence[SharedRows]) -> None:
        """Lets the process read rows of a table where they are."""
        self._send(SHARED, b"%d" % len(rows))
        try:
            give(self._process.giving, rows)
        except OSError:
            self._next()  # which says why
            raise self._died() from None

    def result(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The columns of the result, and its rows as they come: at most so many as the limit says, then
        `QueryFailed`.
        """
        self._send(HEADER, header_bytes(self._asked, self._tables, self._limits.memory_mib * MIB, self._limits.seconds))
        self._frames.seconds_left = START_SECONDS_MAX
        needs = msgspec.json.decode(self._next(NEEDS), type=Needs)
        self._frames.seconds_left = None
        self._columns = needs.columns
        for at in needs.tables:
            self.load(at)
            self._send(END)
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
                        f"the result has more than {self._limits.rows} rows: {self._options['rows']} allows more",
                        "rows",
                    )

    def _send(self, kind: bytes, data: bytes = b"") -> None:
        try:
            write_frame(self._process.to, kind, data)
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
                f"the query has not ended within {self._limits.seconds:g} s: {self._options['seconds']} allows more",
                "seconds",
            ) from None
        except ValueError as error:
            raise QueryFailed(
                f"a few rows of the result are too large: {error}; {self._options['memory']} allows more", "memory"
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
                f"the query needs more than {self._limits.memory_mib} MiB: {self._options['memory']} allows more",
                "memory",
            )
        if "does not exist" in text and text.startswith("Catalog Error: Table"):
            known = ", ".join(sorted(f"{each.schema}.{each.name}" for each in self._tables)) or "none"
            text = f"{text}\nThe tables are: {known}"
        return QueryFailed(text)

    def _died(self) -> QueryFailed:
        status = self._process.status()
        return QueryFailed(
            f"the query's process has ended with status {status}: most often it needs more than "
            f"{self._limits.memory_mib} MiB; {self._options['memory']} allows more",
            "memory",
        )
