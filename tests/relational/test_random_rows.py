"""Thousands of random statements on tables with every constraint, held against a model in plain Python.

The model knows nothing of indexes, ranges or bytes: lists of rows, and loops over them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

import msgspec
import pytest

from styx import Check, Index, Operator, Ref, above, at_least, at_most, below, between, prefix
from styx.errors import (
    CheckViolation,
    InTransactionError,
    NoSuchRow,
    ReferenceViolation,
    RowExists,
    UniqueViolation,
)
from tests.relational.memory import Memory, done

MEMBERS_MAX: Final = 20
START: Final = datetime(2026, 1, 1, tzinfo=UTC)


class Group(msgspec.Struct):
    number: int
    name: str


@dataclass
class Member:
    id: int
    name: str
    group: int | None
    boss: int | None
    points: int
    joined: datetime
    reserve: int = 0
    mentor: int | None = None


OPERATOR: Final = Operator("club", key_type=(str, int))
GROUPS: Final = OPERATOR.table("groups", Group, key="number", indexes=Index("named", equal="name", unique=True))
MEMBERS: Final = OPERATOR.table(
    "members",
    Member,
    key="id",
    indexes=[
        Index("in_group", equal="group", order=("points", "joined")),
        Index("by_name", order="name"),
        Index("by_group_order", order=("group", "name")),
        Index("pair", equal=("group", "name"), unique=True),
    ],
    checks=[
        Check("some", lambda row: row.points >= 0),
        Check("sane", lambda row: row.points <= 9),
        Check("quick", lambda row: row.points != 5 or row.name != "aa"),
    ],
    references=[
        Ref("group", GROUPS, "cascade"),
        Ref("boss", "members", "set_null"),
        Ref("reserve", GROUPS, "set_default"),
        Ref("mentor", "members"),
    ],
)


class Refused(Exception):
    """What the model says of a statement; the argument is the error's class."""


class Model:
    """The rows of one entity, and the same rules in loops."""

    def __init__(self) -> None:
        self.groups: dict[int, Group] = {}
        self.members: dict[int, Member] = {}

    def check_member(self, row: Member) -> None:
        if not 0 <= row.points <= 9 or (row.points == 5 and row.name == "aa"):
            raise Refused(CheckViolation)
        for other in self.members.values():
            if other.id != row.id and row.group is not None and (other.group, other.name) == (row.group, row.name):
                raise Refused(UniqueViolation)
        if row.group is not None and row.group not in self.groups:
            raise Refused(ReferenceViolation)
        for other_id in row.boss, row.mentor:
            if other_id is not None and other_id != row.id and other_id not in self.members:
                raise Refused(ReferenceViolation)
        if row.reserve not in self.groups:
            raise Refused(ReferenceViolation)

    def check_group(self, row: Group) -> None:
        if any(other.name == row.name and other.number != row.number for other in self.groups.values()):
            raise Refused(UniqueViolation)

    def remove(self, members: list[int], groups: list[int]) -> None:
        """With all that their deletion means for other rows."""
        gone = set(members) | {row.id for row in self.members.values() if row.group in groups}
        self.groups = {number: row for number, row in self.groups.items() if number not in groups}
        self.members = {pk: row for pk, row in self.members.items() if pk not in gone}
        for row in list(self.members.values()):
            if row.boss in gone or row.reserve in groups:
                boss = None if row.boss in gone else row.boss
                changed = replace(row, boss=boss, reserve=0 if row.reserve in groups else row.reserve)
                self.check_member(changed)
                self.members[row.id] = changed
        if any(row.mentor in gone for row in self.members.values()):
            raise Refused(ReferenceViolation)

    def put(self, row: Member) -> None:
        self.check_member(row)
        self.members[row.id] = row

    def insert(self, row: Member) -> Member:
        if row.id in self.members:
            raise Refused(RowExists)
        self.put(row)
        return row

    def keep(self, row: Member) -> Member:
        return self.members[row.id] if row.id in self.members else self.insert(row)

    def update(self, pk: int, changes: dict[str, Any]) -> Member:
        if pk not in self.members:
            raise Refused(NoSuchRow)
        row = replace(self.members[pk], **changes)
        self.put(row)
        return row

    def delete(self, pk: int) -> bool:
        if pk not in self.members:
            return False
        self.remove([pk], [])
        return True

    def where(self, row: Member, points: int) -> int:
        gone = [each.id for each in self.members.values() if each.group == row.group and each.points >= points]
        self.remove(gone, [])
        return len(gone)

    def put_group(self, row: Group) -> None:
        self.check_group(row)
        self.groups[row.number] = row

    def delete_group(self, pk: int) -> bool:
        if pk not in self.groups:
            return False
        self.remove([], [pk])
        return True


