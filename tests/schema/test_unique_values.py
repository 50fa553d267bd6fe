"""Rows of different workers with the same value in a new unique index are found, and named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from styx import App, Index, Operator
from styx.model.limits import Limits
from styx.schema import unique_values
from styx.schema.state_check import StateCheck
from styx.schema.state_findings import StateFindings, together
from styx.schema.unique_values import TooManyValues, new_unique


class Row(msgspec.Struct):
    id: int
    email: str = ""


class Other(msgspec.Struct):
    id: int
    email: str = "x"


def app_of(*indexes: Index, row_type: Any = Row, **given: Any) -> App:
    group = Operator("group")
    group.table("users", row_type, key="id", indexes=list(indexes), **given)
    return App("shop", [group])


UNIQUE = Index("by_email", equal="email", unique=True, scope="app")
app = app_of(UNIQUE)


def report(rows: dict[tuple[str, int], str], slot: int) -> StateFindings:
    check = StateCheck(app, 2, Limits())
    encode = app.tables["group/users"].row_type.encode
    table = {key: encode(Row(key[1], email)) for key, email in rows.items()}
    check._found = lambda slot, operator, name, keys: keys  # type: ignore[method-assign]  # wherever they belong
    check.add(slot, "group/users", table)
    while not check.run(100):
        pass
    gone = [key for key, email in rows.items() if email == "moved"]
    for key in gone:
        del table[key]
    return msgspec.structs.replace(check.take(), values=check.unique_values(["group/users"]))


def test_values_of_two_workers_are_compared() -> None:
    one = report({("a", 1): "x", ("a", 2): "y", ("a", 3): "moved"}, 0)
    two = report({("b", 1): "y", ("b", 2): "z", ("b", 3): "moved"}, 1)
    assert not one.offenders + two.offenders
    found = together([one, two])
    assert found.first == [
        "group/users[('b', 1)]: group/users[('a', 2)] has the same values in the unique index 'by_email'"
    ]
    assert found.offenders == 1
    assert not together([one, report({("b", 1): "w"}, 1)]).offenders
    assert not found.values


def test_many_values_are_counted_and_too_many_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unique_values, "NAMED_MAX", 0)
    assert together([report({("a", 1): "x"}, 0), report({("b", 1): "x"}, 1)]).first == [
        "group/users: another row of group/users has the same values in the unique index 'by_email'"
    ]
    monkeypatch.setattr(unique_values, "VALUES_MAX", 1)
    with pytest.raises(TooManyValues):
        report({("a", 1): "x", ("a", 2): "y"}, 0)


def test_only_indexes_that_may_not_hold_are_compared() -> None:
    name = {"group/users"}
    assert new_unique(app, app_of(Index("by_email", equal="email", scope="app"))) == name
    assert new_unique(app, app_of()) == name
    assert new_unique(app, App("shop", [Operator("group")])) == name
    assert new_unique(app_of(UNIQUE, row_type=Other), app) == name
    assert new_unique(app_of(UNIQUE, migrate=lambda old: old), app) == name
    assert new_unique(app_of(UNIQUE), app) == set()
    assert new_unique(app_of(), app) == set()
