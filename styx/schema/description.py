"""The description of an app without its code: operators, keys, functions; and whether a version may replace another
one.

Plain data that travels as msgpack or JSON. A version may replace another one only if every entity that has state is
still found where it is and under the same key.

State types are not compared: `state_check` checks for each value whether new code can read it. To evolve a state type,
give every new field a default, and leave out fields that are no longer wanted: msgspec ignores unknown fields.
`migrate=` is for everything else.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

import msgspec

from styx.errors import UnknownOperator
from styx.model.app import App
from styx.model.operator import Operator
from styx.model.partitioning import Key, KeyType, stable_hash
from styx.model.table_names import kept_event, own_name, row_table
from styx.relational.columns import Column
from styx.relational.partition_index import PartitionIndex
from styx.relational.row_indexes import RowIndex
from styx.relational.table import Table
from styx.relational.time_to_live import EACH
from styx.relational.view import View
from styx.schema.event_description import EventDescription, describe_events
from styx.schema.graph_text import text_of

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]++")
_KEY_PARTS: Final = {"str": str, "int": int}


class TableDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One table of an operator. `columns` are those of the row type with what they are compared as, `key` those of the
    primary key; `indexes`, `checks`, `references` and `views` describe what else is declared. `auto`: how keys are
    made; `ttl`: how long rows live; `was`: the name that it had before; `migrate`: whether it has its own one.
    """

    key: list[str]
    columns: dict[str, str] = {}
    indexes: list[str] = []
    checks: list[str] = []
    references: list[str] = []
    views: list[str] = []
    was: str = ""
    auto: str = ""
    ttl: str = ""
    migrate: bool = False


class OperatorDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One operator. `n_partitions` None means one for each slot; `functions` has each one's parameters as text.

    `key_type` is `str`, `int` or such as `(int, str)`; `partition_key` and `migrate` say whether the operator has its
    own one. `hints` names what functions were registered with, of those that were. `tables` are by their own names.
    `ttl`: how long the entities' values live, "" if they do not end. `subscriptions` are lines that say what is called
    for which event, and how; `crons` are lines with function, key and expression.
    """

    n_partitions: int | None
    key_type: str
    partition_key: bool
    functions: dict[str, list[str]]
    migrate: bool = False
    hints: dict[str, list[str]] = {}
    tables: dict[str, TableDescription] = {}
    ttl: str = ""
    subscriptions: list[str] = []
    crons: list[str] = []


class AppDescription(msgspec.Struct, frozen=True, kw_only=True):
    """An app's name, its operators by name, the full names of the tables that it drops, its events by name, and its
    graphs by name, each as `styx graph` prints it.
    """

    name: str
    operators: dict[str, OperatorDescription]
    drops: list[str] = []
    events: dict[str, EventDescription] = {}
    graphs: dict[str, str] = {}


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """How an operator's keys are spread. With `partition_key` only the app's code knows, and `stable_hash` guesses."""

    n_partitions: int | None
    key_type: str
    partition_key: bool


class RoutingTable(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a client needs to send requests to an app of which it knows only the name."""

    app: str
    operators: dict[str, Route]

    def check_key(self, operator: str, key: object) -> Key:
        """`key` as the engine holds it; raises `UnknownOperator` or `BadKey`."""
        return parse_key_type(self.route(operator).key_type).check(key, operator)

    def slot_of(self, operator: str, key: Key, n_slots: int) -> int:
        """The slot of a checked key; a guess if the operator has its own partition key. Raises `UnknownOperator`."""
        return stable_hash(key) % (self.route(operator).n_partitions or n_slots) % n_slots

    def route(self, operator: str) -> Route:
        """The operator's route; raises `UnknownOperator` that lists what there is."""
        try:
            return self.operators[operator]
        except KeyError:
            known = ", ".join(sorted(self.operators)) or "none"
            raise UnknownOperator(f"app {self.app!r} has no operator {operator!r}; it has: {known}") from None

    def encode(self) -> bytes:
        """The msgpack of a map, for `decode_routing_table`."""
        return msgspec.msgpack.encode(self)


def decode_routing_table(data: bytes) -> RoutingTable:
    """Raises `msgspec.DecodeError` (or its `ValidationError`) for garbage."""
    return msgspec.msgpack.decode(data, type=RoutingTable)


