"""Checks stored entities against an app's code, some at a time, so that others can run in between.

Every entity must be found where the code looks for it, under a key of its operator's type, and its `state_type` must
read it or `migrate=`, run in trial, must convert it. Pure; the state is not changed. After a change to checked entities
the caller must name these entities again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from styx.errors import FunctionTooLong, describe
from styx.model.app import App
from styx.model.limits import Limits
from styx.model.operator import Operator
from styx.model.table_names import entities_of, entry_name, holds_sequences, owner_of
from styx.schema.state_findings import OFFENDERS_SHOWN, StateFindings
from styx.schema.state_reading import Misfit, Reading, StateReader

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

    Code that had to be ended once is not tried again: what is left of its operator is not looked at.
    """

    def __init__(self, app: App, n_slots: int, limits: Limits, guard: Guard | None = None) -> None:
        self.app = app
        self._n_slots = n_slots
        self._guard = guard
        self._ended: set[str] = set()
        self._readers = {name: StateReader(one, limits.value_bytes_max) for name, one in app.operators.items()}
        self._todo: deque[tuple[int, str, Table, list[Any] | None]] = deque()
        self._keys: list[Any] = []
        self._position = 0
        self._forget()

    def add(self, slot: int, operator: str, table: Table, keys: Iterable[Any] | None = None) -> None:
        """To check: all entities that an operator's table of a slot has when it is its turn, or those of `keys`."""
        self._todo.append((slot, operator, table, None if keys is None else list(keys)))

    @property
    def done(self) -> bool:
        """Nothing is left."""
        return not self._todo

    def run(self, entities: int) -> bool:
        """Checks so many entities more; whether nothing is left."""
        while entities > 0 and self._todo:
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
            if present and operator not in self._ended:
                self._look_at(slot, operator, table, present)
        return not self._todo

    def take(self) -> StateFindings:
        """The findings since the last call of this."""
        findings = StateFindings(
            self._checked, self._offenders, self._first, self._migrated, self._dropping, self._dropped
        )
        self._forget()
        return findings

    def _forget(self) -> None:
        self._checked = self._offenders = 0
        self._first: list[str] = []
        self._migrated: dict[str, int] = {}
        self._dropping: dict[str, int] = {}
        self._dropped: dict[str, str] = {}

    def _look_at(self, slot: int, operator: str, table: Table, keys: list[Any]) -> None:
        owner = owner_of(operator)
        reader = self._readers.get(owner)
        if reader is None:
            for key in keys:
                self._offends(operator, key, f": the new version has no operator {owner!r}")
            return
        if holds_sequences(operator):
            self._found(slot, reader, list(entities_of(reader.operator, operator, keys)))
            return  # their numbers are read by no code of the app
        for key in self._found(slot, reader, keys):
            try:
                reading = self._read(reader, key, table[key])
            except Misfit as error:
                self._offends(operator, key, error)
                continue
            except FunctionTooLong as error:
                self._does_not_end(operator, key, error)
                return
            if reading.data is not None:
                self._migrated[operator] = self._migrated.get(operator, 0) + 1
            elif reading.dropped:
                self._dropping[operator] = self._dropping.get(operator, 0) + 1
                self._dropped.setdefault(operator, f"{entry_name(operator, key)}{reading.dropped}")

    def _read(self, reader: StateReader, key: Any, data: bytes) -> Reading:
        guard, operator = self._guard, reader.operator
        if guard is None or not reader.runs_code:
            return reader.read(data)
        return guard.run(operator, "state_type" if operator.migration is None else "migrate=", key, reader.read, data)

    def _does_not_end(self, operator: str, key: Any, error: FunctionTooLong) -> None:
        self._ended.add(operator)
        self._offends(operator, key, f": {error}; others of its operator were not looked at then")

    def _found(self, slot: int, reader: StateReader, keys: list[Any]) -> list[Any]:
        """Those of `keys` that the operator looks for in this slot; none if its code had to be ended."""
        space = reader.operator.key_space
        try:
            if [space.check(key) for key in keys] == keys:
                slots = self._placed(reader.operator, keys)
                if slots.count(slot) == len(slots):
                    return keys  # the usual case
        except BaseException:  # noqa: BLE001 - looked at one by one below
            pass
        try:
            return [key for key in keys if self._is_found(slot, reader, key)]
        except FunctionTooLong:
            return []

    def _placed(self, operator: Operator, keys: list[Any]) -> list[int]:
        space, guard = operator.key_space, self._guard
        if guard is None or space.partition_key is None:
            return space.slots_of(keys, self._n_slots)
        slots_of = partial(space.slots_of, n_slots=self._n_slots)
        return guard.run(operator, "partition_key", keys[0], slots_of, keys)

    def _is_found(self, slot: int, reader: StateReader, key: Any) -> bool:
        operator = reader.operator
        try:
            [there] = self._placed(operator, [operator.check_key(key)])
        except FunctionTooLong as error:
            self._does_not_end(operator.name, key, error)
            raise
        except BaseException as error:  # noqa: BLE001 - the app's own partition_key can raise anything
            self._offends(operator.name, key, f": {describe(error)[1]}")
            return False
        if there != slot:
            self._offends(
                operator.name,
                key,
                f": it is stored in slot {slot} and would be looked for in slot {there}: partition_key or n_partitions "
                "has changed, or partition_key is not the same in every process (hash() of a str is not)",
            )
        return there == slot

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
    check = StateCheck(app, n_slots, limits, guard)
    for slot, tables in slots.items():
        for operator, table in tables.items():
            if not operator.startswith("\0"):
                check.add(slot, operator, table)
    while not check.run(SLICE_ENTITIES):
        pass
    return check.take()
