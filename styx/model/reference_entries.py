"""The entries of a reference to other entities: for each row that refers to a parent one row on the parent's slot.

A change of a child implies a call to the parent's entity (`styx.model.consequence`). The call looks whether the parent
is there, and adds the child's entry or takes it away. The deletion of a parent reads the parent's entries, a range, and
implies what the reference says: calls to the children's entities, or a second look at the entries.

Implied calls run behind the chain that implied them, and those of one child not always in the order of its changes. So
an entry counts: it is there if its count is not 0, and between two calls the count may be 2, or below 0. When the
transaction ends, it is 1 for each row that refers to the parent, and no other entry is left. A deletion that meets no
entry of a child, although that refers to the parent, has the child's call behind it, which finds no parent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from styx.errors import ReferenceViolation, RowLimitExceeded
from styx.model.consequence import Consequence, ImpliedCall
from styx.model.internal_operator import INTERNAL_MARK, InternalOperator
from styx.model.lifetime import value_deleted
from styx.model.partitioning import KeySpace
from styx.model.row_statements import RowStatements
from styx.model.row_store import RowStore
from styx.relational.foreign_reference import ForeignReference, entity_key
from styx.relational.index_range import TOP, IndexRange, RowKey
from styx.relational.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from styx.model.context import Context
    from styx.model.operator import Operator

_TIMES: Final = "times"
"""The column of an entry that counts."""


class ReferenceEntries(Consequence):
    """The entries of one reference, and the engine-made functions at its parents and at its children.

    `table`: an entry's key is the parent's whole key, then the child's. `at_parent` and `at_child` have the entities of
    the parents' operator and of the children's, on the same slots.
    """

    __slots__ = ("_entry", "at_child", "at_parent", "reference", "table")

    def __init__(self, reference: ForeignReference) -> None:
        child, parent = reference.child, reference.parent
        columns = ",".join(column.name for column in reference.columns)
        own = "" if reference.parent_table is None else f"{reference.parent_table.name}:"
        self.reference = reference
        self.at_parent = _beside(parent, f"{own}{child.operator}.{child.name}({columns})")
        self.at_child = _beside(child.owner, f"{child.name}({columns}):{own}{parent.name}")
        for function in (self.add, self.take, self.require, self.restrict):
            self.at_parent.register(function)
        self.at_child.register(self.follow)
        parts = [] if reference.parent_table is None else _types(reference.parent_table)
        parts += [*_key_types(child.owner), *_types(child)]
        names = [(f"part_{number}", kind) for number, kind in enumerate(parts)]
        self._entry = msgspec.defstruct("Entry", [*names, (_TIMES, int)], array_like=True)
        self.table = self.at_parent.table("entries", self._entry, key=tuple(name for name, _ in names))

    # At the child --------------------------------------------------------------------------------------------

    def calls(self, key: RowKey, old: Any, new: Any) -> Iterable[ImpliedCall]:
        """As `Consequence.calls`: for what the row referred to, and for what it refers to now."""
        reference = self.reference
        before = None if old is None else reference.parent_key(old)
        after = None if new is None else reference.parent_key(new)
        if before == after:
            return ()
        made = []
        if before is not None:
            made.append(self._call("take", before, key))
        if after is not None:
            made.append(self._call("add", after, key))
        return made

    def minds(self, column: str) -> bool:
        """As `Consequence.minds`."""
        return any(each.name == column for each in self.reference.columns)

    def _call(self, function: str, parent: RowKey, child: RowKey) -> ImpliedCall:
        reference = self.reference
        row = list(parent[reference.entity_parts :])
        return ImpliedCall(self.at_parent, function, reference.entity(parent), (row, list(child)))

    @property
    def entries(self) -> Table:
        """As `Consequence.entries`."""
        return self.table

    def derived(self, rows: Iterable[tuple[RowKey, bytes]]) -> dict[RowKey, bytes]:
        """As `Consequence.derived`."""
        reference, decode, encode = self.reference, self.reference.child.row_type.decode, self.table.row_type.encode
        made: dict[RowKey, bytes] = {}
        for child, data in rows:
            parent = reference.parent_key(decode(data))
            if parent is not None:
                place = parent + child
                made[place] = encode(self._entry(*place[reference.entity_parts :], 1))
        return made

    async def follow(self, ctx: Any, parent: list[Any], keys: list[Any]) -> None:
        """Does with those of an entity's rows that still refer to a deleted parent what the reference says."""
        reference, table = self.reference, self.reference.child
        store = RowStore(ctx, table.operator, ctx.key)
        statements = RowStatements(store)
        gone = tuple(parent)
        deleted: list[RowKey] = []
        for own_key in keys:
            key = store.entity + tuple(own_key)
            data = store.read(table, key)
            old = None if data is None else store.decoded(table, key, data)
            if old is None or reference.parent_key(old) != gone:
                continue
            if reference.on_delete == "cascade":
                deleted.append(key)
                continue
            new = statements.change(table, key, old, reference.defaults)
            if reference.parent_key(new) == gone:
                self._require_again(ctx, gone, key)
        statements.delete_existing(table, deleted)

    def _require_again(self, context: Any, parent: RowKey, child: RowKey) -> None:
        """The default of a row refers to the parent that was deleted: it must be there again."""
        _imply(context, self._call("require", parent, child))

    # At the parent -------------------------------------------------------------------------------------------

    async def add(self, ctx: Any, row: list[Any], child: list[Any]) -> None:
        """Adds the entry of a row that refers to a parent; raises `ReferenceViolation` if the parent is not there."""
        await self.require(ctx, row, child)
        await self._count(ctx, row, child, 1)

    async def take(self, ctx: Any, row: list[Any], child: list[Any]) -> None:
        """Takes the entry of a row away."""
        await self._count(ctx, row, child, -1)

    async def require(self, ctx: Any, row: list[Any], child: list[Any]) -> None:
        """Raises `ReferenceViolation` if a row's parent is not there."""
        reference = self.reference
        store = RowStore(ctx, reference.parent.name, ctx.key)
        if not self._is_there(store, tuple(row)):
            parent = reference.parent_text(store.entity + tuple(row))
            cure = "call a function of it that puts a value" if reference.parent_table is None else "insert that row"
            raise ReferenceViolation(
                f"{reference.child_text(tuple(child))} refers to {parent}, which does not exist: {cure} first, or in "
                f"the same transaction ({reference.name})"
            )

    def _is_there(self, store: RowStore, row: RowKey) -> bool:
        table = self.reference.parent_table
        if table is None:
            return store.read_value() is not None
        return store.count(IndexRange(table.indexes[0], store.entity, row, (*row, TOP), True)) > 0

    async def _count(self, ctx: Any, row: list[Any], child: list[Any], more: int) -> None:
        rows, place = ctx.rows(self.table), (*row, *child)
        entry = await rows.get(place)
        times = more + (0 if entry is None else getattr(entry, _TIMES))
        if times:
            await rows.put(self._entry(*place, times))
        else:
            await rows.delete(place)

    def parent_deleted(self, context: Context, parent: RowKey) -> None:
        """Implies what becomes of the rows that refer to a parent, which the function has just deleted.

        Whether a reference restricts the deletion is asked again behind the chain: what the transaction has deleted
        before the parent restricts nothing, although its entries are still there.
        """
        reference = self.reference
        if reference.on_delete == "restrict":
            if self._entries(context, parent, 1):
                row = list(parent[reference.entity_parts :])
                _imply(context, ImpliedCall(self.at_parent, "restrict", reference.entity(parent), (row,)))
            return
        by_entity: dict[RowKey, list[RowKey]] = {}
        parts = reference.child.entity_parts
        for child in self._referring(context, parent, 0):
            by_entity.setdefault(child[:parts], []).append(child[parts:])
        for entity, keys in by_entity.items():
            owner = entity_key(reference.child.owner, entity)
            _imply(context, ImpliedCall(self.at_child, "follow", owner, (list(parent), keys)))

    async def restrict(self, ctx: Any, row: list[Any]) -> None:
        """Raises `ReferenceViolation` if a row refers to a parent that has been deleted."""
        reference = self.reference
        parent = (*RowStore(ctx, self.at_parent.name, ctx.key).entity, *row)
        # Nearly always the first entry decides. It is of no row only between two calls of one transaction.
        children = self._referring(ctx, parent, 1) or self._referring(ctx, parent, 0)
        if children:
            raise ReferenceViolation(
                f"{reference.parent_text(parent)} cannot be deleted: {reference.child_text(children[0])} refers to it; "
                f"delete that row first, or declare another on_delete= ({reference.name})"
            )

    def _referring(self, context: Context, parent: RowKey, first: int) -> list[RowKey]:
        """The keys of the rows that refer to a parent, by its entries: all, or those of its first ones."""
        try:
            found = self._entries(context, parent, first)
        except RowLimitExceeded:
            limit = context._env.limits.rows_per_query_max
            raise RowLimitExceeded(
                f"{self.reference.parent_text(parent)} cannot be deleted: more than {limit} rows refer to it, which is "
                f"Limits.rows_per_query_max; delete most of them before ({self.reference.name})"
            ) from None
        decode = self.table.row_type.decode
        return [key[len(parent) :] for key, data in found if getattr(decode(data), _TIMES) > 0]

    def _entries(self, context: Context, parent: RowKey, first: int) -> list[tuple[RowKey, bytes]]:
        parts = self.reference.entity_parts
        store, row = RowStore(context, self.at_parent.name, self.reference.entity(parent)), parent[parts:]
        return store.scan(IndexRange(self.table.indexes[0], parent[:parts], row, (*row, TOP), first=first))


