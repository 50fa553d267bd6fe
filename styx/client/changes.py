"""The reader of changes that `client.changes` returns: an asynchronous iterator over the epochs that have changed
something.

It checks what it was asked for, and gives values and rows of their declared types. Each client brings the source.
Nothing is acknowledged: who reads keeps the epoch.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from styx.errors import BadArguments, StyxError
from styx.model.app import App
from styx.model.changes import ChangeSource, EpochChanges, entries, table_name
from styx.model.operator import Operator
from styx.relational.table import Table
from styx.values.codec import shown
from styx.values.custom_types import dec_hook


class Change(NamedTuple):
    """What an epoch has made of an entity's state, or of a row.

    `key` is the entity's. `table` is the name of the row's table without the operator's, or of its view, and `row_key`
    its primary key: the value of a key of one column, a tuple of others. Both are None for a state. `value` is the
    state, or the row, at the end of the epoch; None if it is `deleted`.
    """

    key: Any
    value: Any
    deleted: bool = False
    table: str | None = None
    row_key: Any = None


class ChangedEpoch(NamedTuple):
    """All changes of one epoch that were asked for; each key comes once."""

    epoch: int
    changes: list[Change]


Steps = AsyncGenerator[tuple[int, list[ChangedEpoch]], None]
"""An epoch up to whose end all changes have come, and those of the epochs behind the step before. The first step says
where it begins.
"""


class ChangeReader:
    """The epochs with changes, one by one, in order, each once and whole. Use it as `async for`.

    Leaving the loop early is fine: `async with` or `aclose()` frees what it holds at once. So is a wait that is given
    up: the next one goes on where it was.
    """

    def __init__(self, make: Callable[[int], Steps], after: int) -> None:
        """`make` makes the steps behind the end of an epoch; those behind `after`, or `FROM_NOW`, are wanted."""
        self._make = make
        self._after = after
        self._steps: Steps | None = None
        self._read: list[ChangedEpoch] = []
        self._through: int | None = None
        self._epoch: int | None = None
        self._failure: StyxError | None = None

    @property
    def epoch(self) -> int | None:
        """All changes up to the end of this epoch were given, None before it has begun. Another reader goes on with
        `from_epoch=reader.epoch + 1`. Epochs that change nothing raise it too.
        """
        return self._epoch if self._read else self._through

    async def begin(self) -> int:
        """Begins, if it has not, and gives `epoch`. All that changes behind its end will come: a state that is read
        from here on is of an `epoch` from which on changes are to be laid over it.
        """
        while self._through is None:
            await self._step()
        assert self.epoch is not None
        return self.epoch

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ChangedEpoch:
        """The next epoch with changes; it waits for one. Raises `SnapshotTooOld` if changes behind `epoch` are not kept
        any more, and what the client raises.
        """
        while not self._read:
            await self._step()
        found = self._read.pop(0)
        self._epoch = found.epoch
        return found

    async def _step(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._steps is None:
            self._steps = self._make(self._after if self._through is None else self._through)
        steps = self._steps
        try:
            through, epochs = await anext(steps)
        except StyxError as error:
            self._failure = error  # else the next step would look like the end
            raise
        except BaseException:
            # It has ended, with a wait that was given up, or a value that cannot be read. Whoever waits anew begins
            # behind what has come; else it would look like the end, too.
            if self._steps is steps:
                self._steps = None
            raise
        if self._through is not None and through <= self._through:
            return  # where it has begun anew
        if epochs:
            self._epoch = self._through
        self._read.extend(epochs)
        self._through = through

    async def aclose(self) -> None:
        """Ends the reader; the next use begins at the beginning of what it was asked for."""
        steps, self._steps, self._failure = self._steps, None, None
        self._read.clear()
        self._through = self._epoch = None
        if steps is not None:
            await steps.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


async def steps_of(source: ChangeSource, app: App, operator: str, table: str | None, after: int) -> Steps:
    """The steps of a source in this process, with decoded values."""
    given = source.follow(operator, table, after)
    try:
        async for found in given:
            yield found.through, [ChangedEpoch(each.epoch, list(_changes(app, each))) for each in found.epochs]
    finally:
        await given.aclose()  # type: ignore[attr-defined]  # a generator


def _changes(app: App, epoch: EpochChanges) -> Iterator[Change]:
    for each in epoch.tables:
        for table, key, row_key, data in entries(app, each):
            decode = app.operators[each.name].decode_state if table is None else table.row_type.decode
            value = None if data is None else decode(data)
            yield Change(key, value, data is None, None if table is None else table_name(table), row_key)


class TypedChanges:
    """Makes the changes that a gateway tells as JSON: values are of the types of `operator` and `table` if these were
    given themselves, and plain data if only their names were.
    """

    def __init__(self, operator: Any, table: Any) -> None:
        self._state: Any = operator.state_type if isinstance(operator, Operator) else None
        self._tables: dict[str, Table] = {}
        if isinstance(operator, Operator):
            for each in operator.tables.values():
                views = [view.table for view in each.views if view.scope == "entity"]
                self._tables |= {table_name(one): one for one in (each, *views)}
        if isinstance(table, Table):
            self._tables[table_name(table)] = table

    def change(self, told: dict[str, Any]) -> Change:
        """One change; raises `ValueError` for what no gateway tells, or what does not fit the type."""
        try:
            key, row_key, table, value = told["key"], told.get("row_key"), told.get("table"), told.get("value")
            deleted = told.get("deleted", False)
            known = None if table is None else self._tables.get(table)
            declared = self._state if table is None else None if known is None else known.row_type.declared
            if known is not None:
                row_key = _primary_key(known, row_key)
            if declared is not None and not deleted:
                value = msgspec.convert(value, declared, dec_hook=dec_hook, str_keys=True)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no change: {error}") from None
        return Change(_key(key), value, deleted, table, _key(row_key))


def _primary_key(table: Table, told: Any) -> Any:
    """The primary key that JSON has: a time, for example, has come as text."""
    if len(table.key) != 1:
        values = zip(table.key, told, strict=True)
        return tuple([column.of_json(each) for column, each in values])
    return table.key[0].of_json(told)


def _key(key: Any) -> Any:
    return tuple(key) if type(key) is list else key


def table_in(operator: str, table: Any) -> str | None:
    """The name of a table, without the operator's, that is given by itself or by name; raises `BadArguments`."""
    if table is None:
        return None
    if isinstance(table, Table):
        if table.operator != operator:
            raise BadArguments(f"table {table.full_name!r} is not one of operator {operator!r}")
        return table_name(table)
    if type(table) is not str or not table:
        raise BadArguments(f"table= is a Table or its name, got {shown(table)}")
    return table.removeprefix(f"{operator}/")
