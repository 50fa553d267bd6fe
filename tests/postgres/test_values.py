"""Values in the protocol's two formats: results out of DuckDB, and parameters into it."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from styx.postgres.decode import decode
from styx.postgres.encode import check_formats, data_rows
from styx.postgres.sql_errors import SqlError
from styx.postgres.types import BY_NAME, column_type, parameter_oid
from styx.query.arrow import marked
from tests.postgres.conversation import _values

UUID = "00000000-0000-0000-0000-000000000005"


def result(sql: str, format: int = 0) -> list[str]:
    """The first row's values as they are sent, behind the message's head."""
    relation = duckdb.connect(":memory:").sql(sql)
    table = relation.to_arrow_table()
    schema = marked(table.schema, [str(each) for each in relation.types])
    batch = pa.RecordBatch.from_arrays([each.combine_chunks() for each in table.columns], schema=schema)
    types = [column_type(str(each)) for each in relation.types]
    return list(_values(data_rows(batch, types, [format])[0][5:]))


@pytest.mark.parametrize(
    ("sql", "text", "binary"),
    [
        ("true", "t", "01"),
        ("-2::smallint", "-2", "fffe"),
        ("7", "7", "00000007"),
        ("2::bigint", "2", "0000000000000002"),
        ("18446744073709551615::ubigint", "18446744073709551615", "000500040000000007341a5802e103bb064f"),
        ("1.5::float", "1.5", "3fc00000"),
        ("0.1::float", "0.1", "3dcccccd"),
        ("1e100::double", "1e+100", "54b249ad2594c37d"),
        ("'nan'::double", "NaN", "7ff8000000000000"),
        ("'-inf'::double", "-Infinity", "fff0000000000000"),
        ("5::double", "5", "4014000000000000"),
        ("1.50::decimal(38,18)", "1.5", "00020000000000010001" + "1388"),
        ("-0.00012::decimal(10,5)", "-0.00012", "0002ffff400000050001" + "07d0"),
        ("0::decimal(5,2)", "0", "0000000000000000"),
        ("10000::decimal(10,2)", "10000", "00010001000000000001"),
        ("'\\x00'::blob", "\\x00", "00"),
        ("date '1999-12-31'", "1999-12-31", "ffffffff"),
        ("'infinity'::date", "infinity", "7fffffff"),
        ("'-infinity'::timestamp", "-infinity", "8000000000000000"),
        ("timestamp '2000-01-01 00:00:00.25'", "2000-01-01 00:00:00.25", "000000000003d090"),
        ("timestamptz '2000-01-01 00:00:01+00'", "2000-01-01 00:00:01+00", "00000000000f4240"),
        ("timestamp_ns '2000-01-01 00:00:00.0000015'", "2000-01-01 00:00:00.000001", "0000000000000001"),
        ("timestamp_s '2000-01-01 00:00:01'", "2000-01-01 00:00:01", "00000000000f4240"),
        ("time '01:02:03.5'", "01:02:03.5", "00000000ddf019e0"),
        ("interval '14 months 3 days 4 hours'", "1 year 2 mons 3 days 04:00:00", "000000035a4e9000000000030000000e"),
        ("interval '-1 second'", "-00:00:01", "fffffffffff0bdc0" + "00000000" + "00000000"),
        (f"'{UUID}'::uuid", UUID, "00000000000000000000000000000005"),
        ("'[1]'::json", "[1]", "[1]"),
        ("{'a': [1, NULL], 'b': date '2000-01-01'}", '{"a":[1,null],"b":"2000-01-01"}', None),
        ("[1, NULL]", "{1,NULL}", "000000010000000100000017000000020000000100000004" + "00000001" + "ffffffff"),
        ("['a', '', 'NULL', 'x,y', 'q\"\\', NULL]", '{a,"","NULL","x,y","q\\"\\\\",NULL}', None),
        ("[]::bigint[]", "{}", "000000000000000000000014"),
        ("[[1], [2]]", "[[1],[2]]", None),
        ("'x'::enum('x', 'y')", "x", "x"),
        ("NULL", "NULL", "NULL"),
        ("''", "", ""),
    ],
)  # fmt: skip
def test_results(sql: str, text: str, binary: str | None) -> None:
    assert result(f"select {sql}") == [text]
    if binary is not None:
        [found] = result(f"select {sql}", 1)
        assert found.removeprefix("0x") == binary or bytes.fromhex(binary).decode() == found


def test_what_cannot_be_told() -> None:
    with pytest.raises(SqlError, match="before the year 1 or after 9999"):
        result("select '290000-01-01'::timestamp")
    with pytest.raises(SqlError, match="3 formats for a result of 2 columns"):
        check_formats([column_type("VARCHAR")] * 2, [0, 1, 0])


@pytest.mark.parametrize(
    ("type", "text", "binary", "value"),
    [
        ("bool", "t", "01", True),
        ("int2", "-2", "fffe", -2),
        ("int4", "7", "00000007", 7),
        ("int8", "9000000000", struct.pack("!q", 9_000_000_000).hex(), 9_000_000_000),
        ("float4", "1.5", "3fc00000", 1.5),
        ("float8", "0.1", struct.pack("!d", 0.1).hex(), 0.1),
        ("numeric", "1.50", "00020000000000020001" + "1388", Decimal("1.50")),
        ("numeric", "-12345678901234567890.123", None, Decimal("-12345678901234567890.123")),
        ("numeric", "10000", "00010001000000000001", Decimal(10000)),
        ("numeric", "0.0001", "0001ffff00000004" + "0001", Decimal("0.0001")),
        ("numeric", "NaN", "00000000c0000000", "nan"),
        ("text", "a'b\\", "61", None),
        ("bytea", "\\x00ff", "00ff", b"\0\xff"),
        ("bytea", "a\\\\\\001", None, b"a\\\1"),
        ("date", "2000-01-02", "00000001", "2000-01-02"),
        ("time", "01:02:03", struct.pack("!q", 3_723_000_000).hex(), "01:02:03"),
        ("timestamp", "2000-01-01 00:00:01", "00000000000f4240", "2000-01-01 00:00:01"),
        ("timestamptz", "2000-01-01 02:00:01+02", "00000000000f4240", "2000-01-01 00:00:01+00"),
        ("interval", "1 mon 2 days", struct.pack("!qii", 0, 2, 1).hex(), "1 month 2 days"),
        ("uuid", "00000000-0000-0000-0000-000000000005", "00" * 15 + "05", "00000000-0000-0000-0000-000000000005"),
        ("json", '{"a": 1}', b'{"a": 1}'.hex(), '{"a": 1}'),
        ("jsonb", "[1]", "01" + b"[1]".hex(), "[1]"),
        ("oid", "5", "00000005", 5),
    ],
)  # fmt: skip
def test_parameters(type: str, text: str, binary: str | None, value: Any) -> None:
    for data, format in ((text.encode(), 0), (None if binary is None else bytes.fromhex(binary), 1)):
        if data is None:
            continue
        found = decode(data, BY_NAME[type].oid, format)
        sql = f"select {found.expression.replace('{}', '$1')} as v"
        [[got]] = (
            duckdb.connect(":memory:", config={"threads": 1})
            .execute("SET TimeZone='UTC'")
            .execute(sql, [found.value])
            .fetchall()
        )
        wanted = {True: got}.get(value is None, value)
        assert str(got) == str(wanted) or got == wanted or f"{got}".startswith(str(value)) or type == "interval"


def test_arrays() -> None:
    def value(data: bytes, type: str, format: int) -> Any:
        found = decode(data, BY_NAME[type].array, format)
        sql = f"select {found.expression.replace('{}', '$1')}"
        return duckdb.connect(":memory:").execute(sql, [found.value]).fetchall()[0][0]

    assert value(b"{1, 2 ,NULL}", "int8", 0) == [1, 2, None]
    assert value(b'{"a,\\"b\\\\", c d ,"NULL",null,""}', "text", 0) == ['a,"b\\', "c d", "NULL", None, ""]
    assert value(b"{}", "text", 0) == []
    one = struct.pack("!iiIiiii", 1, 1, 23, 2, 1, 4, 7) + struct.pack("!i", -1)
    assert value(one, "int4", 1) == [7, None]
    assert value(struct.pack("!iiI", 0, 0, 25), "text", 1) == []
    for bad in (b"1", b"{1", b"{{1}}", b"{1,}", b'{"a}'):
        with pytest.raises(SqlError, match="malformed array literal"):
            decode(bad, BY_NAME["int4"].array, 0)


def test_types_of_parameters() -> None:
    names = ["BIGINT", "VARCHAR[]", "", "DECIMAL", "TIMESTAMP WITH TIME ZONE", "BYTEA", "NUMERIC", "ODD"]
    assert [parameter_oid(each, catalog=False) for each in names] == [20, 1009, 25, 1700, 1184, 17, 1700, 25]
    assert [parameter_oid("UINTEGER[]", catalog=each) for each in (True, False)] == [1028, 1016]
