"""Results in each format, with the types that SQL has and JSON lacks."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import IO, Any

import msgspec
import pyarrow as pa

from styx.query.arrow import marked
from styx.query.results import Result, write_arrow, write_csv, write_json, write_table

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
