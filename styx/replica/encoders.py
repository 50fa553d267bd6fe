"""The result of a query as the bytes of an HTTP answer, batch by batch: JSON lines, one JSON object, CSV, or an Arrow
IPC stream. Nothing of a batch is kept.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec
import pyarrow as pa

from styx.query.arrow import SQL_TYPE
from styx.query.export import csv_text
from styx.query.fields import json_of
from styx.query.relations import distinct
from styx.query.results import csv_cell, rows_of

_encode = msgspec.json.encode


class Encoder(Protocol):
    """Encodes one result, whose columns are those of `schema`. What comes from `begin`, `rows` and `end` belongs
    together.
    """

    content_type: str

    def __init__(self, schema: pa.Schema, epoch: int) -> None: ...

    def begin(self) -> bytes:
        """What stands before all rows."""
        ...

    def rows(self, batch: pa.RecordBatch) -> bytes:
        """Some rows."""
        ...

    def end(self) -> bytes:
        """What stands behind all rows."""
        ...


class JsonLines:
    """An object a line."""

    content_type = "application/x-ndjson"

    def __init__(self, schema: pa.Schema, epoch: int) -> None:
        self._schema = schema
        self._names = distinct(schema.names)

    def begin(self) -> bytes:
        """Nothing."""
        return b""

    def rows(self, batch: pa.RecordBatch) -> bytes:
        """A line each."""
        return b"".join(line + b"\n" for line in _objects(self._schema, self._names, batch))

    def end(self) -> bytes:
        """Nothing."""
        return b""


class JsonObject:
    """One object: the epoch, the columns with their types in SQL, and the rows as objects."""

    content_type = "application/json"

    def __init__(self, schema: pa.Schema, epoch: int) -> None:
        self._schema = schema
        self._names = distinct(schema.names)
        self._epoch = epoch
        self._comma = b""

    def begin(self) -> bytes:
        """Up to the first row."""
        columns = [
            {"name": name, "type": field.metadata[SQL_TYPE].decode()}
            for name, field in zip(self._names, self._schema, strict=True)
        ]
        return b'{"epoch":%d,"columns":%b,"rows":[' % (self._epoch, _encode(columns))

    def rows(self, batch: pa.RecordBatch) -> bytes:
        """With commas between them."""
        rows = b",\n".join(_objects(self._schema, self._names, batch))
        if rows:
            rows, self._comma = self._comma + rows, b",\n"
        return rows

    def end(self) -> bytes:
        """Behind the last row."""
        return b"]}\n"


class Csv:
    """As an export: None is nothing, and an empty text is `""`."""

    content_type = "text/csv; charset=utf-8"

    def __init__(self, schema: pa.Schema, epoch: int) -> None:
        self._schema = schema

    def begin(self) -> bytes:
        """The columns' names."""
        return ",".join(map(csv_text, self._schema.names)).encode() + b"\r\n"

    def rows(self, batch: pa.RecordBatch) -> bytes:
        """A line each."""
        lines = (",".join(map(csv_cell, row)).encode() + b"\r\n" for row in rows_of(self._schema, [batch]))
        return b"".join(lines)

    def end(self) -> bytes:
        """Nothing."""
        return b""


class ArrowStream:
    """With DuckDB's types."""

    content_type = "application/vnd.apache.arrow.stream"

    def __init__(self, schema: pa.Schema, epoch: int) -> None:
        self._sink = io.BytesIO()
        self._writer = pa.ipc.new_stream(self._sink, schema)

    def begin(self) -> bytes:
        """The schema."""
        return self._written()

    def rows(self, batch: pa.RecordBatch) -> bytes:
        """A batch."""
        self._writer.write_batch(batch)
        return self._written()

    def end(self) -> bytes:
        """The end's mark."""
        self._writer.close()
        return self._written()

    def _written(self) -> bytes:
        data = self._sink.getvalue()
        self._sink.seek(0)
        self._sink.truncate()
        return data


ENCODERS: Final[dict[str, type[Encoder]]] = {
    "jsonl": JsonLines,
    "json": JsonObject,
    "csv": Csv,
    "arrow": ArrowStream,
}


def _objects(schema: pa.Schema, names: Sequence[str], batch: pa.RecordBatch) -> list[bytes]:
    return [json_of(dict(zip(names, row, strict=True))) for row in rows_of(schema, [batch])]