def describe(app: App) -> AppDescription:
    """The description of `app`; the same for the same declarations, wherever it is made."""
    return AppDescription(
        name=app.name,
        operators={name: _describe_operator(app, operator) for name, operator in sorted(app.operators.items())},
        drops=list(app.drops),
        events=describe_events(app.events),
        graphs={name: text_of(graph) for name, graph in app.graphs.items()},
    )


def routing_table(description: AppDescription) -> RoutingTable:
    """The part of a description that clients need."""
    routes = {
        name: Route(n_partitions=one.n_partitions, key_type=one.key_type, partition_key=one.partition_key)
        for name, one in description.operators.items()
    }
    return RoutingTable(app=description.name, operators=routes)


def parse_key_type(text: str) -> KeyType:
    """The key type that `text`, a description's `key_type`, names; raises `ValueError` for anything else."""
    try:
        if text.startswith("(") and text.endswith(")"):
            return KeyType(tuple(_KEY_PARTS[part] for part in text[1:-1].split(", ")))
        return KeyType(_KEY_PARTS[text])
    except KeyError:
        raise ValueError(f"{text!r} is no key type; one looks like str, int or (int, str)") from None


def refusal(old: AppDescription, new: AppDescription, with_state: set[str]) -> str | None:
    """Why `new` may not replace `old`, or None if it may; `with_state` are the operators whose entities have state, and
    the tables that have rows.
    """
    if new.name != old.name:
        return (
            f"the app deployed is {old.name!r}, and this one is {new.name!r}: "
            f"name it {old.name!r} to replace it, or deploy it to another cluster"
        )
    for name in sorted(with_state & old.operators.keys()):
        if name not in new.operators:
            return f"operator {name!r} has state, and the new version lacks it: keep it, or delete its entities first"
        reason = _moved(old.operators[name], new.operators[name])
        if reason is not None:
            return f"operator {name!r} has state, and {reason}; keep it as it was, or use an operator of another name"
    return refusal_of_tables(old, new, with_state)


def refusal_of_tables(old: AppDescription, new: AppDescription, with_rows: set[str]) -> str | None:
    """Why the tables `with_rows` of `old`, by their full names, would not be found again in `new`; None if they would.

    Operators that `new` does not have are passed over.
    """
    for full_name in sorted(with_rows):
        operator, _, name = full_name.partition("/")
        after = new.operators.get(operator)
        before = old.operators[operator].tables.get(name) if operator in old.operators else None
        if after is None or before is None or full_name in new.drops:
            continue
        heirs = [table for each, table in after.tables.items() if each == name or table.was == name]
        if not heirs:
            return f"table {full_name!r} has rows, and the new version lacks it: {table_gone(full_name)}"
        if heirs[0].key != before.key:
            return (
                f"table {full_name!r} has rows, and the new version changes its primary key from "
                f"{', '.join(before.key)} to {', '.join(heirs[0].key)}: rows would not be found under it. Keep it, or "
                "declare a table of another name and copy the rows with a function"
            )
    return None


def table_gone(full_name: str) -> str:
    """What to do with the rows of a table that a new version lacks."""
    event, was = kept_event(full_name), own_name(full_name)
    if event:
        return (
            f"keep what was emitted, and declare event {event!r} with rows=True, or drop these rows by "
            f'App(…, drops=["{full_name}"])'
        )
    return f'keep it, rename it by operator.table(…, was="{was}"), or drop its rows by App(…, drops=["{full_name}"])'


def refusal_to_go_back(new: AppDescription, old: AppDescription, with_state: set[str]) -> str | None:
    """Why `old` may not take the place of `new`, which came after it, or None if it may: what `new` has converted,
    older code would take for something else.
    """
    for name in sorted(with_state & new.operators.keys() & old.operators.keys()):
        if new.operators[name].migrate and not old.operators[name].migrate:
            return (
                f"the present version's migrate= has converted the state of operator {name!r}, which the version "
                "before does not know: deploy its code with a migrate= that converts it back"
            )
    before, after = _tables(old), _tables(new)
    for name in sorted(with_state & after.keys() & before.keys()):
        if after[name].migrate and not before[name].migrate:
            return (
                f"the present version's migrate= has converted rows of table {name!r}, which the version before does "
                "not know: deploy its code with a migrate= that converts them back"
            )
    return None


