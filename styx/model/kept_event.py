"""Kept events: rows that an event declared with `rows=` leaves with the entity that emits it, for functions to query.

A row is written by the emitting transaction, with all that this means for rows: it is there if the event was emitted,
and goes by its time to live. Each operator of the app has a table of each such event, which the engine alone writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from styx.errors import ConfigurationError
from styx.model.event import Event
from styx.model.row_statements import RowStatements
from styx.model.row_store import RowStore
from styx.relational.declarations import Index
from styx.relational.table import Table

if TYPE_CHECKING:
    from styx.model.app import App
    from styx.model.context import Context
    from styx.model.operator import Operator

BY_TIME: Final = "by_time"
"""The index over an entity's kept events."""
OF_PARTITION: Final = "of_partition"
"""The index over those of all entities of a partition."""

T = TypeVar("T")


class KeptEvent(msgspec.Struct, Generic[T], frozen=True):
    """An event that its entity has emitted, as `ctx.rows(event)` gives it.

    `place` is the row's primary key, and sorts an entity's events as they were emitted. It is the `id` that the event
    has for its readers, unless it was emitted with `key=`. `time` is `ctx.now()` there, in UTC, and `version` that of
    the type.
    """

    place: str
    time: datetime
    version: int
    value: T


Kept = Mapping[str, Mapping[str, Table]]
"""By event and operator, the table of the events that the operator's entities keep."""


def kept_tables(operators: Iterable[Operator], events: Iterable[Event[Any]]) -> Kept:
    """The tables that an app has for its events; raises `ConfigurationError` if a name stands for two."""
    operators = list(operators)
    return {event.name: _tables_of(event, operators) for event in events if event.rows}


def _tables_of(event: Event[Any], operators: list[Operator]) -> dict[str, Table]:
    row_type = msgspec.defstruct(
        f"{KeptEvent.__name__}.{event.name}", [("value", event.type)], bases=(KeptEvent,), frozen=True
    )
    tables: dict[str, Table] = {}
    for operator in operators:
        views = [view.name for table in operator.tables.values() for view in table.views]
        if event.name in operator.tables or event.name in views:
            raise ConfigurationError(
                f"operator {operator.name!r} has a table or a view {event.name!r}, and rows= keeps rows of event "
                f"{event.name!r} under the same name: rename one of them"
            )
        tables[operator.name] = table = Table()
        _declare(table, event, operator, row_type)
    return tables


def _declare(table: Table, event: Event[Any], operator: Operator, row_type: Any) -> None:
    table.owner = operator
    table.declare(
        operator.name,
        len(operator.key_type.parts) or 1,
        event.name,
        row_type,
        key="place",
        indexes=[Index(BY_TIME, order="time"), Index(OF_PARTITION, order="time", scope="partition")],
        ttl=event.rows if isinstance(event.rows, timedelta) else None,
        partition_of=operator.key_space.partition_of_flat,
        keeps_event=True,
    )


def adopt(app: App, tables: Mapping[tuple[str, str], Table]) -> None:
    """Makes the tables of events other objects, by event and operator, and not declared so far: those to which
    functions of a package refer already.
    """
    for (event, operator), table in tables.items():
        row_type = app.kept[event][operator].row_type.declared
        _declare(table, app.events[event], app.operators[operator], row_type)
        app.kept = {**app.kept, event: {**app.kept[event], operator: table}}
        app.tables = MappingProxyType({**app.tables, table.full_name: table})
        app.known_tables[table.full_name] = table


def keep(context: Context, event: Event[Any], tables: Mapping[str, Table], place: str, value: Any) -> None:
    """Puts the row of an event that was checked; raises as a statement of a function does."""
    spec = context._spec
    table = tables[spec.operator]
    time = context._env.now()
    try:
        row = table.row_type.declared(place, time, event.version, value)
        RowStatements(RowStore(context, spec.operator, context._key)).put(table, row)
    except BaseException as error:  # noqa: BLE001 - a type's own code can run here
        raise context._doomed(error) from None
