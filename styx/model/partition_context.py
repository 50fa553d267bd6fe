"""The context of a partition function: what it may do with the entities of its partition.

It has no entity, hence no state of its own. It may call entities of its own partition only. So the calls of all
partitions touch different entities, and their order does not matter.
"""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Any, Final, overload
from uuid import UUID

from styx.errors import OtherPartition
from styx.model.entity_handle import EntityOfContext, entity_of
from styx.model.partition_rows import PartitionRows
from styx.model.rows import Rows, over_a_partition
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.context import Context
    from styx.model.function_log import FunctionLog
    from styx.model.operator import Operator
    from styx.relational.table import Table

_ALL: Final = object()


class PartitionContext:
    """One invocation of one function on one partition; valid until the function ends, as a `Context`."""

    __slots__ = ("_context",)

    def __init__(self, context: Context) -> None:
        self._context = context

    def __repr__(self) -> str:
        return f"<context of partition {self.partition} of {self.operator}>"

    @property
    def partition(self) -> int:
        """The partition's number, from 0."""
        number: int = self._context.key
        return number

    @property
    def operator(self) -> str:
        """Name of the operator whose partition it is."""
        return self._context.operator[:-1]

    @property
    def transaction_id(self) -> int:
        """The transaction's TID."""
        return self._context.transaction_id

    def holds(self, key: Any) -> bool:
        """Whether the operator's entity with this key is of this partition; raises `BadKey`."""
        context = self._context
        declared = context._env.app.operator(self.operator)
        try:
            return declared.partition_of(declared.check_key(key), context._env.n_slots) == self.partition
        except BaseException as error:  # noqa: BLE001 - a key's own code can run here
            raise context._doomed(error) from None

    # Rows --------------------------------------------------------------------------------------------------

    @overload
    def rows(self, table: Table) -> PartitionRows: ...

    @overload
    def rows(self, table: Table, *, of: Any) -> Rows: ...

    def rows(self, table: Table, *, of: Any = _ALL) -> PartitionRows | Rows:
        """The rows of all the partition's entities in a table of the operator, to be read by partition-wide indexes:
        `await ctx.rows(items).select(product=7)`. With `of=` those of one entity, to be read and written.

        Of a view with `scope="partition"`: its groups, as `Context.rows` gives those of an entity.
        Raises `OtherPartition` for an entity of another partition.
        """
        context = self._context
        if of is _ALL:
            if over_a_partition(table):
                return Rows(context, table, context.operator, context.key)
            return PartitionRows(context, table, self.operator)
        if not self.holds(of):
            raise context._doomed(
                OtherPartition(
                    f"{self._where()} asked for rows of {self.operator}[{shown(of)}], which is not of this partition: "
                    "ask ctx.holds(key), or call that entity from the caller of ctx.call_all"
                )
            )
        return Rows(context, table, self.operator, context._env.app.operator(self.operator).check_key(of))

    def find(self, table: Table, index: str, *where: Any, **values: Any) -> Any:
        """Raises `OtherPartition`: the entries of an app-wide index are wherever the value says."""
        raise self._context._doomed(
            OtherPartition(
                f"{self._where()} used ctx.find, which calls the entity that keeps a value's entries, on any slot: "
                "find in the caller of ctx.call_all, and give the result as an argument"
            )
        )

    # Calls -------------------------------------------------------------------------------------------------

    def call(
        self, operator: Operator | str, function_name: Any, key: Any, params: Any = ()
    ) -> Coroutine[Any, Any, Any]:
        """As `Context.call`, for an entity of this partition; raises `OtherPartition` for another one."""
        self._check_here(operator, key)
        return self._context.call(operator, function_name, key, params)

    def call_async(self, operator: Operator | str, function_name: Any, key: Any, params: Any = ()) -> None:
        """As `Context.call_async`, for an entity of this partition; raises `OtherPartition` for another one."""
        self._check_here(operator, key)
        self._context.call_async(operator, function_name, key, params)

    def at(self, operator: Any, key: Any = None) -> EntityOfContext:
        """As `Context.at`, for an entity of this partition."""
        return EntityOfContext(self, *entity_of(operator, key))

    def _check_here(self, operator: Operator | str, key: Any) -> None:
        """Refuses an entity of another partition.

        Equal numbers of partitions, not equal slots: how many slots there are is the deployment's choice, and must not
        decide what a function may do.
        """
        context = self._context
        app, n_slots = context._env.app, context._env.n_slots
        try:
            declared = app.operator(operator)
            partition = declared.partition_of(declared.check_key(key), n_slots)
            if partition == self.partition and declared.n_partitions == app.operator(self.operator).n_partitions:
                return
            raise OtherPartition(
                f"{self._where()} called {declared.name}[{shown(key)}], which is not of this partition. A partition "
                f"function calls entities of its own partition only: those of {self.operator!r} whose partition is "
                f"ctx.partition, and those of operators with as many partitions. Give the result to the caller of "
                "ctx.call_all, and call from there"
            )
        except BaseException as error:  # noqa: BLE001 - a key's own code can run here
            raise context._doomed(error) from None

    # Deterministic facts -----------------------------------------------------------------------------------

    def now(self) -> datetime:
        """As `Context.now`."""
        return self._context.now()

    def random(self) -> Random:
        """As `Context.random`; every partition has another generator."""
        return self._context.random()

    def uuid(self) -> UUID:
        """As `Context.uuid`."""
        return self._context.uuid()

    def unique_id(self) -> str:
        """As `Context.unique_id`."""
        return self._context.unique_id()

    @property
    def log(self) -> FunctionLog:
        """As `Context.log`."""
        return self._context.log

    # Refusals ----------------------------------------------------------------------------------------------

    def _where(self) -> str:
        return f"partition function {self.operator}.{self._context._spec.name} on partition {self.partition}"

    def _doomed(self, error: BaseException) -> BaseException:
        return self._context._doomed(error)
