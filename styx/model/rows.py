"""The rows of one declared table that belong to the entity a function runs on: `ctx.rows(items)`.

A row is an entry of the entity's slot, which the transaction reads and writes through a `Cell`; what a query reads is a
range of an index. Constraints are checked by the statement that could break them, before it writes. As with the
context's own methods, each method has done its work when it returns, and its `await` gives the result; an error that it
raises ends the transaction even if the function catches it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from datetime import timedelta
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final

from styx.errors import BadArguments, BadQuery
from styx.model.event import Event
from styx.model.group_rows import group_read, no_group
from styx.model.lifetime import row_ttl_us
from styx.model.row_page import Page, cursor_of, position_of
from styx.model.row_statements import RowStatements
from styx.model.row_store import RowStore
from styx.model.waiting import DONE
from styx.native.interpreted import native
from styx.relational.index_range import LOWEST, Position, RowKey
from styx.relational.query import Conditions, Plan, all_conditions, changes_of
from styx.relational.table import Table
from styx.relational.time_to_live import NONE_US
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.context import Context

_READ_BY: Final = {
    "app": "over all entities: read a group by ctx.group(view, …)",
    "partition": "over the entities of a partition: a partition function reads it, by ctx.rows(view) without of=",
}
_ON_CONFLICT: Final = (None, "keep", "replace")
Result = Coroutine[Any, Any, Any]


@native(unchecked=True)
class Rows:
    """The rows of one table that belong to one entity; valid until the function ends.

    `pk`: a primary key, a tuple if it has several columns. Conditions are keywords named after columns: a value, or one
    of `between`, `at_least`, `above`, `at_most`, `below` and `prefix`. `where` has further ones, by column. An index
    must serve them (`Table.explain`), or the query says `scan=True`; `by` names the index to use. Lists are in the
    order of the index's `order` columns, then of the primary key. Each row that is read or written counts as an
    operation.
    """

    __slots__ = ("_context", "_statements", "_store", "_table")

    def __init__(self, context: Context, table: Any, operator: str, key: Any) -> None:
        self._table: Table = check_table(context, table, operator)
        self._context: Context = context
        self._store = RowStore(context, operator, key)
        self._statements = RowStatements(self._store)

    @classmethod
    def __class_getitem__(cls, types: Any) -> Any:
        """`Rows[Item]`: the type of the rows, for type checkers (`styx/typed.pyi`)."""
        return GenericAlias(cls, types)

    def __repr__(self) -> str:
        return f"<rows of {self._table.full_name} of {self._store.named()}>"

    # One row -----------------------------------------------------------------------------------------------

    def get(self, pk: Any, default: Any = None) -> Result:
        """A fresh copy of the row with this primary key, or `default`. A group of a view that has no rows is read as
        zeros, without a `default`.
        """
        self._open()
        try:
            table, store = self._table, self._store
            key = store.entity + table.key_parts(pk)
            data = store.read(table, key)
            row = store.decoded(table, key, data) if data is not None else default
            if table.view_rule is not None:
                if data is not None:
                    row = group_read(store, table.view_rule, key, row)
                elif row is None:
                    row = no_group(table.view_rule, table.key_parts(pk))
        except Exception as error:  # noqa: BLE001 - a row type's and a check's own code can run here
            raise self._doomed(error) from None
        return self._given("get", row)

    def find(self, index: str, *values: Any) -> Result:
        """The row with these values in the columns of a unique index, or None."""
        self._open()
        try:
            columns = self._table.unique_index(index, values).columns
            conditions = {column.name: value for column, value in zip(columns, values, strict=True)}
            rows = self._selected(self._table.plan(conditions, False, index), conditions, 0, 0)
        except Exception as error:  # noqa: BLE001 - a row type's and a check's own code can run here
            raise self._doomed(error) from None
        return self._given("find", rows[0] if rows else None)

    def insert(self, row: Any, on_conflict: str | None = None, *, ttl: timedelta | None = None) -> Result:
        """Inserts a row and gives it, with the key that the engine made if the table has `auto=`. `ttl`: how long it
        stays if it is not written again, instead of the table's usual time.

        If a row has its primary key: raises `RowExists`, or with `on_conflict="keep"` gives that row and changes
        nothing, or with "replace" replaces it. Raises `CheckViolation`, `UniqueViolation`, `ReferenceViolation` and
        `UnsupportedValue`.
        """
        self._may_write("insert")
        try:
            if on_conflict not in _ON_CONFLICT:
                raise BadQuery(f'on_conflict= is None, "keep" or "replace", got {shown(on_conflict)}')
            inserted = self._statements.insert(self._table, row, on_conflict, self._ttl_us(ttl))
        except Exception as error:  # noqa: BLE001 - a row type's and a check's own code can run here
            raise self._doomed(error) from None
        return self._given("insert", inserted)

    def put(self, row: Any, *, ttl: timedelta | None = None) -> Awaitable[None]:
        """Puts a row in the place of the one with its primary key, if there is one. It reads no row, or with
        `auto="serial"` only this one. `ttl` is as for `insert`. Raises as `insert` does, except for `RowExists`.
        """
        self._may_write("put")
        try:
            self._statements.put(self._table, row, self._ttl_us(ttl))
        except Exception as error:  # noqa: BLE001 - a row type's and a check's own code can run here
            raise self._doomed(error) from None
        return DONE

    def update(self, pk: Any, **changes: Any) -> Result:
        """Gives columns of a row other values, and gives the row; raises `NoSuchRow`, and as `insert` does."""
        self._may_write("update")
        try:
            row = self._statements.update(self._table, pk, changes)
        except Exception as error:  # noqa: BLE001 - a row type's and a check's own code can run here
            raise self._doomed(error) from None
        return self._given("update", row)

    def update_where(self, *given: Any, scan: bool = False, by: str | None = None, **conditions: Any) -> Result:
        """Gives the rows that meet the conditions other values in the columns of a mapping, the first argument, and
        gives these rows as they are then, a list; a mapping behind it has further conditions. Raises as `update` does.
        """
        self._may_write("update_where")
        try:
            changes, where = changes_of(given)
            if where:
                conditions = all_conditions(where, conditions)
            found = self._found(self._table.plan(conditions, scan, by), conditions, False, 0, 0)
            table, statements = self._table, self._statements
            rows = [statements.change(table, key, old, changes) for key, old in found]
        except Exception as error:  # noqa: BLE001 - a row type's and a check's own code can run here
            raise self._doomed(error) from None
        return self._given("update_where", rows)

    def add(self, pk: Any, **deltas: Any) -> Awaitable[None]:
        """Adds numbers to columns of a row without reading them; raises `NoSuchRow`.

        Calls that add to one row do not conflict with each other: the sums are made when their transactions commit, in
        the order of the serial execution. They conflict with those who read the row's values, and who put, update or
        delete it. A column of int, Decimal or float can be added to if it has no index, reference, key, check or
        bound; otherwise raises `BadQuery`. A sum of ints stays within 64 bits, one of Decimals has 100 digits.
        """
        self._may_write("add")
        try:
            self._statements.add(self._table, pk, deltas)
        except Exception as error:  # noqa: BLE001 - a row type's and a check's own code can run here
            raise self._doomed(error) from None
        return DONE

    def append(self, row: Any, *, ttl: timedelta | None = None) -> Result:
        """Inserts a row without a key into a table with `auto="unique"`, and gives it with the key that the engine
        made. It looks for no row with the key, because there is none. `ttl` is as for `insert`; raises as `insert`
        does, except for `RowExists`.
        """
        self._may_write("append")
        try:
            appended = self._statements.append(self._table, row, self._ttl_us(ttl))
        except Exception as error:  # noqa: BLE001 - a row type's and a check's own code can run here
            raise self._doomed(error) from None
        return self._given("append", appended)

    def delete(self, pk: Any) -> Result:
        """Deletes a row, and gives whether it was there; raises `ReferenceViolation`."""
        self._may_write("delete")
        try:
            deleted = self._statements.delete(self._table, self._store.entity + self._table.key_parts(pk))
        except Exception as error:  # noqa: BLE001 - a row type's and a check's own code can run here
            raise self._doomed(error) from None
        return self._given("delete", deleted)

    def delete_where(self, *where: Any, scan: bool = False, by: str | None = None, **conditions: Any) -> Result:
        """Deletes the rows that meet the conditions, and gives how many; raises `ReferenceViolation`."""
        self._may_write("delete_where")
        try:
            if where:
                conditions = all_conditions(where, conditions)
            keys = self._found_keys(self._table.plan(conditions, scan, by), conditions, 0, 0)
            self._statements.delete_existing(self._table, keys)
        except Exception as error:  # noqa: BLE001 - a row type's and a check's own code can run here
            raise self._doomed(error) from None
        return self._given("delete_where", len(keys))

    # Queries -----------------------------------------------------------------------------------------------

    def select(
        self,
        *where: Any,
        first: int = 0,
        last: int = 0,
        scan: bool = False,
        by: str | None = None,
        **conditions: Any,
    ) -> Result:
        """The rows that meet the conditions, a list; with `first` or `last` at most so many, from that end."""
        self._open()
        try:
            if where:
                conditions = all_conditions(where, conditions)
            check_ends(first, last)
            rows = self._selected(self._table.plan(conditions, scan, by), conditions, first, last)
        except Exception as error:  # noqa: BLE001 - a row type's and a check's own code can run here
            raise self._doomed(error) from None
        return self._given("select", rows)

    def keys(
        self,
        *where: Any,
        first: int = 0,
        last: int = 0,
        scan: bool = False,
        by: str | None = None,
        **conditions: Any,
    ) -> Result:
        """The primary keys of the rows that `select` would give. It conflicts only with rows that come or go."""
        self._open()
        try:
            if where:
                conditions = all_conditions(where, conditions)
            check_ends(first, last)
            table = self._table
            keys = self._found_keys(table.plan(conditions, scan, by), conditions, first, last)
            found = [table.primary_key(key) for key in keys]
        except Exception as error:  # noqa: BLE001 - a row type's and a check's own code can run here
            raise self._doomed(error) from None
        return self._given("keys", found)

    def count(self, *where: Any, scan: bool = False, by: str | None = None, **conditions: Any) -> Result:
        """How many rows meet the conditions: one operation, if the index takes them all."""
        self._open()
        try:
            if where:
                conditions = all_conditions(where, conditions)
            plan = self._table.plan(conditions, scan, by)
            if plan.filters:
                number = len(self._found(plan, conditions, False, 0, 0))
            else:
                number = self._store.count(plan.range_of(self._store.entity, conditions, True))
        except Exception as error:  # noqa: BLE001 - a row type's and a check's own code can run here
            raise self._doomed(error) from None
        return self._given("count", number)

    def exists(self, *where: Any, scan: bool = False, by: str | None = None, **conditions: Any) -> Result:
        """Whether a row meets the conditions."""
        self._open()
        try:
            if where:
                conditions = all_conditions(where, conditions)
            plan = self._table.plan(conditions, scan, by)
            found = self._found_keys(plan, conditions, 1, 0)
        except Exception as error:  # noqa: BLE001 - a row type's and a check's own code can run here
            raise self._doomed(error) from None
        return self._given("exists", bool(found))

    def pages(
        self,
        *where: Any,
        size: int = 100,
        after: str | None = None,
        scan: bool = False,
        by: str | None = None,
        **conditions: Any,
    ) -> Result:
        """One page of what `select` would give: a `Page` of at most `size` rows, and the cursor of the next one.

        `after`: the cursor of the page before, with the same conditions.
        """
        self._open()
        try:
            if where:
                conditions = all_conditions(where, conditions)
            check_size(size)
            page = self._page(self._table.plan(conditions, scan, by), conditions, size, after)
        except Exception as error:  # noqa: BLE001 - a row type's and a check's own code can run here
            raise self._doomed(error) from None
        return self._given("pages", page)

    def _page(self, plan: Plan, conditions: Conditions, size: int, after: Any) -> Page[Any]:
        table, index = self._table, plan.index
        behind = LOWEST if after is None else position_of(table, index, after)
        found = self._found(plan, conditions, False, size + 1, 0, behind)
        rows = [row for _, row in found[:size]]
        if len(found) <= size:
            return Page(rows, None)
        key, row = found[size - 1]
        return Page(rows, cursor_of(index, index.position(key, row)))

    def _selected(self, plan: Plan, conditions: Conditions, first: int, last: int) -> list[Any]:
        if plan.filters:
            return [row for _, row in self._found(plan, conditions, False, first, last)]
        store, table = self._store, self._table
        found = store.scan(plan.range_of(store.entity, conditions, False, first, last))
        if table.view_rule is not None:
            return [group_read(store, table.view_rule, key, store.decoded(table, key, data)) for key, data in found]
        unpack = table.row_type.unpack
        try:
            return [unpack(data) for _, data in found]
        except Exception:  # noqa: BLE001 - the careful way reads what another version stored, or raises it again
            return [store.decoded(table, key, data) for key, data in found]

    def _found_keys(self, plan: Plan, conditions: Conditions, first: int, last: int) -> list[RowKey]:
        if plan.filters:
            return [key for key, _ in self._found(plan, conditions, False, first, last)]
        store = self._store
        return [key for key, _ in store.scan(plan.range_of(store.entity, conditions, True, first, last))]

    def _found(
        self,
        plan: Plan,
        conditions: Conditions,
        membership: bool,
        first: int,
        last: int,
        after: Position = LOWEST,
    ) -> list[tuple[RowKey, Any]]:
        """The keys and rows that meet the conditions; what filters is asked of all rows of the range."""
        store, table = self._store, self._table
        ends = (0, 0) if plan.filters else (first, last)
        found = store.scan(plan.range_of(store.entity, conditions, membership, *ends, after))
        rows = [(key, store.decoded(table, key, data)) for key, data in found]
        if table.view_rule is not None:
            rows = [(key, group_read(store, table.view_rule, key, row)) for key, row in rows]
        return plan.filtered(rows, conditions, first, last) if plan.filters else rows

    # Refusals ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        if self._context._left < 0:
            self._context._refuse()

    def _may_write(self, method: str) -> None:
        context = self._context
        if context._left < 0:
            context._refuse()
        if context._spec.read_only:
            raise context._violation(f"rows(…).{method}")
        if self._table.made:
            raise self._doomed(BadQuery(self._not_written(method)))

    def _not_written(self, method: str) -> str:
        view, event = self._table.view_rule, self._table.keeps_event
        if view is not None:
            return f"{view.named} is kept by the engine: rows(…).{method} is for tables; change the rows it counts"
        return (
            f"the rows of event {event!r} are kept by the engine: rows(…).{method} is for tables; ctx.emit adds one, "
            "and it goes when its time has come"
        )

    def _ttl_us(self, ttl: timedelta | None) -> int:
        return NONE_US if ttl is None else row_ttl_us(self._table, ttl)

    def _doomed(self, error: BaseException) -> BaseException:
        return self._context._doomed(error)

    def _given(self, method: str, result: Any) -> Result:
        return self._context._given(result, method, self._table.name)


def check_ends(first: Any, last: Any) -> None:
    """Refuses ends of a query that are no numbers of rows."""
    for name, value in (("first", first), ("last", last)):
        if type(value) is not int or value < 0:
            raise BadQuery(f"{name}= is a number of rows, got {shown(value)}; 0 means all")
    if first and last:
        raise BadQuery("a query gives its first rows or its last ones: first= and last= cannot stand together")


def check_size(size: Any) -> None:
    """Refuses what is no number of rows of a page."""
    if type(size) is not int or size < 1:
        raise BadQuery(f"size= is the number of rows of a page, at least 1, got {shown(size)}")


def over_a_partition(table: Any) -> bool:
    """Whether it is a view whose groups count the rows of all entities of a partition."""
    return type(table) is Table and table.view_rule is not None and table.view_rule.scope == "partition"


def check_table(context: Context, table: Any, operator: str) -> Table:
    """The table; of an event the one that keeps it. Refuses a closed context, and what is no table of `operator` in its
    app.
    """
    if context._left < 0:
        context._refuse()
    if type(table) is not Table:
        return _table_of_event(context, table, operator)
    if table.operator != operator:
        if table.view_rule is not None and table.view_rule.scope != "entity":
            raise context._doomed(BadQuery(f"{table.view_rule.named} is {_READ_BY[table.view_rule.scope]}"))
        raise context._doomed(
            BadQuery(
                f"table {table.full_name} belongs to operator {table.operator!r}: a function of {operator!r} reaches "
                "its rows by a call to a function of that operator"
            )
        )
    if context._env.app.known_tables.get(table.full_name) is not table:
        raise context._doomed(
            BadQuery(
                f"table {table.full_name} is not of the app {context._env.app.name!r}: declare it before App(…) takes "
                "its operator"
            )
        )
    return table


def _table_of_event(context: Context, event: Any, operator: str) -> Table:
    if type(event) is not Event or not operator:  # look-ups and groups of an app know no operator of an event
        raise context._doomed(
            BadQuery(f"ctx.rows takes a table that operator.table(…) gave, got {shown(event)} on {context._entity()}")
        )
    try:
        return context._env.app.kept_table(operator, event)
    except BadArguments as error:
        raise context._doomed(BadQuery(str(error))) from None
