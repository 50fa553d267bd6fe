"""An app: the set of operators that is deployed together. Declarations only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from styx.errors import BadArguments, ConfigurationError, UnknownOperator
from styx.model.consequence import Consequence
from styx.model.event import RESERVED_OPERATOR, Event, declared_events
from styx.model.event_delivery import event_deliveries
from styx.model.event_place import ELSEWHERE
from styx.model.function_spec import QUEUE_FUNCTION, FunctionSpec
from styx.model.graph import Graph
from styx.model.graph_check import CheckedGraph, Graphs
from styx.model.graph_events import publishers
from styx.model.group_queue import queue_functions
from styx.model.internal_operator import InternalOperator
from styx.model.kept_event import Kept, kept_tables
from styx.model.operator import Operator
from styx.model.partition_function import Partitions
from styx.model.subscription import subscribers
from styx.model.table_names import holds_rows, kept_table, owner_of, row_table, view_table
from styx.relational.row_indexes import RowIndex
from styx.relational.table import Table
from styx.values.codec import shown


class App:
    """A named set of operators.

    `resolved` keeps what `resolve` has found, and `first` what `resolve_first` has; callers on the hot path look there
    first. `logs` is true once a function has used `ctx.log`; before that there are no lines to collect. `tables` are by
    full name, those that hold views among them; `internal_tables` are those that the engine made, and `known_tables`
    are both. `events` are those that functions emit, by name; `kept` has the tables of those that are kept as rows.
    `drops` names tables of earlier versions, such as "cart/old", whose rows are deleted when the app is deployed.
    `graphs` are by name; `starts` gives the specification with which a request for a graph's start begins.

    Raises `ConfigurationError` if a name stands twice, a function's annotations cannot be converted to, a table that is
    to be dropped is declared, or a graph does not fit the functions.
    """

    def __init__(
        self,
        name: str,
        operators: Iterable[Operator],
        *,
        drops: Iterable[str] = (),
        events: Iterable[Event[Any]] = (),
        graphs: Iterable[Graph] = (),
    ) -> None:
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"an app needs a name, got {shown(name)}")
        self.name = name
        by_name: dict[str, Operator] = {}
        for operator in operators:
            if not isinstance(operator, Operator):
                raise ConfigurationError(f"app {name!r}: {shown(operator)} is not an Operator")
            if operator.name in by_name:
                raise ConfigurationError(f"app {name!r} has two operators named {operator.name!r}; rename one of them")
            by_name[operator.name] = operator
            for function in operator.functions.values():
                _ = function.signature  # resolves annotations now: a wrong one fails here, not at the first request
            for function in operator.partitions.functions.values():
                _ = function.signature
        self.operators: Mapping[str, Operator] = MappingProxyType(by_name)
        self._by_name = by_name
        self.events = declared_events(name, events)
        self.kept: Kept = kept_tables(by_name.values(), self.events.values())
        self.tables: Mapping[str, Table] = MappingProxyType(
            {table.full_name: table for operator in by_name.values() for table in self._named_tables(operator)}
        )
        self.drops = self._checked_drops(drops)
        if self.events and RESERVED_OPERATOR in by_name:
            raise ConfigurationError(
                f"app {name!r} has events and an operator named {RESERVED_OPERATOR!r}: rename the operator, because "
                f"/v1/{RESERVED_OPERATOR}/NAME is where a gateway has the events"
            )
        self._check_renamed()
        self._check_references()
        internal = {each.name: each for operator in by_name.values() for each in operator.internal}
        if self.events:
            internal[ELSEWHERE.name] = ELSEWHERE
        self._internal: dict[str, Partitions | InternalOperator] = {
            **{each.partitions.name: each.partitions for each in by_name.values()},
            **internal,
        }
        self._owners: dict[str, Operator | InternalOperator] = {**by_name, **internal}
        views = [view for table in self.tables.values() for view in table.views]
        kept = [table for operator in internal.values() for table in operator.tables.values()]
        kept += [table for view in views for table in view.tables if table.full_name not in self.tables]
        self.internal_tables: Mapping[str, Table] = MappingProxyType({table.full_name: table for table in kept})
        # A dictionary for compiled code, which asks at each `ctx.rows`.
        self.known_tables: dict[str, Table] = {**self.internal_tables, **self.tables}
        self.resolved: dict[tuple[Any, Any], FunctionSpec] = {}
        self.logs = False
        checked = Graphs(name, by_name, graphs)
        self.graphs: Mapping[str, CheckedGraph] = MappingProxyType(checked.by_name)
        self.starts: Mapping[FunctionSpec, FunctionSpec] = checked.starts
        subscribed = subscribers(name, by_name, self.events)
        published = publishers(name, checked.by_name.values(), self.events, subscribed)
        self.event_deliveries = event_deliveries(self.events, subscribed, published)
        self._between_workers = checked.members
        for subscription, queue in queue_functions(subscribed).items():
            self.resolved[subscription, QUEUE_FUNCTION] = queue
            self._between_workers[queue.operator, QUEUE_FUNCTION] = queue
        self.first = {} if checked.starts else self.resolved
        for operator in by_name.values():
            operator.taken_by = name

    def operator(self, wanted: Any) -> Operator:
        """The operator by name or by itself; raises `UnknownOperator` that lists what there is."""
        name = wanted.name if isinstance(wanted, Operator) else wanted
        try:
            operator = self._by_name.get(name)
        except TypeError:  # not hashable
            operator = None
        if operator is None:
            known = ", ".join(sorted(self.operators)) or "none"
            raise UnknownOperator(f"app {self.name!r} has no operator {shown(name)}; it has: {known}")
        return operator

    def resolve(self, operator: Any, function: Any) -> FunctionSpec:
        """An operator's function, both by name or by themselves; raises `UnknownOperator` or `UnknownFunction`.

        An operator's `Partitions` and an `InternalOperator` stand for themselves only: their names are for calls
        between workers (`resolve_call`), and a client that sends one gets `UnknownOperator`.
        """
        try:
            found = self.resolved.get((operator, function))
        except TypeError:  # not hashable
            found = None
        if found is None:
            target: Any = operator
            internal = isinstance(operator, Partitions | InternalOperator)
            if not internal or self._internal.get(operator.name) is not operator:
                target = self.operator(operator)
            found = target.function(function)
            if operator is target or type(operator) is str:  # any number of others may have its name
                self.resolved[operator, function] = found
        return found

    def resolve_first(self, operator: str, function: str) -> FunctionSpec:
        """The function with which a request begins, both by name: as `resolve`, or that at the start of a graph."""
        found = self.resolve(operator, function)
        if self.starts:
            found = self.first[operator, function] = self.starts.get(found, found)
        return found

    def resolve_call(self, operator: str, function: str) -> FunctionSpec:
        """The function that a call between workers names: as `resolve`, or an engine-made one, or one of a graph."""
        found = self._between_workers.get((operator, function))
        return self.resolve(self._internal.get(operator, operator), function) if found is None else found

    def owner(self, name: str) -> Operator | InternalOperator | None:
        """The operator whose entities have state under this name, an internal one among them; None if there is none."""
        return self._owners.get(name)

    def entries(self) -> Iterator[tuple[Table, Consequence]]:
        """The tables whose rows imply entries elsewhere, with what implies them."""
        for table in self.tables.values():
            for consequence in table.consequences:
                if consequence.entries is not None:
                    yield table, consequence

    def table(self, full_name: str) -> Table | None:
        """The table whose rows a slot keeps under this name, such as `cart/items`, or a table of an internal operator;
        None if it is not one.
        """
        return self.known_tables.get(full_name)

    def declared_table(self, wanted: Table | str) -> Table:
        """A table by itself or by its full name; raises `UnknownOperator`, or `BadArguments` listing what there is."""
        name = wanted.full_name if isinstance(wanted, Table) else wanted
        if not isinstance(name, str) or not holds_rows(name):
            raise BadArguments(f"a table is a Table, or its full name such as 'cart/items': got {shown(wanted)}")
        parts = name.split("/", 1)
        table = self.tables.get(name) or self.tables.get(view_table(*parts)) or self.tables.get(kept_table(*parts))
        if table is None:
            for view in [view for each in self.tables.values() for view in each.views if view.scope != "entity"]:
                if name in (view.table.full_name, row_table(view.source.operator, view.name)):
                    raise BadArguments(f"{view.named} is of no entity: a client reads it through a function of the app")
            operator = self.operator(owner_of(name))
            known = ", ".join(sorted(each.keeps_event or each.name for each in self._named_tables(operator))) or "none"
            raise BadArguments(
                f"operator {operator.name!r} has no table {shown(name.partition('/')[2])}; it has: {known}"
            )
        return table

    def table_indexes(self, full_name: str) -> tuple[RowIndex, ...]:
        """The indexes of that table, its primary key first; none if it is not a declared table."""
        table = self.table(full_name)
        return () if table is None else table.indexes

    def kept_table(self, operator: Operator | str, event: Event[Any]) -> Table:
        """The table with the rows that an operator's entities keep of an event, `Event(…, rows=…)`; raises
        `BadArguments` if there is none, and `UnknownOperator`.
        """
        if self.events.get(event.name) is not event:
            known = ", ".join(self.kept) or "none"
            raise BadArguments(f"app {self.name!r} does not have {event!r}; events whose rows it keeps: {known}")
        if not event.rows:
            raise BadArguments(
                f"app {self.name!r} keeps no rows of {event!r}: declare it with rows=timedelta(days=90), or rows=True"
            )
        return self.kept[event.name][self.operator(operator).name]

    def tables_of(self, operator: Operator) -> list[Table]:
        """The operator's tables, and those of the events that its entities keep."""
        return [*operator.tables.values(), *(tables[operator.name] for tables in self.kept.values())]

    def _named_tables(self, operator: Operator) -> list[Table]:
        """As `tables_of`, and their views; raises `ConfigurationError` if two have one name."""
        tables = self.tables_of(operator)
        tables += [view.table for table in operator.tables.values() for view in table.views if view.scope == "entity"]
        names = Counter(table.name for table in tables)
        twice = [name for name, times in names.items() if times > 1]
        if twice:
            raise ConfigurationError(
                f"app {self.name!r}: operator {operator.name!r} has two tables or views named {twice[0]!r}; rename one"
            )
        return tables

    def _checked_drops(self, drops: Iterable[str]) -> tuple[str, ...]:
        names = sorted({drops} if isinstance(drops, str) else set(drops), key=str)
        for name in names:
            if not isinstance(name, str) or not holds_rows(name) or owner_of(name) not in self._by_name:
                raise ConfigurationError(
                    f"app {self.name!r}: drops= names tables by operator and table, such as 'cart/old', of operators "
                    f"that it has: got {shown(name)}"
                )
            if name in self.tables:
                raise ConfigurationError(
                    f"app {self.name!r}: table {name!r} is declared and named in drops=: leave it out of one of the two"
                )
        return tuple(names)

    def _check_renamed(self) -> None:
        renamed: dict[str, str] = {}
        for table in self.tables.values():
            if not table.was:
                continue
            old = row_table(table.operator, table.was)
            other = renamed.setdefault(old, table.full_name)
            if other != table.full_name or old in self.tables or old in self.drops:
                raise ConfigurationError(
                    f"table {table.full_name!r}: was={table.was!r} names a table that is declared, renamed twice or "
                    "dropped as well: its rows can go to one place"
                )

    def _check_references(self) -> None:
        for table in self.tables.values():
            for reference in table.foreign:
                if self._by_name.get(reference.parent.name) is not reference.parent:
                    raise ConfigurationError(
                        f"app {self.name!r}: {reference.name} refers to operator {reference.parent.name!r}, which the "
                        "app does not have: add it to the app's operators"
                    )
        for operator in self._by_name.values():
            for called in operator.calls:
                if self._by_name.get(called.name) is not called:
                    raise ConfigurationError(
                        f"app {self.name!r}: {operator} calls operator {called.name!r}, which the app does not have: "
                        "add it to the app's operators"
                    )
            for event in operator.emits:
                if self.events.get(event.name) is not event:
                    raise ConfigurationError(
                        f"app {self.name!r}: {operator} emits {event!r}, which the app does not have: declare it in "
                        "App(events=[…])"
                    )

    def __repr__(self) -> str:
        return f"App({self.name!r}, operators={list(self.operators)})"
