"""Results of queries as text or bytes: a table for people, an object of JSON a line, CSV, or an Arrow IPC stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Context, Decimal
from typing import IO, Any, Final
from uuid import UUID

import msgspec
import pyarrow as pa

from styx.query.arrow import DECIMAL_DIGITS, holds_json
from styx.query.export import csv_text, csv_value
from styx.query.fields import json_of
from styx.query.relations import distinct
from styx.query.service import QueryFailed

_NULL: Final = "NULL"
_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")
_EXACT: Final = Context(prec=2 * DECIMAL_DIGITS)
"""Python's own context would round to 28 digits."""

Result = tuple[pa.Schema, Iterator[pa.RecordBatch]]


def write_json(result: Result, file: IO[bytes]) -> None:
    """An object a line. Of two columns of one name, the second has another one."""
    schema, batches = result
    names = distinct(schema.names)
    for row in rows_of(schema, batches):
        file.write(json_of(dict(zip(names, row, strict=True))) + b"\n")


def write_csv(result: Result, file: IO[bytes]) -> None:
    """As an export: None is nothing, and an empty text is `""`."""
    schema, batches = result
    file.write(",".join(map(csv_text, schema.names)).encode() + b"\r\n")
    for row in rows_of(schema, batches):
        file.write(",".join(map(csv_cell, row)).encode() + b"\r\n")


def write_arrow(result: Result, file: IO[bytes]) -> None:
    """An Arrow IPC stream, with the types of the result."""
    schema, batches = result
    with pa.ipc.new_stream(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_table(result: Result, file: IO[bytes]) -> None:
    """Columns in line, numbers to the right. The rows are kept until the last one is there."""
    schema, batches = result
    rows = [[_table_cell(value) for value in row] for row in rows_of(schema, batches)]
    widths = [max(map(len, column)) for column in zip(schema.names, *rows, strict=True)]
    right = [
        pa.types.is_integer(each) or pa.types.is_decimal(each) or pa.types.is_floating(each) for each in schema.types
    ]
    for row in [list(schema.names), ["-" * width for width in widths], *rows]:
        cells = [
            cell.rjust(width) if to else cell.ljust(width) for cell, width, to in zip(row, widths, right, strict=True)
        ]
        file.write("  ".join(cells).rstrip().encode() + b"\n")


FORMATS: Final[dict[str, Callable[[Result, IO[bytes]], None]]] = {
    "table": write_table,
    "json": write_json,
    "csv": write_csv,
    "arrow": write_arrow,
}


def rows_of(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[Sequence[Any]]:
    """The rows as values: a Decimal of a column without digits behind the point is an int, others have no zeros at the
    end. Raises `QueryFailed` for a time that Python does not have.
    """
    converts = [_converter(each) for each in schema]
    for batch in batches:
        values = [_values(field.name, column) for field, column in zip(schema, batch.columns, strict=True)]
        yield from zip(*(map(convert, column) for convert, column in zip(converts, values, strict=True)), strict=True)


def _values(name: str, column: pa.Array) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        raise QueryFailed(
            f"column {name!r} has a time before the year 1 or after 9999, or with nanoseconds: cast it to VARCHAR"
        ) from None
    return values


def _converter(field: pa.Field) -> Callable[[Any], Any]:
    if pa.types.is_decimal(field.type):
        return _whole if field.type.scale == 0 else _shortened
    if holds_json(field):
        return _raw
    return _plain


def _whole(value: Decimal | None) -> int | None:
    return None if value is None else int(value)


def _shortened(value: Decimal | None) -> Decimal | None:
    if value is None:
        return None
    short = value.normalize(_EXACT)
    whole = short.as_tuple().exponent > 0  # type: ignore[operator]  # finite
    return short.quantize(Decimal(1), context=_EXACT) if whole else short


def _raw(value: str | None) -> msgspec.Raw | str | None:
    """JSON on one line. DuckDB takes more for JSON, such as NaN: that is text."""
    if value is None:
        return None
    try:
        raw = msgspec.json.decode(value, type=msgspec.Raw)
    except msgspec.DecodeError:
        return value
    return msgspec.Raw(bytes(raw).translate(_ONE_LINE))


_OWN: Final = (type(None), bool, int, float, str, bytes, Decimal, datetime, UUID)


def _plain(value: Any) -> Any:
    """Types of SQL that JSON does not have are text; an interval is a duration of ISO 8601, such as P1M2DT3.5S."""
    if isinstance(value, pa.MonthDayNano):
        return _duration(value)
    if isinstance(value, list | tuple):  # a map is a list of pairs
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value if isinstance(value, _OWN) else str(value)


def _duration(value: pa.MonthDayNano) -> str:
    days = "".join(f"{number}{unit}" for number, unit in ((value.months, "M"), (value.days, "D")) if number)
    if not value.nanoseconds:
        return f"P{days or '0D'}"
    return f"P{days}T{Decimal(value.nanoseconds).scaleb(-9).normalize():f}S"


def csv_cell(value: Any) -> str:
    """A value of a row as it stands in CSV."""
    if isinstance(value, list | dict | msgspec.Raw):
        return csv_text(json_of(value).decode())
    return csv_value("", value)


def _table_cell(value: Any) -> str:
    if value is None:
        return _NULL
    text = json_of(value).decode() if isinstance(value, list | dict | msgspec.Raw) else csv_value("", value)
    if isinstance(value, str):
        text = value
    return text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")
