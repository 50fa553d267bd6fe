"""What would be lost of a data directory if an app replaced the one that stored it: as a text, or None.

An entity is lost if the app lacks its operator, or if its key would be looked for in another slot; rows are lost if the
app lacks their table and does not drop them, or looks for them by another primary key. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from styx.embedded_engine.app_record import AppRecord, is_code_of, placements
from styx.model.app import App
from styx.model.internal_operator import is_internal
from styx.model.placement import Misplaced, first_misplaced, misplaced
from styx.model.table_names import entities_of, holds_agenda, holds_dead, holds_rows, holds_values, owner_of
from styx.schema.description import AppDescription, OperatorDescription, describe, refusal_of_tables
from styx.values.codec import shown

Table = Mapping[Any, bytes]
Tables = Mapping[int, Mapping[str, Table]]
"""State by slot and operator."""
NOTHING_CHANGED = "Nothing was changed."
_ENTITIES: Final = ("entity", "entities")
_PARTS: Final = ("sequence or row", "sequences and rows")
_CALLS: Final = ("call for later", "calls for later")
_DEAD: Final = ("dead call", "dead calls")
_UNSTABLE = (
    "partition_key gives another value for the same key than in the process that stored the data. It must be the same "
    "in every process: hash() of a str, id() and the order of a set are not; zlib.crc32(key.encode()) is"
)


class _Stored(NamedTuple):
    """How many entities an operator has, or else how much else of them: `kind` is what, one of it and many of it; the
    key of one, and its slot.
    """

    entries: int
    key: Any
    slot: int
    kind: tuple[str, str]

    def __str__(self) -> str:
        one, many = self.kind
        return f"{self.entries} {one if self.entries == 1 else many}, {shown(self.key)} for example"


def losses(old: AppRecord, app: App, tables: Tables, n_slots: int) -> str | None:
    """Why `app` may not go on with what the app of `old` has stored; None if it may."""
    new, now = describe(app), placements(app)
    for name, before in sorted(old.description.operators.items()):
        stored = _stored(tables, name)
        if stored is None:
            continue
        after = new.operators.get(name)
        if after is None:
            return _gone(name, stored, old.description, new)
        reason = _moved(name, before, after, n_slots)
        if reason is None and old.placements.get(name) != now[name]:
            reason = _UNSTABLE if is_code_of(old, app) else "its partition_key has changed"
        if reason is not None:
            example = _example(app, name, tables, n_slots) or f"it has {stored}"
            return (
                f"operator {name!r} has entities, and {reason}: they would not be found again ({example}). Keep it as "
                f"it was, or use an operator of another name, or another data directory. {NOTHING_CHANGED}"
            )
    reason = refusal_of_tables(old.description, new, {name for _, name, _ in _all(tables) if holds_rows(name)})
    return misplaced_anywhere(app, tables, n_slots) if reason is None else f"{reason}. {NOTHING_CHANGED}"


def not_converted_back(old: AppRecord, app: App, tables: Tables) -> str | None:
    """Why `app`, which may be code from before a `migrate=`, may not read what that has converted; None if it may. What
    has a `state_type` is looked at value by value.
    """
    for name in old.converted:
        operator, stored = app.operators.get(name), _stored(tables, name)
        if operator is not None and operator.state_type is None and stored is not None:
            return (
                f"operator {name!r} has {stored}, which a migrate= has converted, and this code has no state_type to "
                "say what it reads: is it code from before? Start the code that ran last, or declare a state_type that "
                f"fits what is stored now, with a migrate= that converts it back if need be. {NOTHING_CHANGED}"
            )
    return None


def misplaced_anywhere(app: App, tables: Tables, n_slots: int) -> str | None:
    """Why `app` would not find some of its entities, which are looked at one by one; None if it finds them all."""
    found = first_misplaced(app.operators, tables, n_slots)
    return None if found is None else not_found(found)


def misplaced_here(app: App, tables: Tables, n_slots: int) -> str | None:
    """As `misplaced_anywhere` for an app that is the one which stored them: what it declares alone is not looked at,
    but for a key of each operator and slot; what its `partition_key` says is, key by key.
    """
    for slot, by_operator in sorted(tables.items()):
        for name, table in sorted(by_operator.items()):
            operator = app.operators.get(owner_of(name))
            if operator is None or not table:
                continue
            keys = table if operator.key_space.partition_key is not None else [next(iter(table))]
            found = misplaced(operator, slot, entities_of(operator, name, keys), n_slots)
            if found is not None:
                return not_found(found)
    return None


def not_found(found: Misplaced) -> str:
    """The words for an entity that would not be found."""
    return (
        f"{found}. partition_key or n_partitions has changed, or partition_key is not the same in every process "
        f"(hash() of a str is not). Declare the operator as it was. {NOTHING_CHANGED}"
    )


def unstable_partition_key(operator: str) -> str:
    """The words for a `partition_key` that is the same code and gives other values."""
    return f"operator {operator!r}: {_UNSTABLE}. {NOTHING_CHANGED}"


def unknown_operators(app: App, tables: Tables) -> dict[str, int]:
    """How many entities there are of each operator that `app` does not have."""
    counts: dict[str, int] = {}
    for _, name, table in _all(tables):
        if owner_of(name) not in app.operators and not is_internal(owner_of(name)):
            counts[name] = counts.get(name, 0) + len(table)
    return counts


def _gone(name: str, stored: _Stored, old: AppDescription, new: AppDescription) -> str:
    fresh = sorted(new.operators.keys() - old.operators.keys())
    renamed = f" If it has been renamed to {fresh[0]!r}, name it {name!r} again." if len(fresh) == 1 else ""
    return (
        f"the data has {stored}, of operator {name!r}, which app {new.name!r} does not have any more."
        f"{renamed} Keep the operator (it needs no functions), or delete its entities with the code from before, or "
        f"use another data directory. {NOTHING_CHANGED}"
    )


def _moved(name: str, before: OperatorDescription, after: OperatorDescription, n_slots: int) -> str | None:
    if after.key_type != before.key_type:
        return f"its key_type has changed from {before.key_type} to {after.key_type}"
    old, new = before.n_partitions or n_slots, after.n_partitions or n_slots
    if old != new:
        return f"its n_partitions has changed from {old} to {new}"
    if after.partition_key != before.partition_key:
        return "it has a partition_key now" if after.partition_key else "it has no partition_key any more"
    return None


def _example(app: App, name: str, tables: Tables, n_slots: int) -> str | None:
    own = {slot: {name: by_operator[name]} for slot, by_operator in tables.items() if name in by_operator}
    found = first_misplaced(app.operators, own, n_slots)
    return None if found is None else str(found).removeprefix(f"operator {name!r}: ")


def _stored(tables: Tables, operator: str) -> _Stored | None:
    own = [(slot, name, table) for slot, name, table in _all(tables) if owner_of(name) == operator]
    kinds: tuple[tuple[Callable[[str], bool], tuple[str, str]], ...] = (
        (holds_values, _ENTITIES),
        (lambda name: not holds_agenda(name) and not holds_dead(name), _PARTS),
        (holds_agenda, _CALLS),
        (holds_dead, _DEAD),
    )
    for is_one, kind in kinds:  # an entity can have sequences, rows or calls for later alone
        found = [(slot, table) for slot, name, table in own if is_one(name)]
        if found:
            slot, first = found[0]
            return _Stored(sum(len(table) for _, table in found), next(iter(first)), slot, kind)
    return None


def _all(tables: Tables) -> Iterator[tuple[int, str, Table]]:
    for slot, by_operator in sorted(tables.items()):
        for name, table in sorted(by_operator.items()):
            if table:
                yield slot, name, table
