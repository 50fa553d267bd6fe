"""Exports are what functions have read, in each format; and a failed one leaves nothing."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet
import pytest

from styx.errors import ConfigurationError, UnsupportedValue
from styx.query.arrow import batches
from styx.query.export import CsvWriter, csv_value, export
from styx.query.fields import Field, json_of
from styx.query.schema import of_description
from styx.query.source import of_cluster
from styx.schema.description import AppDescription, OperatorDescription
from tests.backup.snapshots import Cluster
from tests.query.conftest import Filled
from tests.query.shop import Colour, Item

Rows = list[dict[str, Any]]


def json_rows(file: Path) -> Rows:
    return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]


def csv_rows(file: Path) -> Rows:
    with file.open(newline="") as text:
        return list(csv.DictReader(text))


def parquet_rows(file: Path) -> Rows:
    found: Rows = pyarrow.parquet.read_table(file).to_pylist()
    return found


def expected_items(filled: Filled) -> dict[tuple[str, int], Item]:
    return {key: row for (table, key), row in filled.told.state.items() if table == "cart/items"}


def as_json(name: str, value: Any) -> Any:
    return msgspec.json.decode(json_of(value))


def as_csv(name: str, value: Any) -> str:
    if name in ("size", "tags"):
        return "" if value is None else json_of(value).decode()
    plain = value.value if isinstance(value, Colour) else value
    return plain if type(plain) is str else csv_value("", plain)


def as_arrow(name: str, value: Any) -> Any:
    if name in ("size", "tags"):
        return None if value is None else json_of(value).decode()
    if name == "number":
        return None if value is None else str(value)
    return value.value if isinstance(value, Colour) else value


@pytest.mark.parametrize("schema", ["by_app", "by_description"])
@pytest.mark.parametrize(
    ("format", "ending", "read", "form"),
    [
        ("json", "jsonl", json_rows, as_json),
        ("csv", "csv", csv_rows, as_csv),
        ("parquet", "parquet", parquet_rows, as_arrow),
    ],
)
def test_rows_of_a_table(
    filled: Filled,
    tmp_path: Path,
    schema: str,
    format: str,
    ending: str,
    read: Callable[[Path], Rows],
    form: Callable[[str, Any], Any],
) -> None:
    [done] = export(filled.source, [getattr(filled, schema).dataset("cart/items")], format, str(tmp_path))
    file = tmp_path / "cart" / f"items.{ending}"
    assert done == ("cart/items", 51, file)
    found = {(row["key"], int(row["product"])): row for row in read(file)}
    expected = expected_items(filled)
    assert found.keys() == expected.keys()
    for key, item in expected.items():
        wanted = {name: form(name, getattr(item, name)) for name in Item.__struct_fields__}
        assert found[key] == {"key": form("key", key[0]), **wanted}


def test_everything_in_one_pass(filled: Filled, tmp_path: Path) -> None:
    schema = filled.by_app
    done = export(filled.source, list(schema.datasets.values()), "json", str(tmp_path))
    assert {each.name for each in done} == schema.datasets.keys()
    assert (
        sorted(tmp_path.rglob("*.jsonl"))
        == sorted(tmp_path.rglob("*.*"))
        == sorted(each.file for each in done if each.file)
    )
    state = filled.told.state
    for name in ("account", "counter", "order", "cart", "order/lines"):
        rows = json_rows(tmp_path / f"{name}.jsonl")
        assert len(rows) == sum(table == name for table, _ in state)
    assert {row["key"]: row["value"] for row in json_rows(tmp_path / "counter.jsonl")} == {-5: 1, 7: 2, 10: 1, 2**40: 1}
    orders = {(row["key"], row["key_2"]): Decimal(row["total"]) for row in json_rows(tmp_path / "order.jsonl")}
    assert orders == {key: order.total for (table, key), order in state.items() if table == "order"}
    groups = json_rows(tmp_path / "cart/by_seller.jsonl")
    assert {row["seller"]: row for row in groups} == filled.told.sellers
    mine = [{"key": name, **group} for name, of in filled.told.groups.items() for group in of]
    found = json_rows(tmp_path / "cart/mine.jsonl")
    assert sorted(found, key=lambda row: str(row["key"])) == mine
    here = json_rows(tmp_path / "cart/here.jsonl")
    for colour in Colour:
        count = sum(row["count"] for row in here if row["colour"] == colour.value)
        assert count == sum(item.colour is colour for item in expected_items(filled).values()) > 0


def test_a_file_and_standard_output(filled: Filled, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    dataset = filled.by_app.dataset("counter")
    [done] = export(filled.source, [dataset], "csv", str(tmp_path / "c.csv"))
    assert done.file == tmp_path / "c.csv"
    [done] = export(filled.source, [dataset], "csv", "-")
    assert done == ("counter", 4, None)
    assert capfdbinary.readouterr().out == (tmp_path / "c.csv").read_bytes()
    both = [dataset, filled.by_app.dataset("cart")]
    for out, complaint in (("-", "takes one operator or table"), (str(tmp_path / "d.csv"), "is one file, and several")):
        with pytest.raises(ConfigurationError, match=complaint):
            export(filled.source, both, "csv", out)
    (tmp_path / "there").touch()
    with pytest.raises(ConfigurationError, match=r"is a file: give a directory, or a file that ends in \.csv"):
        export(filled.source, [dataset], "csv", str(tmp_path / "there"))


def test_a_failure_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.snapshot(10, {"a": b"\1"})
    cluster.snapshot(20, {"b": b"\xc1"})  # no msgpack
    operator = OperatorDescription(n_partitions=None, key_type="str", partition_key=False, functions={})
    schema = of_description(AppDescription(name="bank", operators={"account": operator}))
    (tmp_path / "account.jsonl").write_text("before")
    source = of_cluster(cluster.store)
    with pytest.raises(UnsupportedValue, match=r"account\['b'\] cannot be shown"):
        export(source, [schema.dataset("account")], "json", str(tmp_path))
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("account.jsonl", "before")]
    older = replace(source, manifest=of_cluster(cluster.store, "10").manifest)
    export(older, [schema.dataset("account")], "json", str(tmp_path))
    assert (tmp_path / "account.jsonl").read_text().startswith('{"key":"a","value":1}\n')


def test_csv_tells_nothing_from_an_empty_text(tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        writer = CsvWriter(file, [Field("a,b", "str"), Field("c", "json")])
        writer.write([("", None), (None, {"x": 1}), (' "', False), ("line\nbreak", "")])
        writer.close()
    assert (tmp_path / "x").read_bytes() == (
        b'"a,b",c\r\n"",\r\n,"{""x"":1}"\r\n" """,false\r\n"line\nbreak",""""""\r\n'
    )


@pytest.mark.parametrize(
    ("kind", "value"),
    [("int", 2**63), ("Decimal", Decimal("1e30")), ("Decimal", Decimal("1e-19")), ("Decimal", Decimal("NaN"))],
)
def test_a_value_that_its_arrow_type_lacks_is_named(kind: str, value: Any) -> None:
    field = Field("price", kind)
    with pytest.raises(UnsupportedValue, match=r"column 'price' is .*, which .* does not fit .* as json or csv"):
        list(batches([field], [(None,), (value,)]))


def test_batches_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.query.arrow.BATCH_ROWS", 3)
    found = batches([Field("a", "int")], ((number,) for number in range(7)))
    assert [each.num_rows for each in found] == [3, 3, 1]
