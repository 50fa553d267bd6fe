"""Records as Arrow: the type of each kind of column, and batches of rows.

A Decimal is a decimal of 38 digits, 18 of them behind the point, a number has 64 bits, and what has no type of its own
is JSON as text. Imports pyarrow, of the extra `sql`: see `styx.query.extra`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, Any, Final

import pyarrow as pa
from pyarrow import parquet

from styx.errors import UnsupportedValue
from styx.query.fields import JSON, Field, json_of
from styx.values.codec import shown

BATCH_ROWS: Final = 16_384
"""Rows that are converted at once."""
DECIMAL_DIGITS: Final = 38
DECIMAL_SCALE: Final = 18
SQL_TYPE: Final = b"styx.type"
"""Where a column of a result has DuckDB's name of its type, which says more than Arrow's: JSON, UUID, HUGEINT."""

_TYPES: Final[dict[str, pa.DataType]] = {
    "int": pa.int64(),
    "str": pa.string(),
    "bool": pa.bool_(),
    "bytes": pa.binary(),
    "float": pa.float64(),
    "Decimal": pa.decimal128(DECIMAL_DIGITS, DECIMAL_SCALE),
    "date": pa.date32(),
    "datetime": pa.timestamp("us", tz="UTC"),
    "naive datetime": pa.timestamp("us"),
    "UUID": pa.string(),
    JSON: pa.string(),
}


def arrow_schema(fields: Sequence[Field]) -> pa.Schema:
    """The Arrow schema of these columns."""
    return pa.schema([pa.field(each.name, _TYPES[each.kind]) for each in fields])


def batches(
    fields: Sequence[Field], records: Iterable[tuple[Any, ...]], unfit: dict[str, str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The records as batches of `BATCH_ROWS`; raises `UnsupportedValue` for a value that its column's type lacks.

    With `unfit`, such a column is null in its whole batch, and `unfit` says why: nobody may read it.
    """
    schema, rest = arrow_schema(fields), iter(records)
    while rows := list(islice(rest, BATCH_ROWS)):
        columns = [_column(each, values, unfit) for each, values in zip(fields, zip(*rows, strict=True), strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def ipc_stream(schema: pa.Schema, batch: pa.RecordBatch | None) -> bytes:
    """The schema, and a batch if there is one, as an Arrow IPC stream of its own."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        if batch is not None:
            writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def marked(schema: pa.Schema, types: Sequence[str]) -> pa.Schema:
    """The schema with the columns' types in SQL."""
    return pa.schema(
        [field.with_metadata({SQL_TYPE: name.encode()}) for field, name in zip(schema, types, strict=True)]
    )


def holds_json(field: pa.Field) -> bool:
    """Whether the column's texts are JSON."""
    return bool((field.metadata or {}).get(SQL_TYPE) == JSON.upper().encode())


def parquet_writer(file: IO[bytes], fields: Sequence[Field]) -> parquet.ParquetWriter:
    """What writes batches of these columns to a file as Parquet; close it before the file."""
    return parquet.ParquetWriter(file, arrow_schema(fields), compression="zstd")


def _column(field: Field, values: Sequence[Any], unfit: dict[str, str] | None) -> pa.Array:
    if field.kind == JSON:
        values = [None if value is None else json_of(value).decode() for value in values]
    try:
        return pa.array(values, _TYPES[field.kind])
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        why = _refusal(field, values)
        if unfit is None:
            raise UnsupportedValue(why) from None
        unfit.setdefault(field.name, why)
        return pa.nulls(len(values), _TYPES[field.kind])


def _refusal(field: Field, values: Sequence[Any]) -> str:
    """Names the first value that the column's type lacks."""
    for value in values:
        try:
            pa.array([value], _TYPES[field.kind])
        except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
            why = " ".join(str(error).split())
            return (
                f"column {field.name!r} is {_TYPES[field.kind]}, which {shown(value)} does not fit ({why}): export it "
                "as json or csv, which have every value"
            )
    raise AssertionError("values do not fit together that fit one by one")