def _imply(context: Any, call: ImpliedCall) -> None:
    context.call_async(*call)


def delete_referred(context: Context) -> None:
    """Deletes a value to which rows may refer or that lives for a time, unless the function only reads."""
    spec, key = context._spec, context._key
    if spec.read_only:
        raise context._violation("delete")
    context._cell.write(context._chain, None)
    if spec.ttl_us:
        value_deleted(context)
    try:
        for entries in context._env.app.operator(spec.operator).referrers:
            entries.parent_deleted(context, key if isinstance(key, tuple) else (key,))
    except Exception as error:  # noqa: BLE001 - it dooms the transaction, whatever it is
        raise context._doomed(error) from None


def connect(table: Table) -> None:
    """Gives a table's references to other entities their entries, at both ends."""
    for reference in table.foreign:
        entries = ReferenceEntries(reference)
        table.consequences.append(entries)
        table.owner.internal.append(entries.at_child)
        reference.parent.internal.append(entries.at_parent)
        if reference.parent_table is None:
            reference.parent.add_referrer(entries)
        else:
            reference.parent_table.referrers = in_order(reference.parent_table.referrers, entries)


def in_order(referrers: list[ReferenceEntries], more: ReferenceEntries) -> list[ReferenceEntries]:
    """In an order that does not depend on that of the declarations, which a package may change: calls follow it."""
    return sorted([*referrers, more], key=lambda entries: entries.at_parent.name)


def _beside(operator: Operator, name: str) -> InternalOperator:
    """An internal operator with the entities of an operator, each on the same slot."""
    spread, name = operator.key_space, f"{operator.name}{INTERNAL_MARK}{name}"
    key_type = operator.key_type
    space = KeySpace(name, key_type, operator.n_partitions, spread.partition_key)
    made = InternalOperator(name, key_type.scalar or key_type.parts, space)
    made.n_partitions = operator.n_partitions
    return made


def _key_types(operator: Operator) -> list[type]:
    """The types of the parts of an operator's keys."""
    key_type = operator.key_type
    return [key_type.scalar] if key_type.scalar is not None else list(key_type.parts)


def _types(table: Table) -> list[type]:
    """The types of the parts of a table's primary keys, as keys hold them."""
    return [column.kind.compared_as for column in table.key if column.kind is not None]
