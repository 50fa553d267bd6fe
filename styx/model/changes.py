"""The changes of an epoch: what its transactions have made of the states of entities and of rows, as encoded bytes.

A change is a key's state at the end of the epoch, None if it has none there any more. How often the epoch has written
it does not show, and a key that is at the end what it was before is left out. Keys of rows are those of a slot: the
entity's key and the primary key, flat.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from styx.errors import BadArguments, NotSent, RequestRejected, SnapshotTooOld
from styx.model.app import App
from styx.model.freshness import EPOCH_MAX
from styx.model.table_names import holds_values, owner_of, row_key
from styx.relational.table import Table
from styx.values.codec import shown

FROM_NOW: Final = -2
"""In place of the epoch behind which changes are wanted: only those of epochs that have not closed."""


class TableChanges(msgspec.Struct, array_like=True, frozen=True):
    """Those of the table `name` on `slot`, as two lists: it takes half the time of one with pairs."""

    slot: int
    name: str
    keys: list[Any]
    values: list[bytes | None]


class EpochChanges(msgspec.Struct, array_like=True, frozen=True):
    """Those of one epoch, or of a worker's part of it. `n_bytes` is what they count."""

    epoch: int
    n_bytes: int
    tables: list[TableChanges]


class Given(NamedTuple):
    """All changes up to the end of the epoch `through`, behind those that were given before; `epochs` has those with
    changes. `closed_us`: when that epoch closed, in microseconds since 1970, by the clock of who closed it last; 0 if
    that is not known.
    """

    through: int
    epochs: list[EpochChanges]
    closed_us: int = 0


class Entry(NamedTuple):
    """One change: of an entity's state, if `table` is None; else of a row in that table, with the primary key `row_key`
    as its value if that has one column. `value` is None for what is not there any more.
    """

    table: Table | None
    key: Any
    row_key: Any
    value: bytes | None


class ChangeSource(Protocol):
    """Where a client or a gateway follows the changes of an engine."""

    def follow(self, operator: str, table: str | None, after: int) -> AsyncIterator[Given]:
        """The changes of an operator's entities and their rows, or of one table by its full name, of all epochs behind
        `after`, in order, each whole and once. The first one has no changes, and says where it begins: at the end of
        epoch `through`. It goes on for as long as the engine does.

        Raises `SnapshotTooOld` if changes behind `after` are not kept any more, at the beginning or for a follower that
        is too slow; `RequestRejected` (`not_reached`, `overloaded`); `NotSent` when the engine ends.
        """
        ...


def follow_error(code: str, message: str) -> RequestRejected:
    """What a follower raises that was refused or dropped with this code."""
    if code == "snapshot_too_old":
        return SnapshotTooOld(message)
    return NotSent(message) if code == "unavailable" else RequestRejected(code, message)


def followed(app: App, operator: str, table: str | None, name: str) -> bool:
    """Whether the table `name` of a slot is among those that a follower of `operator`, or of its `table`, gets: the
    values of entities, rows of declared tables and of views, and no table of the engine's own. No operator, "": all
    that a slot keeps.
    """
    if not operator:
        return True
    if table is not None:
        return name == table
    return name == operator if holds_values(name) else owner_of(name) == operator and name in app.tables


def entries(app: App, changes: TableChanges) -> Iterator[Entry]:
    """The changes of a table one by one; raises `LookupError` if the app does not know the table, because another
    version of it runs.
    """
    name, pairs = changes.name, zip(changes.keys, changes.values, strict=True)
    if holds_values(name):
        for key, value in pairs:
            yield Entry(None, key, None, value)
        return
    table, operator = app.tables[name], app.operators[owner_of(name)]
    for key, value in pairs:
        yield Entry(table, row_key(operator, key)[0], table.primary_key(key), value)


def table_name(table: Table) -> str:
    """The name of a table as `followed_table` takes it: without the operator's."""
    return table.keeps_event or table.name


def followed_table(app: App, operator: str, table: Any) -> str | None:
    """The full name of a table of the operator's that can be followed, given by itself, its name or its full name.

    Raises `BadArguments` listing what there is.
    """
    if table is None:
        return None
    if not isinstance(table, Table | str):
        raise BadArguments(f"table= is a Table or its name, got {shown(table)}")
    name = table if isinstance(table, Table) or "/" in table else f"{operator}/{table}"
    found = app.declared_table(name)
    if found.operator != operator:
        raise BadArguments(f"table {found.full_name!r} is not one of operator {operator!r}")
    return found.full_name


def checked_after(from_epoch: Any, parameter: str = "from_epoch=") -> int:
    """The epoch behind which changes are wanted; raises `BadArguments`, which names the `parameter`."""
    if from_epoch is None:
        return FROM_NOW
    if type(from_epoch) is int and 0 <= from_epoch <= EPOCH_MAX:
        return from_epoch - 1
    raise BadArguments(
        f"{parameter} takes the first epoch whose changes are wanted, or nothing for those from now on: "
        f"got {shown(from_epoch)}"
    )
