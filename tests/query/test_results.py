"""Results in each format, with the types that SQL has and JSON lacks."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import IO, Any

import msgspec
import pyarrow as pa
import pytest

from styx.query.arrow import marked
from styx.query.results import Result, rows_of, write_arrow, write_csv, write_json, write_table
from styx.query.service import QueryFailed

COLUMNS: dict[str, pa.Array] = {
    "name": pa.array(["a", "", None]),
    "total": pa.array([Decimal("1.500"), Decimal("100.000"), None], pa.decimal128(38, 3)),
    "huge": pa.array([Decimal(2**70), Decimal(0), None], pa.decimal128(38, 0)),
    "json": pa.array(['{"x":[1,2]}', '"t"', None]),
    "list": pa.array([[1, 2], [], None]),
    "at": pa.array([datetime(2026, 1, 2, tzinfo=UTC)] * 2 + [None], pa.timestamp("us", tz="UTC")),
    "day": pa.array([date(2026, 1, 2)] * 2 + [None]),
    "gap": pa.array([timedelta(hours=1)] * 2 + [None], pa.duration("us")),
    "raw": pa.array([b"\0", b"", None]),
    "yes": pa.array([True, False, None]),
    "name_": pa.array(["x\ty", "line\nbreak", None]),
}


def result() -> Result:
    """Two batches."""
    names = [name.removesuffix("_") for name in COLUMNS]
    plain = pa.schema([pa.field(name, array.type) for name, array in zip(names, COLUMNS.values(), strict=True)])
    schema = marked(plain, ["JSON" if name == "json" else "VARCHAR" for name in COLUMNS])
    batch = pa.RecordBatch.from_arrays(list(COLUMNS.values()), schema=schema)
    return schema, iter([batch.slice(0, 2), batch.slice(2)])


def written(write: Callable[[Result, IO[bytes]], None]) -> bytes:
    file = io.BytesIO()
    write(result(), file)
    return file.getvalue()


def test_json() -> None:
    first, second, third = [msgspec.json.decode(line) for line in written(write_json).splitlines()]
    assert first == {
        "name": "a",
        "total": "1.5",
        "huge": 2**70,
        "json": {"x": [1, 2]},
        "list": [1, 2],
        "at": "2026-01-02T00:00:00Z",
        "day": "2026-01-02",
        "gap": "1:00:00",
        "raw": "AA==",
        "yes": True,
        "name_2": "x\ty",
    }
    assert (second["total"], second["json"], second["name"]) == ("100", "t", "")
    assert set(third.values()) == {None}


def test_csv() -> None:
    lines = written(write_csv).split(b"\r\n")
    assert lines[0] == b"name,total,huge,json,list,at,day,gap,raw,yes,name"
    assert lines[1] == (
        b'a,1.5,1180591620717411303424,"{""x"":[1,2]}","[1,2]",2026-01-02T00:00:00Z,2026-01-02,1:00:00,AA==,true,x\ty'
    )
    assert lines[2].startswith(b'"",100,0,"""t""",[],')
    assert lines[3] == b"," * 10


def test_a_table_for_people() -> None:
    lines = written(write_table).decode().splitlines()
    assert len(lines) == 5
    assert lines[0].split() == [name.removesuffix("_") for name in COLUMNS]
    assert lines[2].split()[:5] == ["a", "1.5", "1180591620717411303424", '{"x":[1,2]}', "[1,2]"]
    assert lines[2].endswith("x\\ty")
    assert lines[3].endswith("line\\nbreak")
    assert lines[4].split() == ["NULL"] * len(COLUMNS)
    assert lines[3].index("100") + 3 == lines[2].index("1.5") + 3, "numbers end in one place"


def test_arrow() -> None:
    read: list[dict[str, Any]] = []
    with pa.ipc.open_stream(written(write_arrow)) as stream:
        assert stream.schema.field("total").type == pa.decimal128(38, 3)
        for batch in stream:
            read += batch.select(["total", "list"]).to_pylist()
    assert read == [
        {"total": Decimal("1.500"), "list": [1, 2]},
        {"total": Decimal("100.000"), "list": []},
        {"total": None, "list": None},
    ]


def test_without_rows() -> None:
    for write, text in ((write_json, b""), (write_csv, b"a\r\n"), (write_table, b"a\n-\n")):
        file = io.BytesIO()
        write((pa.schema([("a", pa.int64())]), iter([])), file)
        assert file.getvalue() == text


def shown(array: pa.Array, sql_type: str = "VARCHAR") -> Any:
    """The first value of a column, as JSON has it."""
    schema = marked(pa.schema([("x", array.type)]), [sql_type])
    file = io.BytesIO()
    write_json((schema, iter([pa.RecordBatch.from_arrays([array], schema=schema)])), file)
    [line] = file.getvalue().splitlines()
    return msgspec.json.decode(line)["x"]


@pytest.mark.parametrize(
    ("text", "scale"),
    [("12345678901234567890.123456789012345678", 18), ("1234567890123456789012345678901234560", 1), ("-0.5", 18)],
)
def test_all_digits_of_a_decimal_are_shown(text: str, scale: int) -> None:
    assert shown(pa.array([Decimal(text)], pa.decimal128(38, scale))) == text


@pytest.mark.parametrize(
    ("months", "days", "nanoseconds", "text"),
    [(1, 0, 0, "P1M"), (0, 0, 0, "P0D"), (14, -2, 3_500_000_000, "P14M-2DT3.5S"), (0, 0, 10**11, "PT100S")],
)
def test_an_interval_is_a_duration(months: int, days: int, nanoseconds: int, text: str) -> None:
    gap = pa.MonthDayNano([months, days, nanoseconds])
    assert shown(pa.array([gap], pa.month_day_nano_interval())) == text
    assert shown(pa.array([{"a": [gap]}])) == {"a": [text]}


def test_json_stays_on_its_line_and_what_is_none_becomes_text() -> None:
    assert shown(pa.array(['{"a":\r\n1}']), "JSON") == {"a": 1}
    assert shown(pa.array(["[NaN]"]), "JSON") == "[NaN]"


@pytest.mark.parametrize(
    "array",
    [
        pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
        pa.array([2**62], pa.int64()).cast(pa.timestamp("us")),
        pa.array([1], pa.int64()).cast(pa.timestamp("ns")),
    ],
)
def test_a_time_that_python_lacks_is_refused(array: pa.Array) -> None:
    schema = marked(pa.schema([("x", array.type)]), ["DATE"])
    with pytest.raises(QueryFailed, match="column 'x' has a time before the year 1"):
        list(rows_of(schema, [pa.RecordBatch.from_arrays([array], schema=schema)]))
