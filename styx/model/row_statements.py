"""The statements that change rows, with the constraints of their tables, which each checks before it writes.

A change of a row also makes the calls that its table's consequences give (`styx.model.consequence`), and adds to the
table's views. Deleting a row also does what the references to it say. Whether a reference restricts the deletion is
asked at the end, so that a row which the same statement deletes restricts nothing.
"""

from __future__ import annotations

from typing import Any

from styx.errors import BadQuery, NoSuchRow, ReferenceViolation, RowExists, UniqueViolation
from styx.model.group_rows import add_share
from styx.model.lifetime import AS_BEFORE, keep_life
from styx.model.row_store import RowStore
from styx.relational.index_range import TOP, IndexRange, RowKey
from styx.relational.reference import Reference
from styx.relational.row_indexes import ColumnIndex
from styx.relational.table import Table
from styx.relational.time_to_live import NONE_US
from styx.values.codec import shown


class RowStatements:
    """The changes that one function call makes to rows of its entity, in any of its operator's tables."""

    __slots__ = ("_store",)

    def __init__(self, store: RowStore) -> None:
        self._store: RowStore = store

    # One row -----------------------------------------------------------------------------------------------

    def insert(self, table: Table, row: Any, on_conflict: str | None, ttl_us: int = NONE_US) -> Any:
        """Inserts a row and gives it, with the key that the engine made; or keeps or replaces the one that is there.
        `ttl_us`: how long the row lives, 0 for the table's usual time; here and below.
        """
        store = self._store
        numbered = False  # by whoever gave the row
        if table.auto is not None:
            row, made = self._with_key(table, row)
            numbered = table.auto == "serial" and not made
        data = table.row_type.encode(row)
        key = store.entity + table.parts_of(row)
        old = store.read(table, key)
        if old is not None:
            if on_conflict == "keep":
                return store.decoded(table, key, old)
            if on_conflict is None:
                raise RowExists(
                    f"{self._named(table, key)} exists already: use put, or insert(…, on_conflict=…) to keep or "
                    "replace it, or a load with replace=True"
                )
        elif numbered:
            store.pass_serial(table, getattr(row, table.key[0].name))
        self._write(table, key, row, data, None, None, ttl_us, old is None)
        return row

    def put(self, table: Table, row: Any, ttl_us: int = NONE_US) -> None:
        """Puts a row in the place of the one with its key, if there is one."""
        store = self._store
        numbered = False
        if table.auto is not None:
            row, made = self._with_key(table, row)
            numbered = table.auto == "serial" and not made
        data = table.row_type.encode(row)
        key = store.entity + table.parts_of(row)
        if numbered and store.read(table, key) is None:
            # Not for a row that is there: its number has been passed, and a change of it conflicts with no insert.
            store.pass_serial(table, getattr(row, table.key[0].name))
        self._write(table, key, row, data, None, None, ttl_us)

    def update(self, table: Table, pk: Any, changes: dict[str, Any]) -> Any:
        """Changes columns of a row and gives the row."""
        store = self._store
        key = store.entity + table.key_parts(pk)
        data = store.read(table, key)
        if data is None:
            raise NoSuchRow(f"{self._named(table, key)} does not exist: insert it, or use put")
        old = store.decoded(table, key, data)
        return self.change(table, key, old, changes)

    def change(self, table: Table, key: RowKey, old: Any, changes: dict[str, Any]) -> Any:
        """Changes columns of the row `old`, which has that key, and gives the row."""
        row = table.row_type.changed(old, changes)
        if table.keeps_key(changes):
            self._write(table, key, row, table.row_type.encode(row), old)
        else:
            self._replace(table, key, old, row)
        return row

    def add(self, table: Table, pk: Any, deltas: dict[str, Any]) -> None:
        """Adds to columns of a row without reading them."""
        store = self._store
        key = store.entity + table.key_parts(pk)
        if not store.add(table, key, table.increment(deltas)):
            raise NoSuchRow(f"{self._named(table, key)} does not exist: insert it before something is added to it")

    def append(self, table: Table, row: Any, ttl_us: int = NONE_US) -> Any:
        """Inserts a row with a key that the engine makes, and gives it. No row can have the key, so none is read."""
        if table.auto != "unique":
            serial = "a serial number is a read of the one before" if table.auto else "the engine makes no keys for it"
            raise BadQuery(
                f'rows(…).append is for tables with auto="unique", and {table.full_name} has none: {serial}; use insert'
            )
        row, made = self._with_key(table, row)
        data = table.row_type.encode(row)
        if not made:
            raise BadQuery(
                f"rows(…).append to table {table.full_name} makes the key, and the row has one already: leave "
                f"{table.key[0].name}= out, or use insert"
            )
        self._write(table, self._store.entity + table.parts_of(row), row, data, None, None, ttl_us, True)
        return row

    def delete(self, table: Table, key: RowKey) -> bool:
        """Deletes a row, and says whether it was there."""
        if self._store.read(table, key) is None:
            return False
        self.delete_existing(table, [key])
        return True

    def _with_key(self, table: Table, row: Any) -> tuple[Any, bool]:
        """The row with a key that the engine makes, and True, if it has none yet."""
        column = table.key[0].name
        if type(row) is not table.row_type.declared or getattr(row, column) != table.auto_default:
            return row, False
        store = self._store
        made = store.context.unique_id() if table.auto == "unique" else store.next_serial(table)
        return table.row_type.changed(row, {column: made}), True

    def _change(
        self,
        table: Table,
        key: RowKey,
        data: bytes | None,
        ttl_us: int = AS_BEFORE,
        old: Any = None,
        is_new: bool = False,
        row: Any = None,
    ) -> None:
        """Writes a row that meets all constraints or, with None, deletes it; with all that this implies elsewhere.
        `old`, `is_new`: as for `_write`. `row`: the row of which `data` are the bytes.
        """
        if table.consequences or table.views:
            self._imply(table, key, data, old, is_new, row)
        self._store.write(table, key, data)
        if table.fades:
            keep_life(self._store, table, key, data is None, ttl_us)

    def _imply(self, table: Table, key: RowKey, data: bytes | None, old: Any, is_new: bool, row: Any) -> None:
        """What the row was and what it is to be are as decoding their bytes gives them, so that an index or a view that
        is made anew finds the same. What the statement has read already is not read again, unless code of the row type
        has run since, which may have changed it.
        """
        store = self._store
        if not is_new and (old is None or not table.row_type.changes_alone):
            before = store.read(table, key)
            old = None if before is None else store.decoded(table, key, before)
        new = None
        if data is not None:
            new = row if table.sees_as_stored(row) else store.decoded(table, key, data)
        context = store.context
        for view in table.views:
            if view.scope != "app":  # else it is a consequence
                for share in view.shares(old, new):
                    place = store.entity
                    if view.scope == "partition":
                        place = (table.partition_of(store.entity, context._env.n_slots),)
                    add_share(store, view, place, share.group, share)
        for consequence in table.consequences:
            for call in consequence.calls(key, old, new):
                context.call_async(call.operator, call.function, call.key, call.params)

    # Constraints -------------------------------------------------------------------------------------------

    def _write(
        self,
        table: Table,
        key: RowKey,
        row: Any,
        data: bytes,
        old: Any = None,
        broken: Reference | None = None,
        ttl_us: int = AS_BEFORE,
        is_new: bool = False,
    ) -> None:
        """Writes an encoded row that meets all constraints.

        `old`: the row in whose place it comes, as stored; its constraints held, so what did not change need not be
        asked again. Without it, `is_new` says that no row is there; else nobody has looked.
        `broken`: a reference of the row whose parent has gone; the row may have the default already.
        """
        if not table.constrained:
            self._change(table, key, data, ttl_us, old, is_new, row)
            return
        row = table.as_stored(row, data)
        if table.checks or table.delicate:
            table.check(row, data)
        for index in table.unique:
            if old is None or index.values(old) != index.values(row):
                self._check_unique(table, index, key, row)
        for reference in table.references:
            if old is None or reference is broken or reference.parent_key(old) != reference.parent_key(row):
                self._check_parent(table, reference, key, row)
        self._change(table, key, data, ttl_us, old, is_new, row)

    def _replace(self, table: Table, key: RowKey, old: Any, row: Any, broken: Reference | None = None) -> None:
        """As `_write`, of a row that must have the key of `old`."""
        data = table.row_type.encode(row)
        if self._store.entity + table.parts_of(row) != key:
            raise BadQuery(
                f"{self._named(table, key)}: its primary key cannot be changed; delete it and insert it anew"
            )
        self._write(table, key, row, data, old, broken)

    def _check_unique(self, table: Table, index: ColumnIndex, key: RowKey, row: Any) -> None:
        """Reads whether another row has the place in a unique index, which has one row at most."""
        for column in index.columns:
            if getattr(row, column.name) is None:
                return
        store = self._store
        group, position = index.values(row)
        wanted = IndexRange(index, store.entity + group, position, (*position, TOP), True)
        for other, _ in store.scan(wanted):
            if other != key:
                values = ", ".join(f"{column.name}={shown(getattr(row, column.name))}" for column in index.columns)
                raise UniqueViolation(
                    f"{self._named(table, key)}: {shown(table.primary_key(other))} has {values} already, which is "
                    f"unique by index {index.name!r}"
                )

    def _check_parent(self, table: Table, reference: Reference, key: RowKey, row: Any) -> None:
        """Reads whether the row that a row refers to is there. A row may refer to itself."""
        store = self._store
        parts = reference.parent_key(row)
        if parts is None or (reference.parent is table and store.entity + parts == key):
            return
        if not store.has(reference.parent, parts):
            values = ", ".join(f"{column.name}={shown(getattr(row, column.name))}" for column in reference.columns)
            raise ReferenceViolation(
                f"{self._named(table, key)} refers by {values} to no row of {reference.parent.full_name}: insert that "
                "row first"
            )

    # Deletion ----------------------------------------------------------------------------------------------

    def delete_existing(self, table: Table, keys: list[RowKey]) -> None:
        """Deletes rows that are there, and does with the rows that refer to them what their references say.

        First all that go, then what is set: a row that goes as well breaks no rule of a row that stays.
        """
        for key in keys:
            self._change(table, key, None)
        if not table.referenced_by and not table.referrers:
            return
        deleted = [(table, key) for key in keys]
        restricted: list[tuple[Reference, RowKey]] = []
        set_free: list[tuple[Reference, RowKey]] = []
        while deleted:
            parent, key = deleted.pop()
            for entries in parent.referrers:
                entries.parent_deleted(self._store.context, key)
            for reference in parent.referenced_by:
                if reference.on_delete == "cascade":
                    deleted += self._cascade(reference, key)
                elif reference.on_delete == "restrict":
                    restricted.append((reference, key))
                else:
                    set_free.append((reference, key))
        for reference, key in set_free:
            self._set_children(reference, key)
        for reference, key in restricted:
            self._check_restrict(reference, key)

    def _cascade(self, reference: Reference, key: RowKey) -> list[tuple[Table, RowKey]]:
        """Deletes the rows that refer to a deleted one, and gives them."""
        child = reference.child
        found = self._children(reference, key)
        for child_key, _ in found:
            self._change(child, child_key, None)
        return [(child, child_key) for child_key, _ in found]

    def _set_children(self, reference: Reference, key: RowKey) -> None:
        """Sets the columns of the rows that refer to a deleted one."""
        store, child = self._store, reference.child
        for child_key, data in self._children(reference, key):
            old = store.decoded(child, child_key, data)
            self._replace(child, child_key, old, child.row_type.changed(old, reference.defaults), reference)

    def _children(self, reference: Reference, key: RowKey) -> list[tuple[RowKey, bytes]]:
        store = self._store
        return store.scan(reference.children_of(store.entity, key[reference.parent.entity_parts :], False))

    def _check_restrict(self, reference: Reference, key: RowKey) -> None:
        store, child = self._store, reference.child
        parent = reference.parent
        for child_key, _ in store.scan(reference.children_of(store.entity, key[parent.entity_parts :], True, 1)):
            raise ReferenceViolation(
                f"{self._named(parent, key)} cannot be deleted: row {shown(child.primary_key(child_key))} of table "
                f"{child.full_name} refers to it; delete that row first, or declare another on_delete="
            )

    def _named(self, table: Table, key: RowKey) -> str:
        return f"row {shown(table.primary_key(key))} of table {table.full_name} of {self._store.named()}"