def some_member(random: Random) -> Member:
    return Member(
        random.randrange(MEMBERS_MAX),
        random.choice(["a", "aa", "ab", "b", "ba", "\U0010ffff"]),
        random.choice([None, 0, 1, 2, 3]),
        random.choice([*[None] * 10, *range(MEMBERS_MAX)]),
        random.randrange(-1, 11) or 3,
        START + timedelta(days=random.randrange(3)),
        random.choice([0, 0, 0, 1, 2]),
        random.choice([*[None] * 40, *range(MEMBERS_MAX)]),
    )


def in_order(rows: list[Member], *columns: str) -> list[Member]:
    def place(row: Member) -> list[tuple[Any, ...]]:
        values = [getattr(row, column) for column in columns]
        return [() if value is None else (value,) for value in values]

    return sorted(rows, key=lambda row: (place(row), row.id))


def queries(random: Random, model: Model, rows: Any) -> None:
    """One random query of each kind."""
    members = list(model.members.values())
    low, high = random.randrange(-1, 10), random.randrange(-1, 10)
    group = random.choice([None, 0, 1, 2, 3])
    text = random.choice(["", "a", "aa", "b", "c", "\U0010ffff"])
    in_group = in_order([row for row in members if row.group == group], "points", "joined")
    kept: list[tuple[Any, Callable[[int], bool]]] = [
        (between(low, high), lambda points: low <= points <= high),
        (at_least(low), lambda points: points >= low),
        (above(low), lambda points: points > low),
        (at_most(high), lambda points: points <= high),
        (below(high), lambda points: points < high),
        (low, lambda points: points == low),
    ]
    condition, meets = random.choice(kept)
    wanted = [row for row in in_group if meets(row.points)]
    assert done(rows.select(group=group, points=condition)) == wanted
    assert done(rows.count(group=group, points=condition)) == len(wanted)
    assert done(rows.exists(group=group, points=condition)) == bool(wanted)
    assert done(rows.keys(group=group, points=condition)) == [row.id for row in wanted]
    number = random.randrange(1, 4)
    assert done(rows.select(group=group, points=condition, first=number)) == wanted[:number]
    assert done(rows.select(group=group, points=condition, last=number)) == wanted[-number:]
    named = in_order([row for row in members if row.name.startswith(text)], "name")
    assert done(rows.select(name=prefix(text))) == named
    filtered = [row for row in named if meets(row.points)]
    assert done(rows.select(name=prefix(text), points=condition)) == filtered
    assert done(rows.count(name=prefix(text), points=condition)) == len(filtered)
    assert done(rows.select(name=prefix(text), points=condition, last=number)) == filtered[-number:]
    grouped = in_order([row for row in members if row.group is not None and row.group <= high], "group", "name")
    assert done(rows.select(group=at_most(high), by="by_group_order")) == grouped
    assert done(rows.select(boss=group, scan=True)) == [r for r in in_order(members) if r.boss == group]
    found, after = [], None
    while True:
        page = done(rows.pages(size=number, after=after, by="by_group_order"))
        found += page.rows
        after = page.next
        if after is None:
            break
        assert len(page.rows) == number
    assert found == in_order(members, "group", "name")


