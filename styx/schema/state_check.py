"""Checks stored entities and rows against an app's code, some at a time, so that others can run in between.

Every entity must be found where the code looks for it, under a key of its operator's type, and its `state_type` must
read it or `migrate=`, run in trial, must convert it. The same goes for rows, which must also keep to what their table
declares. Pure; the state is not changed. After a change to checked entities or rows the caller must name them again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from math import inf
from typing import Any, Final, Protocol, TypeVar

from msgspec.structs import replace

from styx.errors import FunctionTooLong, describe
from styx.model.agenda import called_key, decode_entry
from styx.model.app import App
from styx.model.cron import is_cron_key
from styx.model.internal_operator import is_internal
from styx.model.lifetime import life_of
from styx.model.limits import Limits
from styx.model.operator import Operator
from styx.model.table_names import (
    entities_of,
    entry_name,
    holds_agenda,
    holds_dead,
    holds_rows,
    holds_sequences,
    holds_view,
    owner_of,
)
from styx.schema.conversion import renames
from styx.schema.description import table_gone
from styx.schema.parents import Needed, There, needed_by, those_there
from styx.schema.pending_calls import why_not_made
from styx.schema.row_rules import RowRules
from styx.schema.state_findings import OFFENDERS_SHOWN, StateFindings, together
from styx.schema.state_reading import Misfit, Reading, StateReader
from styx.schema.unique_values import Values, values_of

T = TypeVar("T")
Table = Mapping[Any, bytes]

SLICE_ENTITIES: Final = 256
"""Entities checked in one turn, about half a millisecond; others are served between the turns."""


class Guard(Protocol):
    """Ends code of the app's that does not end by itself."""

    def run(self, operator: Operator, what: str, key: Any, call: Callable[[Any], T], argument: Any) -> T:
        """`call(argument)`, in which `what` of the operator runs on `key`; `FunctionTooLong` if it had to be ended."""
        ...