def _tables(app: AppDescription) -> dict[str, TableDescription]:
    """The tables by their full names."""
    return {row_table(name, each): table for name, one in app.operators.items() for each, table in one.tables.items()}


def _moved(old: OperatorDescription, new: OperatorDescription) -> str | None:
    """Why entities of an operator would no longer be found, if so."""
    if new.key_type != old.key_type:
        return f"the new version changes its key_type from {old.key_type} to {new.key_type}"
    if new.n_partitions != old.n_partitions:
        before, after = (str(one.n_partitions or "one for each slot") for one in (old, new))
        return f"the new version changes its n_partitions from {before} to {after}, which would move its entities"
    if new.partition_key != old.partition_key:
        change = "has a partition_key now" if new.partition_key else "has no partition_key any more"
        return f"the new version {change}, which would move its entities"
    return None


def _describe_operator(app: App, operator: Operator) -> OperatorDescription:
    return OperatorDescription(
        n_partitions=operator.n_partitions,
        key_type=operator.key_type.name,
        ttl=_described_ttl(operator.ttl_us, operator.ttl_us > 0),
        partition_key=operator.key_space.partition_key is not None,
        functions={
            name: [_described(parameter) for parameter in function.signature.parameters]
            for name, function in sorted(operator.functions.items())
        },
        migrate=operator.migration is not None,
        hints={
            name: [hint for hint, given in function.hints._asdict().items() if given]
            for name, function in sorted(operator.functions.items())
            if any(function.hints)
        },
        tables=describe_tables(app.tables_of(operator)),
        subscriptions=[each.described() for each in operator.subscriptions],
        crons=sorted(map(str, operator.crons.values())),
    )


def describe_tables(tables: Iterable[Table]) -> dict[str, TableDescription]:
    """The descriptions of an operator's tables by their own names."""
    return {table.name: _describe_table(table) for table in sorted(tables, key=lambda table: table.name)}


def _describe_table(table: Table) -> TableDescription:
    return TableDescription(
        key=[column.name for column in table.key],
        columns={name: _type_of(column) for name, column in table.columns.items()},
        indexes=[_describe_index(index) for index in table.indexes[1:]] + [str(index) for index in table.app_wide],
        checks=[check.name for check in table.checks],
        references=[
            *(f"{each.name}, {each.on_delete}" for each in table.references),
            *(f"{each.name}, {each.on_delete}" for each in table.foreign),
        ],
        views=[_describe_view(view) for view in table.views],
        auto=table.auto or "",
        ttl=_described_ttl(table.ttl_us, table.fades),
        was=table.was,
        migrate=table.migration is not None,
    )


def _described_ttl(ttl_us: int, fades: bool) -> str:
    if not fades:
        return ""
    return str(timedelta(microseconds=ttl_us)) if ttl_us else EACH


def _type_of(column: Column) -> str:
    return f"{column.type_name} | None" if column.optional else column.type_name


def _describe_index(index: RowIndex) -> str:
    equal, order = (", ".join(column.name for column in columns) for columns in (index.equal, index.order))
    scope = "unique" if index.unique else "over a partition" if isinstance(index, PartitionIndex) else ""
    parts = [f"equal={equal}" if equal else "", f"order={order}" if order else "", scope]
    return f"{index.name}: {'; '.join(part for part in parts if part)}"


def _describe_view(view: View) -> str:
    windows = view.windows
    groups = [str(windows[at].tumbling) if at in windows else column.name for at, column in enumerate(view.groups)]
    given = {
        "group_by": groups,
        "sum": [column.name for column in view.sums],
        "min": [ranking.column.name for ranking in view.rankings if ranking.low],
        "max": [ranking.column.name for ranking in view.rankings if ranking.high],
    }
    parts = [f"{what}={', '.join(names)}" for what, names in given.items() if names]
    if view.where is not None:
        parts.insert(1 if groups else 0, "where")
    parts.append({"entity": "", "partition": "over a partition", "app": "over all entities"}[view.scope])
    return f"{view.name}: {'; '.join(['count', *(part for part in parts if part)])}"


def _described(parameter: inspect.Parameter) -> str:
    # Without memory addresses, which a default may show: one app has one description.
    return _ADDRESS.sub("", str(parameter).replace("typing.", ""))
