"""The plain rows of an app's tables at the ends of epochs, of a serial replay: no code of replicas or queries has part
in them, but for the kinds that columns have.

Only columns of numbers and texts are there: keys of entities, and of the declared tables' rows all such columns.
"""

from __future__ import annotations

from typing import Any, Final

from proof.sql.selects import Row
from styx.model.app import App
from styx.query.fields import kind_of
from styx.query.relations import Table
from styx.testing.serial import SerialReference

KINDS: Final = ("int", "str")


class Shown:
    """A table that is asked: its rows stand in the state under the name `stored`, and are of the type `row_type`."""

    def __init__(self, app: App, operator: str, stored: str, name: str) -> None:
        key_type = app.operators[operator].key_type
        parts = key_type.parts or (key_type.scalar or str,)
        keys = ["key", *(f"key_{at}" for at in range(2, len(parts) + 1))]
        declared = app.declared_table(stored) if "/" in stored else None
        columns = (
            [] if declared is None else [(each.name, kind_of(each.type_name)) for each in declared.columns.values()]
        )
        self._decode = None if declared is None else declared.row_type.decode
        self._attributes = [own for own, kind in columns if kind in KINDS]
        self._parts = len(parts)
        named = [(own, part.__name__) for own, part in zip(keys, parts, strict=True)]
        self.stored = stored
        self.table = Table(operator, name, named + [each for each in columns if each[1] in KINDS])

    def row(self, key: Any, data: bytes) -> Row:
        """Of an entry of the state."""
        parts = (key if type(key) is tuple else (key,))[: self._parts]
        if self._decode is None:
            return parts
        row = self._decode(data)
        return (*parts, *(getattr(row, each) for each in self._attributes))


class StateTables:
    """The tables of some operators of an app, by `schema.name`."""

    def __init__(self, app: App, operators: list[str]) -> None:
        self.by_operator: dict[str, list[Table]] = {}
        self.shown: dict[str, Shown] = {}
        for operator in operators:
            stored = [operator]
            stored += [name for name, table in app.tables.items() if table.operator == operator and not table.made]
            for name in stored:
                shown = Shown(app, operator, name, name.partition("/")[2] or "state")
                self.shown[f"{operator}.{shown.table.name}"] = shown
                self.by_operator.setdefault(operator, []).append(shown.table)


class StateAt:
    """The rows of all tables at the end of an epoch, as the serial replay has them when it comes there."""

    def __init__(self, tables: StateTables, epoch: int) -> None:
        self.epoch = epoch
        self.rows: dict[str, list[Row]] = {name: [] for name in tables.shown}
        self._names = {shown.stored: name for name, shown in tables.shown.items()}
        self._tables = tables

    def check(self, reference: SerialReference) -> None:
        """Takes the rows; as `styx.testing.reads.Seen`."""
        for (stored, key), data in reference.state.items():
            name = self._names.get(stored)
            if name is not None:
                self.rows[name].append(self._tables.shown[name].row(key, data))