Statement = tuple[Callable[[], Any], Callable[[], Any]]


def statements(random: Random, model: Model, groups: Any, rows: Any) -> Statement:
    """A random statement, and the same one on the model."""
    row, pk, points = some_member(random), random.randrange(MEMBERS_MAX), random.randrange(-1, 11)
    group = Group(random.randrange(4), random.choice("abcdef"))
    changes = {"points": points, "group": row.group, "name": row.name}
    kinds: list[tuple[int, Statement]] = [
        (10, (lambda: rows.put(row), lambda: model.put(row))),
        (10, (lambda: rows.insert(row), lambda: model.insert(row))),
        (5, (lambda: rows.insert(row, on_conflict="keep"), lambda: model.keep(row))),
        (10, (lambda: rows.update(pk, **changes), lambda: model.update(pk, changes))),
        (3, (lambda: rows.delete(pk), lambda: model.delete(pk))),
        (1, (lambda: rows.delete_where(group=row.group, points=at_least(points)), lambda: model.where(row, points))),
        (4, (lambda: groups.put(group), lambda: model.put_group(group))),
        (1, (lambda: groups.delete(group.number), lambda: model.delete_group(group.number))),
    ]
    return random.choices([each for _, each in kinds], [weight for weight, _ in kinds])[0]


def outcome_of(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Refused as refused:
        return refused.args[0]
    except InTransactionError as error:
        return type(error)


def same_error(found: Any, wanted: Any) -> bool:
    """Which of several constraints is named first is the engine's choice."""
    violations = (CheckViolation, UniqueViolation, ReferenceViolation)
    return found == wanted or (found in violations and wanted in violations)


def hold_against_the_model(seed: int) -> tuple[int, set[type]]:
    """Raises `AssertionError` at the first statement or query that gives anything else. Gives how many members there
    were at most, and what was refused.
    """
    random = Random(seed)
    memory = Memory(OPERATOR)
    key = ("x", 1)
    model = Model()
    groups, rows = (memory.context(OPERATOR, key).rows(table) for table in (GROUPS, MEMBERS))
    group_zero = Group(0, "zero")
    done(groups.insert(group_zero))
    model.groups[0] = group_zero
    beside = memory.context(OPERATOR, ("x", 2))
    done(beside.rows(GROUPS).insert(Group(1, "zero")))
    refusals: set[type] = set()
    most = 0
    for number in range(600):
        if number % 100 == 0:
            groups, rows = (memory.context(OPERATOR, key).rows(table) for table in (GROUPS, MEMBERS))
        statement, on_model = statements(random, model, groups, rows)
        before_groups, before_members = dict(model.groups), dict(model.members)
        entries = dict(memory.entries)
        wanted = outcome_of(on_model)
        found = outcome_of(lambda: done(statement()))  # noqa: B023 - called at once
        assert same_error(found, wanted), (number, found, wanted)
        if isinstance(wanted, type):  # the transaction ends, and leaves nothing
            refusals.add(wanted)
            model.groups, model.members = before_groups, before_members
            memory.entries.clear()
            memory.entries.update(entries)
        assert done(rows.select()) == in_order(list(model.members.values()))
        assert done(groups.select()) == sorted(model.groups.values(), key=lambda row: row.number)
        queries(random, model, rows)
        most = max(most, len(model.members))
    assert done(beside.rows(GROUPS).select()) == [Group(1, "zero")]
    return most, refusals


@pytest.mark.parametrize("seed", range(4))
def test_rows_do_what_a_plain_model_does(seed: int) -> None:
    most, refusals = hold_against_the_model(seed)
    assert most >= 8
    assert refusals == {CheckViolation, UniqueViolation, ReferenceViolation, RowExists, NoSuchRow}
