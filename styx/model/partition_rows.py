"""The rows of one declared table that belong to all entities of a partition: `ctx.rows(items)` in a partition function.

It reads only, by partition-wide indexes. Rows are written through their entity: `ctx.rows(items, of=customer)`.
"""

from __future__ import annotations

from collections.abc import Coroutine
from types import GenericAlias
from typing import TYPE_CHECKING, Any

from styx.model.row_store import RowStore
from styx.model.rows import check_ends, check_table
from styx.model.table_names import row_key
from styx.relational.index_range import RowKey
from styx.relational.query import Conditions, Plan, all_conditions
from styx.relational.table import Table

if TYPE_CHECKING:
    from styx.model.context import Context

Result = Coroutine[Any, Any, Any]


class PartitionRows:
    """The rows of one table that belong to the entities of one partition; valid until the function ends.

    Conditions are as those of `Rows`. A partition-wide index must serve them, `Index(…, scope="partition")`; `by` names
    the one to use. Lists are in the order of the index's `order` columns, then of the entities' keys, then of the
    primary keys. Each row that is read counts as an operation.
    """

    __slots__ = ("_context", "_operator", "_store", "_table")

    def __init__(self, context: Context, table: Any, operator: str) -> None:
        self._context = context
        self._operator = context._env.app.operator(operator)
        self._table: Table = check_table(context, table, operator)
        self._store = RowStore(context, context._spec.operator, context._key)

    def __class_getitem__(cls, types: Any) -> Any:
        """`PartitionRows[Item]`: the type of the rows, for type checkers."""
        return GenericAlias(cls, types)

    def __repr__(self) -> str:
        return f"<rows of {self._table.full_name} of {self._store.named()}>"

    def select(self, *where: Any, first: int = 0, last: int = 0, by: str | None = None, **conditions: Any) -> Result:
        """(the entity's key, the row) of the rows that meet the conditions, a list; with `first` or `last` at most so
        many, from that end.
        """
        self._open()
        try:
            if where:
                conditions = all_conditions(where, conditions)
            check_ends(first, last)
            found = self._found(self._table.across.plan(conditions, by), conditions, first, last)
            rows = [(row_key(self._operator, key)[0], row) for key, row in found]
        except Exception as error:  # noqa: BLE001 - a row type's own code can run here
            raise self._doomed(error) from None
        return self._given("select", rows)

    def keys(self, *where: Any, first: int = 0, last: int = 0, by: str | None = None, **conditions: Any) -> Result:
        """(the entity's key, the primary key) of the rows that `select` would give. It conflicts only with rows that
        come or go.
        """
        self._open()
        try:
            if where:
                conditions = all_conditions(where, conditions)
            check_ends(first, last)
            table = self._table
            keys = self._found_keys(table.across.plan(conditions, by), conditions, first, last)
            found = [(row_key(self._operator, key)[0], table.primary_key(key)) for key in keys]
        except Exception as error:  # noqa: BLE001 - a row type's own code can run here
            raise self._doomed(error) from None
        return self._given("keys", found)

    def count(self, *where: Any, by: str | None = None, **conditions: Any) -> Result:
        """How many rows meet the conditions: one operation, if the index takes them all."""
        self._open()
        try:
            if where:
                conditions = all_conditions(where, conditions)
            plan = self._table.across.plan(conditions, by)
            if plan.filters:
                number = len(self._found(plan, conditions, 0, 0))
            else:
                number = self._store.count(plan.range_of(self._store.entity, conditions, True))
        except Exception as error:  # noqa: BLE001 - a row type's own code can run here
            raise self._doomed(error) from None
        return self._given("count", number)

    def exists(self, *where: Any, by: str | None = None, **conditions: Any) -> Result:
        """Whether a row meets the conditions."""
        self._open()
        try:
            if where:
                conditions = all_conditions(where, conditions)
            found = self._found_keys(self._table.across.plan(conditions, by), conditions, 1, 0)
        except Exception as error:  # noqa: BLE001 - a row type's own code can run here
            raise self._doomed(error) from None
        return self._given("exists", bool(found))

    def _found_keys(self, plan: Plan, conditions: Conditions, first: int, last: int) -> list[RowKey]:
        if plan.filters:
            return [key for key, _ in self._found(plan, conditions, first, last)]
        store = self._store
        return [key for key, _ in store.scan(plan.range_of(store.entity, conditions, True, first, last))]

    def _found(self, plan: Plan, conditions: Conditions, first: int, last: int) -> list[tuple[RowKey, Any]]:
        """The keys and rows that meet the conditions; what filters is asked of all rows of the range."""
        store, table = self._store, self._table
        ends = (0, 0) if plan.filters else (first, last)
        found = store.scan(plan.range_of(store.entity, conditions, False, *ends))
        rows = [(key, store.decoded(table, key, data)) for key, data in found]
        return plan.filtered(rows, conditions, first, last) if plan.filters else rows

    def _open(self) -> None:
        if self._context._left < 0:
            self._context._refuse()

    def _doomed(self, error: BaseException) -> BaseException:
        return self._context._doomed(error)

    def _given(self, method: str, result: Any) -> Result:
        return self._context._given(result, method, self._table.name)
