"""Keys of rows: quick for usual values, the columns' own way for all others, and back again."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import inspect

from styx.errors import BadQuery
from styx.relational.columns import Column
from styx.relational.row_keys import RowKeys

COLUMNS = {
    name: Column(name, inspect.type_info(declared))
    for name, declared in {"number": int, "text": str, "day": date, "open": bool}.items()
}


def keys(*names: str) -> RowKeys:
    return RowKeys("shop/orders", tuple(COLUMNS[name] for name in names), 2)


@pytest.mark.parametrize(
    ("names", "pk", "parts"),
    [
        (["number"], 7, (7,)),
        (["number"], -(2**63), (-(2**63),)),
        (["text"], "ä" * 300, ("ä" * 300,)),
        (["text", "number"], ("a", 2), ("a", 2)),
        (["text", "number"], ["a", 2], ("a", 2)),
        (["number", "day"], (3, date(1, 1, 2)), (3, 2)),
        (["open", "text"], (True, ""), (1, "")),
    ],
)
def test_parts_of_a_key_and_back(names: list[str], pk: Any, parts: tuple[Any, ...]) -> None:
    of = keys(*names)
    values = tuple(pk) if len(names) > 1 else (pk,)
    row = SimpleNamespace(**dict(zip(names, values, strict=True)))
    assert of.of(pk) == of.of_row(row) == parts
    assert [type(part) for part in of.of(pk)] == [type(part) for part in parts]
    assert of.primary_key(("entity", 1, *parts)) == (values if len(names) > 1 else pk)


@pytest.mark.parametrize(
    ("names", "pk", "told"),
    [
        (["number"], 2**63, "does not fit 64 bits"),
        (["number"], True, "of type bool"),
        (["number"], "7", "of type str"),
        (["text"], "\ud800", "not valid Unicode"),
        (["text"], "x" * 100_000, "the limit is"),
        (["text", "number"], ("a",), r"is \(text, number\), got"),
        (["text", "number"], "ab", r"is \(text, number\), got"),
        (["text", "number"], ("a", None), "column 'number'"),
    ],
)
def test_what_is_no_key_is_refused_by_name(names: list[str], pk: Any, told: str) -> None:
    with pytest.raises(BadQuery, match=f"(?s)table shop/orders.*{told}"):
        keys(*names).of(pk)