class StateCheck:
    """A check of the tables that are added, by `app`'s declarations. Without a `guard` its code is never ended.
    `referring` are the full names of the tables whose references to other entities are to be held against the parents.

    Code that had to be ended once is not tried again: what is left of its table is not looked at.
    """

    def __init__(
        self,
        app: App,
        n_slots: int,
        limits: Limits,
        guard: Guard | None = None,
        referring: Collection[str] = (),
    ) -> None:
        self.app = app
        self._referring = sorted(referring)
        self._n_slots = n_slots
        self._guard = guard
        self._ended: set[str] = set()
        bytes_max = limits.value_bytes_max
        self._readers = {name: StateReader(one, bytes_max) for name, one in app.operators.items()}
        self._rules: dict[str, RowRules] = {}
        self._children: dict[str, list[str]] = {}
        for name, declared in app.tables.items():
            if declared.view_rule is not None:
                continue
            rules = self._rules[name] = RowRules(declared, bytes_max, name in referring)
            for parent in rules.parents:
                self._children.setdefault(parent, []).append(name)
        self._renamed = renames(app)
        self._present: dict[int, dict[str, Table]] = {}
        self._parents_gone: dict[tuple[int, str], set[Any]] = {}
        self._todo: deque[tuple[int, str, Table, list[Any] | None]] = deque()
        self._keys: list[Any] = []
        self._position = 0
        self._forget()

    def add(self, slot: int, operator: str, table: Table, keys: Iterable[Any] | None = None) -> None:
        """To check: all entries that a table of a slot has when it is its turn, or those of `keys`; not what rows imply
        elsewhere, which is made anew of them when the version begins.
        """
        if is_internal(owner_of(operator)):
            return
        self._present.setdefault(slot, {})[operator] = table
        self._todo.append((slot, operator, table, None if keys is None else list(keys)))

    @property
    def done(self) -> bool:
        """Nothing is left."""
        return not self._todo and not self._parents_gone

    def run(self, entities: int) -> bool:
        """Checks so many entries more; whether nothing is left."""
        while entities > 0 and not self.done:
            if not self._todo:
                self._add_children()
                continue
            slot, operator, table, wanted = self._todo[0]
            if not self._position:
                self._keys = list(table) if wanted is None else wanted
            keys = self._keys
            now = keys[self._position : self._position + entities]
            self._position += len(now)
            if self._position == len(keys):
                self._position, self._keys = 0, []
                self._todo.popleft()
            entities -= len(now)
            present = [key for key in now if key in table]
            self._checked += len(present)
            if len(present) < len(now):
                self._note_gone(slot, operator, [key for key in now if key not in table])
            if present and operator not in self._ended:
                self._look_at(slot, operator, table, present)
        return self.done

    def take(self) -> StateFindings:
        """The findings since the last call of this."""
        findings = StateFindings(
            self._checked,
            self._offenders,
            self._first,
            self._migrated,
            self._dropping,
            self._dropped,
            self._rows,
            self._discarded,
        )
        self._forget()
        return findings

    def unique_values(self, tables: Iterable[str]) -> Values:
        """The values of these tables' unique app-wide indexes, of all rows checked; raises `TooManyValues`."""
        values: Values = {}
        for name in tables:
            values.update(values_of(self._rules[name].unique_values(), name))
        return values

    def parents(self, most: float = inf) -> tuple[Needed, There]:
        """The parents that rows of the referring tables need, and those that are in these slots; raises
        `TooManyParents` if a reference has more than `most`.
        """
        needed: Needed = {}
        there: There = {}
        for name in self._referring:
            for reference in self.app.tables[name].foreign:
                table = reference.parent_table
                parents = reference.parent.name if table is None else table.full_name
                keys = [key for slot in self._present for key in self._rows_of(slot, parents)]
                needed[reference.name] = needed_by(reference, self._rules[name].parents_of(reference), most)
                there[reference.name] = those_there(keys, most)
        return needed, there

    def _forget(self) -> None:
        self._checked = self._offenders = self._rows = 0
        self._first: list[str] = []
        self._migrated: dict[str, int] = {}
        self._dropping: dict[str, int] = {}
        self._dropped: dict[str, str] = {}
        self._discarded: dict[str, int] = {}

    def _look_at(self, slot: int, name: str, table: Table, keys: list[Any]) -> None:
        operator = self.app.operators.get(owner_of(name))
        if holds_agenda(name):
            keys = [key for key in keys if not is_cron_key(key)]  # those are the version's own, and go with it
        if name in self.app.drops:
            self._discarded[name] = self._discarded.get(name, 0) + len(keys)
        elif operator is None:
            for key in keys:
                self._offends(name, key, f": the new version has no operator {owner_of(name)!r}")
        elif holds_view(name):
            pass  # made anew when the version begins
        elif holds_rows(name):
            self._rows += len(keys)
            self._look_at_rows(slot, operator, name, table, self._found(slot, operator, name, keys))
        elif holds_sequences(name):
            self._found(slot, operator, name, keys)  # their numbers are read by no code of the app
        elif holds_agenda(name):
            self._look_at_calls(name, table, self._found(slot, operator, name, keys))
        elif holds_dead(name):
            self._found(slot, operator, name, keys)  # whoever tries them again is told what is wrong then
        else:
            self._look_at_values(operator, name, table, self._found(slot, operator, name, keys))

    def _look_at_calls(self, name: str, table: Table, keys: list[Any]) -> None:
        guard, look = self._guard, partial(why_not_made, self.app)
        for key in keys:
            entry = decode_entry(table[key])
            if life_of(entry) is not None:
                continue
            called = self.app.operators.get(entry.operator)
            try:
                if guard is None or called is None:
                    why = look(entry)
                else:
                    why = guard.run(called, entry.function, called_key(entry), look, entry)
            except FunctionTooLong as error:
                self._does_not_end(name, key, error)
                return
            if why is not None:
                self._offends(name, key, f": {why}")

    def _look_at_values(self, operator: Operator, name: str, table: Table, keys: list[Any]) -> None:
        reader = self._readers[name]
        runs_code, what = reader.runs_code, "state_type" if operator.migration is None else "migrate="
        self._read_all(operator, name, table, keys, lambda _, data: reader.read(data), what if runs_code else "")

    def _look_at_rows(self, slot: int, operator: Operator, name: str, table: Table, keys: list[Any]) -> None:
        new_name = self._renamed.get(name, name)
        rules = self._rules.get(new_name)
        why = None
        if rules is None:
            why = f": the new version has no table {name!r}: {table_gone(name)}"
        elif new_name != name and self._present[slot].get(new_name):
            why = f": table {new_name!r}, to which it would be renamed, has rows already"
        if rules is None or why is not None:
            for key in keys:
                self._offends(name, key, why)
            return
        read = partial(rules.read, partial(self._rows_of, slot))
        self._read_all(operator, name, table, keys, read, f"{new_name.partition('/')[2]} (a table)")

    def _rows_of(self, slot: int, name: str) -> Table:
        """The rows that the table `name` of the new version has in a slot."""
        present = self._present[slot]
        names = (name, *(old for old, new in self._renamed.items() if new == name))
        return next((present[each] for each in names if present.get(each)), {})

    def _read_all(
        self,
        operator: Operator,
        name: str,
        table: Table,
        keys: list[Any],
        read: Callable[[Any, bytes], Reading],
        what: str,
    ) -> None:
        """Reads entries with code that runs, for the guard, as `what` of the operator; "": it needs no guard."""
        guard = self._guard if what else None
        for key in keys:
            try:
                data = table[key]
                reading = read(key, data) if guard is None else guard.run(operator, what, key, partial(read, key), data)
            except Misfit as error:
                self._offends(name, key, error)
                continue
            except FunctionTooLong as error:
                self._does_not_end(name, key, error)
                return
            if reading.data is not None:
                self._migrated[name] = self._migrated.get(name, 0) + 1
            elif reading.dropped:
                self._dropping[name] = self._dropping.get(name, 0) + 1
                self._dropped.setdefault(name, f"{entry_name(name, key)}{reading.dropped}")

    def _does_not_end(self, name: str, key: Any, error: FunctionTooLong) -> None:
        self._ended.add(name)
        kind = "table" if holds_rows(name) else "operator"
        self._offends(name, key, f": {error}; others of its {kind} were not looked at then")

    def _found(self, slot: int, operator: Operator, name: str, keys: list[Any]) -> list[Any]:
        """Those of `keys` whose entity the operator looks for in this slot; none if its code had to be ended."""
        space = operator.key_space
        entities = list(entities_of(operator, name, keys))
        try:
            if [space.check(entity) for entity in entities] == entities:
                slots = self._placed(operator, entities)
                if slots.count(slot) == len(slots):
                    return keys  # the usual case
        except BaseException:  # noqa: BLE001 - looked at one by one below
            pass
        pairs = zip(keys, entities, strict=True)
        try:
            return [key for key, entity in pairs if self._is_found(slot, operator, name, key, entity)]
        except FunctionTooLong:
            return []

    def _placed(self, operator: Operator, keys: list[Any]) -> list[int]:
        space, guard = operator.key_space, self._guard
        if guard is None or space.partition_key is None:
            return space.slots_of(keys, self._n_slots)
        slots_of = partial(space.slots_of, n_slots=self._n_slots)
        return guard.run(operator, "partition_key", keys[0], slots_of, keys)

    def _is_found(self, slot: int, operator: Operator, name: str, key: Any, entity: Any) -> bool:
        try:
            [there] = self._placed(operator, [operator.check_key(entity)])
        except FunctionTooLong as error:
            self._does_not_end(name, key, error)
            raise
        except BaseException as error:  # noqa: BLE001 - the app's own partition_key can raise anything
            self._offends(name, key, f": {describe(error)[1]}")
            return False
        if there != slot:
            self._offends(
                name,
                key,
                f": it is stored in slot {slot} and would be looked for in slot {there}: partition_key or n_partitions "
                "has changed, or partition_key is not the same in every process (hash() of a str is not)",
            )
        return there == slot

    # Rows whose parents are gone -----------------------------------------------------------------------------

    def _note_gone(self, slot: int, name: str, keys: list[Any]) -> None:
        """Entries were deleted: rows that refer to them are to be looked at again."""
        children = self._children.get(self._renamed.get(name, name))
        operator = self.app.operators.get(owner_of(name))
        if children and operator is not None:
            entities = set(entities_of(operator, name, keys))
            for child in children:
                self._parents_gone.setdefault((slot, child), set()).update(entities)

    def _add_children(self) -> None:
        """Behind everything else, once for all that was deleted: to find an entity's rows, all keys are looked at."""
        for (slot, child), entities in self._parents_gone.items():
            operator = self.app.operators[owner_of(child)]
            for name in (child, *(old for old, new in self._renamed.items() if new == child)):
                table = self._present[slot].get(name)
                if table:
                    keys = list(table)
                    owners = entities_of(operator, name, keys)
                    wanted = [key for key, entity in zip(keys, owners, strict=True) if entity in entities]
                    self._todo.append((slot, name, table, wanted))
        self._parents_gone = {}

    def _offends(self, operator: str, key: Any, why: object) -> None:
        self._offenders += 1
        if len(self._first) < OFFENDERS_SHOWN:
            self._first.append(f"{entry_name(operator, key)}{why}")


def check_tables(
    app: App, n_slots: int, limits: Limits, slots: Mapping[int, Mapping[str, Table]], guard: Guard | None = None
) -> StateFindings:
    """The findings for all tables, by slot and operator, at once: for where nothing else is served meanwhile.

    Names of tables that begin with NUL are the engine's own, and left alone.
    """
    referring = {name for name, table in app.tables.items() if table.foreign}
    check = StateCheck(app, n_slots, limits, guard, referring)
    for slot, tables in slots.items():
        for operator, table in tables.items():
            if not operator.startswith("\0"):
                check.add(slot, operator, table)
    while not check.run(SLICE_ENTITIES):
        pass
    findings = check.take()
    if referring:
        needed, there = check.parents()
        findings = together([replace(findings, needed=needed, there=there)])
    return findings
