"""The committed state of one slot: the tables of its operators, and the changes that a snapshot takes of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from styx.model.cron import is_cron_key
from styx.model.table_names import holds_agenda, holds_dead, holds_events, holds_rows, holds_values, owner_of
from styx.relational.index_range import TableIndex
from styx.state.due_calls import DueCalls
from styx.state.emissions import Emission, EmissionTable
from styx.state.table import NEWEST, Changes, Table, without_deleted
from styx.state.versions import TableVersions, Versions

IDEMPOTENCY_TABLE: Final = "\0idempotency"
"""Pseudo-operator whose entries are remembered replies; a real operator's name cannot start with NUL."""

Delta = dict[str, Changes]
"""Changes by operator."""
Declared = Mapping[str, tuple[TableIndex, ...]]
"""The indexes of each table of rows, by its full name; the primary key first."""


class SlotState:
    """`tables` are by operator; `table` makes one at its first use.

    `due_calls` is the order of what the agendas hold, None without one; `agenda_begins` is called
    when there is one. `uploading` are the changes that a snapshot
    under way has taken. `emitted` is what commits have written to the tables of events, in any order: whoever hands it
    on empties the list. `converted`: what was loaded is not what the snapshot has, so the next one must have all of it.
    `versions` keep what commits overwrite, None as long as nobody reads earlier epochs.
    """

    __slots__ = (
        "_declared",
        "_emissions",
        "_n_slots",
        "_slot",
        "agenda_begins",
        "converted",
        "due_calls",
        "emitted",
        "tables",
        "uploading",
        "versions",
    )

    def __init__(self, tables: dict[str, Table] | None = None) -> None:
        self._declared: Declared = {}
        self._n_slots = 0
        self._slot = 0
        self.tables: dict[str, Table] = {} if tables is None else tables
        self.uploading: Delta | None = None
        self.converted = False
        self.due_calls: DueCalls | None = None
        self.agenda_begins: Callable[[], None] | None = None
        self.emitted: list[Emission] = []
        self.versions: Versions | None = None
        self._emissions: dict[str, EmissionTable] = {}

    def table(self, operator: str) -> Table:
        """The operator's entities here."""
        table = self.tables.get(operator)
        if table is None and holds_events(operator):
            return self._table_of_events(operator)
        if table is None:
            table = self.tables[operator] = Table({}, -1)
            if self.versions is not None and operator != IDEMPOTENCY_TABLE:
                table.versions = TableVersions(self.versions, self._slot, operator)
            if holds_agenda(operator):
                self._order_calls()
            if self._declared:
                table.declare(self._declared.get(operator, ()), self._n_slots)
        return table

    def _table_of_events(self, name: str) -> Table:
        """It is not among `tables`, which are what a slot keeps."""
        table = self._emissions.get(name)
        if table is None:
            table = self._emissions[name] = EmissionTable(owner_of(name), self.emitted)
        return table

    def keep_versions(self, versions: Versions | None, slot: int = 0) -> None:
        """From here on, what commits overwrite is kept in `versions`, as what belongs to `slot`. None: nothing is kept,
        and what was is void.
        """
        self.versions = versions
        self._slot = slot
        for name, table in self.tables.items():
            table.versions = None
            if versions is not None and name != IDEMPOTENCY_TABLE:  # no function reads that one
                table.versions = TableVersions(versions, slot, name)

    def declare(self, declared: Declared, n_slots: int) -> None:
        """The indexes that queries may ask for; those of other versions of the app are dropped."""
        self._declared, self._n_slots = declared, n_slots
        for name, table in self.tables.items():
            table.declare(declared.get(name, ()), n_slots)

    def fill_indexes(self) -> Iterator[None]:
        """As `Table.fill`, of each table."""
        for table in self.tables.values():
            yield from table.fill()

    def at(self, epoch: int) -> dict[str, Mapping[Any, bytes]]:
        """The tables of the app's operators, as `Table.at`."""
        return {operator: table.at(epoch) for operator, table in self.tables.items() if operator != IDEMPOTENCY_TABLE}

    def entities(self, epoch: int) -> dict[tuple[str, Any], bytes]:
        """A copy of the state of the app's entities at the end of `epoch`, by (operator, key)."""
        return {(operator, key): value for operator, table in self.at(epoch).items() for key, value in table.items()}

    # Snapshots ---------------------------------------------------------------------------------------------

    def take_delta(self) -> Delta:
        """Starts an upload: the changes since the last one; later ones belong to the next."""
        assert self.uploading is None, "a slot's delta is taken while its last one is still being stored"
        taken = {operator: table.take_changes() for operator, table in self.tables.items()}
        self.uploading = {operator: changes for operator, changes in taken.items() if changes}
        return self.uploading

    def copied(self) -> Delta:
        """Everything, as a delta on nothing: a copy of the tables, which share their keys and values."""
        return {operator: table.copied() for operator, table in self.tables.items()}

    def delta_stored(self) -> None:
        """The upload is part of a complete snapshot: forget it."""
        self.uploading = None
        self.converted = False

    def delta_failed(self) -> None:
        """The upload is not part of any snapshot: its changes belong to the next one, under the newer ones."""
        for operator, changes in (self.uploading or {}).items():
            self.tables[operator].give_back(changes)
        self.uploading = None

    def as_stored(self) -> None:
        """A generation begins with it: nothing has changed since the snapshot."""
        self.uploading = None
        self.keep_versions(None)
        for table in self.tables.values():
            table.take_changes()
        self.emitted.clear()
        self.due_calls = None
        self._order_calls()

    # Agendas -----------------------------------------------------------------------------------------------

    def _order_calls(self) -> None:
        """Makes the order of what the agendas hold anew; a slot without agendas has none."""
        agendas = {name: table for name, table in self.tables.items() if holds_agenda(name)}
        if not agendas:
            return
        taken = None if self.due_calls is None else self.due_calls.taken
        self.due_calls = DueCalls(
            lambda name, key: agendas[name].read(NEWEST, key),
            lambda: [(name, key, data) for name, table in agendas.items() for key, data in table.at(NEWEST).items()],
            taken,
        )
        for name, table in agendas.items():
            table.told = partial(self._was_given, name)
        if self.agenda_begins is not None:
            self.agenda_begins()

    def forget_order(self) -> None:
        """Drops the order of what the agendas hold; `as_stored` makes it anew."""
        self.due_calls = None
        for table in self.tables.values():
            table.told = None

    def _was_given(self, name: str, key: Any, data: bytes | None) -> None:
        due_calls = self.due_calls
        assert due_calls is not None, "an agenda without an order"
        if data is not None:
            due_calls.put(name, key, data)
        due_calls.tidy()

    def agenda_length(self) -> int:
        """How many calls were given here for later and not made."""
        return sum([len(table) for name, table in self.tables.items() if holds_agenda(name)])

    def replaced(
        self, writes: Mapping[str, Changes], renamed: Mapping[str, str] = {}, dropped: Collection[str] = ()
    ) -> SlotState:
        """This state without the `dropped` tables, others `renamed`, with these values instead of those that they have;
        it stays as it is, and shares the tables that are not named.
        """
        tables = {name: table for name, table in self.tables.items() if name not in dropped and name not in renamed}
        tables |= {new: self.tables[old] for old, new in renamed.items()}
        changed = {name: tables.get(name, Table({}, -1)).replaced(writes[name]) for name in writes}
        new = SlotState({**tables, **changed})
        new.converted = True
        return new


