"""A declared table: rows of one type that belong to the entities of an operator, with indexes, checks and references.

Declarations only, as an operator holds them. `styx.model.rows` reads and writes the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from types import GenericAlias
from typing import Any, Final

from styx.errors import BadQuery, CheckViolation, ConfigurationError, MissingIndex, UnsupportedValue
from styx.native.interpreted import native
from styx.relational.addable import Kinds, addable_kind, increment
from styx.relational.app_wide import AppWideIndex
from styx.relational.columns import Column
from styx.relational.declarations import Check
from styx.relational.explain import explained_look_up, explanation
from styx.relational.increment import Increment
from styx.relational.index_range import RowKey
from styx.relational.partition_index import PartitionIndex, PartitionOf, PartitionPlans
from styx.relational.query import (
    EQUAL,
    Conditions,
    Plan,
    all_conditions,
    conditions_text,
    operations_of,
    plan_by,
    plan_of,
)
from styx.relational.reference import Reference
from styx.relational.reference_declaration import ReferenceDeclaration
from styx.relational.row_indexes import ColumnIndex, RowIndex
from styx.relational.row_keys import Parts, RowKeys
from styx.relational.row_type import RowType
from styx.relational.table_declaration import TableDeclaration, all_of
from styx.relational.view import View
from styx.relational.view_declaration import ViewDeclaration
from styx.values.codec import TypedState, shown

PLANS_MAX: Final = 1_000
"""Kinds of queries of a table whose plans are kept."""


@native(unchecked=True)
class Table:
    """A table of an operator, made by `Operator.table`. It is told apart from others by identity. A new one is empty,
    so that others can refer to it; `declare` makes it what it is, once.

    `full_name`: `cart/items`, under which a slot keeps the rows. `indexes`: number 0 is the primary key.
    `entity_parts`: how many parts of a row's key are the entity's. `auto`: "unique", "serial" or None.
    `entity_indexes`: those over the rows of one entity. `across`: the queries over partitions, by the other indexes.
    `app_wide`: the declared indexes over all entities, which are not among `indexes`.
    `constrained`: rows are examined before they are written. `referenced_by`: references of tables that were declared
    later, and its own to itself. `foreign`: the references to other entities and their rows. `referrers`: those of
    other entities' rows to rows of this table (`styx.model.reference_entries`). `owner`: the operator. `consequences`:
    what changes of rows imply elsewhere (`styx.model.consequence`). `was`: the name that it had in an earlier version,
    "" if none. `migration` converts rows that an earlier version stored. `given`: the arguments of `Operator.table` by
    name, but for these two. `fades`: rows may live for a time only, `ttl_us` microseconds usually, 0 if none is usual.
    `views` are those of its rows. `view_rule`: what the engine keeps in it, if it is a view itself; None otherwise.
    `keeps_event`: the engine keeps the event of this name in it, "" if none. `made`: it is one of these two, and no
    function writes to it.
    """

    __slots__ = (
        "_addable",
        "_examined",
        "_keys",
        "_plans",
        "across",
        "app_wide",
        "auto",
        "auto_default",
        "checks",
        "columns",
        "consequences",
        "constrained",
        "delicate",
        "entity_indexes",
        "entity_parts",
        "fades",
        "foreign",
        "full_name",
        "given",
        "indexes",
        "keeps_event",
        "key",
        "made",
        "migration",
        "name",
        "operator",
        "owner",
        "partition_of",
        "referenced_by",
        "references",
        "referrers",
        "row_type",
        "ttl_us",
        "unique",
        "view_rule",
        "views",
        "was",
    )
    owner: Any

    def declare(
        self,
        operator: str,
        entity_parts: int,
        name: Any,
        row_type: Any,
        *,
        key: Any,
        indexes: Any = (),
        checks: Any = (),
        references: Any = (),
        auto: Any = None,
        was: Any = "",
        ttl: Any = None,
        migration: Any = None,
        partition_of: PartitionOf,
        view_rule: View | None = None,
        ranked: str = "",
        keeps_event: bool = False,
    ) -> None:
        """Takes what `Operator.table` was given; raises `ConfigurationError` that says all that is wrong."""
        indexes, checks, references = all_of(indexes), all_of(checks), all_of(references)
        self.given: dict[str, Any] = {
            "name": name,
            "row_type": row_type,
            "key": key,
            "indexes": indexes,
            "checks": checks,
            "references": references,
            "auto": auto,
            "ttl": ttl,
        }
        declaration = TableDeclaration(self)
        self.operator: str = operator
        self.view_rule: View | None = view_rule
        self.views: list[View] = []
        self.keeps_event: str = name if keeps_event else ""
        self.made: bool = keeps_event or view_rule is not None
        self.name: str = f"<kept {name}>" if keeps_event else declaration.name(name)
        self.migration: Any = migration
        self.full_name = f"{operator}/{self.name}" if view_rule is None else f"{operator}/<view {name}{ranked}>"
        self.was: str = declaration.former_name(was)
        self.entity_parts: int = entity_parts
        self.row_type: RowType = declaration.row_type(row_type)
        self.columns: dict[str, Column] = self.row_type.columns
        self.key: tuple[Column, ...] = declaration.key(key)
        self._keys = RowKeys(self.full_name, self.key, entity_parts)
        self.indexes: tuple[RowIndex, ...] = declaration.indexes(indexes, references, partition_of)
        self.app_wide: tuple[AppWideIndex, ...] = tuple(declaration.app_wide)
        wide = tuple(index for index in self.indexes if isinstance(index, PartitionIndex))
        self.partition_of = partition_of
        self.across = PartitionPlans(self.full_name, wide, self.columns)
        self.entity_indexes: tuple[RowIndex, ...] = tuple(each for each in self.indexes if each not in wide)
        self.checks: tuple[Check, ...] = declaration.checks(checks)
        self.auto_default: Any = declaration.auto_default(auto)
        self.auto: str | None = auto if isinstance(auto, str) else None
        self.fades: bool = ttl is not None
        self.ttl_us: int = declaration.ttl_us(ttl)
        self.references: tuple[Reference, ...] = ()
        self.referenced_by: list[Reference] = []
        self.consequences: list[Any] = []
        self.referrers: list[Any] = []
        self.references, self.foreign = ReferenceDeclaration(self, declaration.problems, declaration.columns).made(
            references
        )
        declaration.end()
        for reference in self.references:
            reference.parent.referenced_by.append(reference)
        self.unique: tuple[ColumnIndex, ...] = tuple(
            index for index in self.indexes if index.unique and isinstance(index, ColumnIndex)
        )
        indexed = {column.name: column for index in self.indexes[1:] for column in index.columns}
        self.delicate: tuple[Column, ...] = tuple(
            column for column in indexed.values() if column.kind is not None and column.kind.may_refuse
        )
        read_by_checks = {column.name: column for index in self.unique for column in index.columns}
        self._examined: tuple[Column, ...] = (
            *self.delicate,
            *(column for column in read_by_checks.values() if column not in self.delicate),
        )
        self.constrained = bool(self.checks or self._examined or self.unique or self.references)
        self._plans: dict[Any, Plan] = {}
        self._addable: Kinds = {}

    @classmethod
    def __class_getitem__(cls, types: Any) -> Any:
        """`Table[Item]`: the type of its rows, for type checkers (`styx/typed.pyi`)."""
        return GenericAlias(cls, types)

    def __repr__(self) -> str:
        return f"Table({self.full_name!r})"

    # Views -------------------------------------------------------------------------------------------------

    def view(
        self,
        name: Any,
        *,
        group_by: Any = (),
        where: Any = None,
        count: Any = True,
        sum: Any = (),
        min: Any = (),
        max: Any = (),
        scope: Any = "entity",
    ) -> Table:
        """Declares a view of this table: the engine keeps, in each transaction that changes rows, how many rows each
        group has, and of some of their columns the sums, the least and the greatest values. `ctx.rows(view)` reads it.

        `group_by`: the column, or columns, whose values are a group; without any all rows are one group. A
        `Tumbling(column, width)` in the place of a column groups by windows of its times. `where` gets a row and says
        whether it counts; it must be pure. `sum`: columns of int or Decimal, which may be None, to be added up. `min`
        and `max`: columns whose least and greatest values other than None are wanted. `count` is True: a view always
        counts. `scope`: "entity", each entity has its own groups; "partition", a group counts the rows of all entities
        of a partition, and `ctx.rows(view)` of a partition function reads it; or "app", a group counts the rows of all
        entities, and `ctx.group(view, …)` reads it.

        A row of the view has the columns of the group, `count`, the sums under the names of their columns, and
        `min_` and `max_` before the names of theirs, None if no row of the group has a value.
        Raises `ConfigurationError` that says all that is wrong.
        """
        given = {"name": name, "group_by": group_by, "where": where, "count": count, "sum": sum}
        return self.declare_view(Table(), **given, min=min, max=max, scope=scope)

    def declare_view(self, table: Table, **given: Any) -> Table:
        """Makes the view of an empty table, to which functions may refer already; as `view`."""
        if self.owner.taken_by:
            raise ConfigurationError(
                f"view {shown(given['name'])} of table {self.full_name}: operator {self.operator!r} is in the app "
                f"{self.owner.taken_by!r} already; declare all views before App(…) takes the operator"
            )
        declared = ViewDeclaration(self, **given)
        rankings, windows = declared.rankings(), declared.windows
        rule = View(self, table, declared.row_type, declared.groups, windows, declared.sums, rankings, given)
        self.owner.keep_view(rule)
        table.owner = self.owner
        self.views.append(rule)
        return table

    def declare_kept(self, view: View, operator: str, entity_parts: int, of_groups: bool) -> None:
        """Makes the tables of a view, which are those of an operator's entities. Without `of_groups`, each of these
        entities is a group.
        """
        columns = view.groups if of_groups else ()
        place: dict[str, Any] = {"partition_of": self.partition_of, "view_rule": view}
        key = tuple([column.name for column in columns])
        view.table.declare(operator, entity_parts, view.name, view.row_type, key=key, **place)
        for ranking in view.rankings:
            ranked = ranking.column.name
            entry_type, parts = ranking.entry_type(f"{view.row_type.__name__}_{ranked}", columns)
            ranking.table = Table()
            ranking.table.owner = self.owner
            named = f" by {ranked}"
            ranking.table.declare(operator, entity_parts, view.name, entry_type, key=parts, ranked=named, **place)

    # As stored -----------------------------------------------------------------------------------------------

    @property
    def typed_state(self) -> TypedState:
        """What encodes and decodes rows, under the name that an operator has it for its states."""
        return self.row_type.typed

    @property
    def encode_state(self) -> Callable[[Any], bytes]:
        """A row's bytes; raises `UnsupportedValue`."""
        return self.row_type.encode

    # Keys --------------------------------------------------------------------------------------------------

    def key_parts(self, pk: Any) -> Parts:
        """The parts of a row's key behind its entity's, of a primary key; as `RowKeys.of`."""
        return self._keys.of(pk)

    def parts_of(self, row: Any) -> Parts:
        """As `key_parts`, of a row that was encoded."""
        return self._keys.of_row(row)

    def keeps_key(self, changes: dict[str, Any]) -> bool:
        """Whether it is certain that a row with these changes has the key that it had."""
        if not self.row_type.changes_alone:
            return False
        for column in self.key:  # noqa: SIM110 - compiled, a generator costs more than the look
            if column.name in changes:
                return False
        return True

    def primary_key(self, key: RowKey) -> Any:
        """The primary key, as `key_parts` takes it, of the key of a row."""
        return self._keys.primary_key(key)

    # Rows --------------------------------------------------------------------------------------------------

    def as_stored(self, row: Any, data: bytes) -> Any:
        """The row of which `data` are the bytes, as indexes see it: with `0.1` in a column of Decimals, they see
        `Decimal("0.1")`, which is another number, and with "NaN" one that has no order.
        """
        for column in self._examined:
            value = getattr(row, column.name)
            kind = column.kind
            assert kind is not None, "a declaration of an index checks it"
            if type(value) not in kind.classes and value is not None:
                decode = self.row_type.decode
                return decode(data)
        return row

    def sees_as_stored(self, row: Any) -> bool:
        """Whether views and consequences see the same in a row that was encoded as in its bytes. A `where` may look at
        all that is in a row, or change it; all others look at values of columns alone.
        """
        for view in self.views:
            if view.where is not None:
                return False
        return self.row_type.typed.tells(row)

    def check(self, row: Any, data: bytes) -> None:
        """Raises `UnsupportedValue` for a value that an index cannot order, `CheckViolation` for the first check that
        the row does not meet or that changes it, and whatever a check raises. `data` are the row's bytes, and the row
        is as `as_stored` gives it.
        """
        for column in self.delicate:
            try:
                column.stored(getattr(row, column.name))
            except UnsupportedValue as error:
                raise UnsupportedValue(f"table {self.full_name}, column {column.name!r}: {error}") from None
        for check in self.checks:
            function = check.function
            if not function(row):
                raise CheckViolation(f"table {self.full_name}: {shown(row)} does not meet the check {check.name!r}")
        if self.checks and not self.row_type.has_bytes(row, data):
            # What looks at the row next, such as a unique index, would see another one than the one that is stored.
            names = " or ".join([repr(check.name) for check in self.checks])
            raise CheckViolation(f"table {self.full_name}: the check {names} changed the row; a check only looks at it")

    def increment(self, deltas: dict[str, Any]) -> Increment:
        """What `rows.add` adds, of the deltas by column; raises `BadQuery` for what cannot be added."""
        kinds = self._addable
        for name in deltas:
            if name not in kinds:
                kinds[name] = addable_kind(self, name)
        return increment(self, kinds, deltas)

    # Queries -----------------------------------------------------------------------------------------------

    def plan(self, conditions: Conditions, scan: bool = False, by: str | None = None) -> Plan:
        """The plan of a query, kept for the next one like it; raises `MissingIndex` or `BadQuery`."""
        asked = (operations_of(conditions), scan, by)
        plan = self._plans.get(asked)
        if plan is None:
            plan = self._planned(conditions, scan, by)
            if len(self._plans) < PLANS_MAX:
                self._plans[asked] = plan
        return plan

    def _planned(self, conditions: Conditions, scan: bool, by: str | None) -> Plan:
        for name in conditions:
            if name not in self.columns:
                raise BadQuery(self.row_type.no_column(name))
        asked = operations_of(conditions)
        if by is not None:
            plan = plan_by(self.index(by), self.columns, asked, scan)
        else:
            plan = plan_of(self.entity_indexes, self.columns, asked)
            if plan is None and scan:
                plan = plan_by(self.indexes[0], self.columns, asked, True)
        if plan is None:
            raise MissingIndex(self._missing(conditions, by))
        return plan

    def _missing(self, conditions: Conditions, by: str | None) -> str:
        asked = operations_of(conditions)
        query = f"the query ({conditions_text(conditions)})" if conditions else "a query without conditions"
        needed = () if by is None else self.index(by).equal
        lacking = [f"{column.name}=…" for column in needed if (column.name, EQUAL) not in asked]
        if lacking:
            return f"table {self.full_name}: index {by!r} does not serve {query}: it needs {', '.join(lacking)}"
        served = "no index serves" if by is None else f"index {by!r} does not serve"
        declare = self._useful_index(asked)
        scan = "scan=True, which reads all rows of the entity and conflicts with every change of them"
        cure = f"declare {declare}, or say {scan}" if declare else f"say {scan}"
        return f"table {self.full_name}: {served} {query}: {cure}"

    def _useful_index(self, asked: tuple[tuple[str, str], ...]) -> str:
        """The declaration of an index that serves, as code; empty if none of the columns can be in an index."""
        can = [(name, operation) for name, operation in asked if self.columns[name].kind is not None]
        equal = [name for name, operation in can if operation == EQUAL]
        order = [name for name, operation in can if operation != EQUAL][:1]
        if not can:
            return ""
        columns = [f"{what}={_listed(names)}" for what, names in (("equal", equal), ("order", order)) if names]
        return f'Index("by_{"_".join(equal + order)}", {", ".join(columns)})'

    def index(self, name: Any) -> RowIndex:
        """The index of this name; raises `BadQuery`."""
        for index in self.entity_indexes:
            if index.name == name:
                return index
        if any(each.name == name for each in self.app_wide):
            raise BadQuery(
                f"table {self.full_name}: index {name!r} is over the rows of all entities: "
                f"await ctx.find({self.name}, {name!r}, …) gives the keys of the rows"
            )
        known = ", ".join(index.name for index in self.entity_indexes)
        raise BadQuery(f"table {self.full_name} has no index {shown(name)}; it has: {known}")

    def unique_index(self, name: Any, values: tuple[Any, ...]) -> RowIndex:
        """The unique index of this name, for one value for each of its columns; raises `BadQuery`."""
        index = self.index(name)
        names = [column.name for column in index.columns]
        if not index.unique:
            raise BadQuery(f"table {self.full_name}: index {name!r} is not unique: use select({names[0]}=…)")
        if len(values) != len(names):
            raise BadQuery(f"table {self.full_name}: index {name!r} takes {', '.join(names)}, got {len(values)} values")
        return index

    def explain(self, *where: Any, by: str | None = None, scan: bool = False, **conditions: Any) -> str:
        """Which index serves a query, what it reads, and with what it conflicts; raises as the query would."""
        if where:
            conditions = all_conditions(where, conditions)
        for index in self.app_wide:
            if index.name == by:
                return explained_look_up(index, conditions)
        plan = self.plan(conditions, scan, by)
        plan.range_of((), conditions)
        return explanation(self, plan, conditions)


def _listed(names: list[str]) -> str:
    return repr(names[0]) if len(names) == 1 else repr(tuple(names))
