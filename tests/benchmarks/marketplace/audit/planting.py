"""Changes what was read of a run, to plant faults in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.history import History, Told
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.record import Asked, Kind, Record
from styx import Event
from styx.relational.table import Table

Plant = Callable[[Run], Run]


def told(event: Event[Any], change: Callable[[list[Told[Any]]], list[Told[Any]]]) -> Plant:
    """The events of one kind, changed."""

    def plant(run: Run) -> Run:
        made = History()
        for each in events.EVENTS:
            those = list(run.history.of(each))
            for one in sorted(change(those), key=lambda told: (told.place, told.id)) if each is event else those:
                made.add(each, one)
        return replace(run, history=made)

    return plant


def without_last(those: list[Told[Any]]) -> list[Told[Any]]:
    """One event is lost."""
    assert those
    return those[:-1]


def twice(those: list[Told[Any]]) -> list[Told[Any]]:
    """The last event is told twice, each time as another one."""
    return [*those, those[-1]._replace(id=those[-1].id + "f")]


def last(**changes: Any) -> Callable[[list[Told[Any]]], list[Told[Any]]]:
    """The last event has other values; each change is of the value before."""

    def change(those: list[Told[Any]]) -> list[Told[Any]]:
        value = those[-1].value
        made = {name: function(getattr(value, name)) for name, function in changes.items()}
        return [*those[:-1], those[-1]._replace(value=msgspec.structs.replace(value, **made))]

    return change


def rows(table: Table, change: Callable[[list[Any]], Any], *, where: Callable[[Any], bool] = lambda row: True) -> Plant:
    """The rows of the first entity that has one of which `where` holds. `change` is given those, and may alter them or
    give others.
    """

    def plant(run: Run) -> Run:
        after = run.after.copy()
        for key in after.keys(table):
            found = after.rows(table, key)
            those = [row for row in found if where(row)]
            if those:
                changed = change(those)
                rest = [row for row in found if not where(row)]
                after.put_rows(table, key, found if changed is None else [*rest, *changed])
                return replace(run, after=after)
        raise AssertionError(f"no such row in {table.full_name}")

    return plant


def value(operator: Any, key: Any, **changes: Any) -> Plant:
    """An entity's state."""

    def plant(run: Run) -> Run:
        after = run.after.copy()
        after.put_value(operator, key, msgspec.structs.replace(after.value(operator, key), **changes))
        return replace(run, after=after)

    return plant


def asked(change: Callable[[Asked], Asked | None], *, where: Callable[[Asked], bool] = lambda each: True) -> Plant:
    """The last request of which `where` holds, changed, or gone."""

    def plant(run: Run) -> Run:
        those = list(run.record)
        at = max(number for number, each in enumerate(those) if where(each))
        changed = change(those[at])
        return replace(run, record=Record.of([*those[:at], *([changed] if changed else []), *those[at + 1 :]]))

    return plant


def of_kind(kind: Kind) -> Callable[[Asked], bool]:
    """Requests of this kind that committed."""
    return lambda each: each.kind is kind and each.ended == "committed"


def other(each: Asked, **changes: Any) -> Asked:
    """The request with other fields."""
    return msgspec.structs.replace(each, **changes)


def both(*plants: Plant) -> Plant:
    """One after the other."""

    def plant(run: Run) -> Run:
        for each in plants:
            run = each(run)
        return run

    return plant