def from_changes(changes: Delta, epoch: int) -> SlotState:
    """The state that all changes since the beginning, merged, describe; it takes their dictionaries."""
    return SlotState({operator: Table(without_deleted(entries), epoch) for operator, entries in changes.items()})


def merge_into(older: Delta, newer: Delta) -> None:
    """Applies a delta to the one before it."""
    for operator, entries in newer.items():
        older.setdefault(operator, {}).update(entries)


def holdings(states: Iterable[SlotState]) -> tuple[int, list[str]]:
    """(entities that have a value here, names of the operators whose entities have a value, a sequence or rows, and of
    the tables that have rows). A cron's entry in an agenda is no state: it goes with its declaration.
    """
    entities = 0
    owners: set[str] = set()
    for state in states:
        for name, table in state.at(NEWEST).items():
            if table and not (holds_agenda(name) and all(map(is_cron_key, table))):
                owners.add(owner_of(name))
                if holds_rows(name):
                    owners.add(name)
                entities += len(table) if holds_values(name) else 0
    return entities, sorted(owners)


def rows_held(states: Iterable[SlotState]) -> dict[str, tuple[int, int]]:
    """(rows in these slots, indexes made of them) by table, of those that have rows."""
    held: dict[str, tuple[int, int]] = {}
    for state in states:
        for name, table in state.tables.items():
            if len(table) and holds_rows(name):
                rows, indexes = held.get(name, (0, 0))
                held[name] = (rows + len(table), indexes + table.indexes_made)
    return held


def dead_held(states: Iterable[SlotState]) -> dict[str, int]:
    """The calls that were given up and are kept in these slots, by the operator that gave them."""
    held: dict[str, int] = {}
    for state in states:
        for name, table in state.tables.items():
            if len(table) and holds_dead(name):
                held[owner_of(name)] = held.get(owner_of(name), 0) + len(table)
    return held
