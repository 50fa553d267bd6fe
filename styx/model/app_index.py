"""App-wide indexes: entries on the slot of their value, kept by the transaction that changes the row.

The entities of an index's internal operator are the values; each has a row for every row of the table that has the
value. So a look-up is a call of one function on one entity, in conflict with whatever comes to that value or leaves it,
and serializable as every call. An entry counts how often its row has come to the value more than it has left it: 1, but
amid a transaction whose calls run in another order than its writes; what is 0 is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from styx.errors import BadKey, BadQuery, UniqueViolation, UnsupportedValue
from styx.model.consequence import Consequence, ImpliedCall
from styx.model.internal_operator import INTERNAL_MARK, InternalOperator
from styx.model.limits import KEY_BYTES_MAX
from styx.relational.app_wide import AppWideIndex
from styx.relational.index_range import RowKey
from styx.relational.table import Table
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.context import Context
    from styx.model.partitioning import Key, KeyType

CHANGE: Final = "change"
OWNERS: Final = "owners"
ENTRIES: Final = "entries"


class AppIndex(Consequence):
    """The entries of one app-wide index, `declared`, of a table whose entities have keys of `key_type`."""

    __slots__ = ("_entries", "_key_type", "_table", "declared", "operator")

    def __init__(self, table: Table, declared: AppWideIndex, key_type: KeyType) -> None:
        self._table = table
        self._key_type = key_type
        self.declared = declared
        columns = ",".join(column.name for column in declared.columns)
        name = INTERNAL_MARK.join([table.operator, table.name, f"{declared.name}({columns})"])
        kinds = tuple([column.kind.compared_as for column in declared.columns if column.kind is not None])
        self.operator = InternalOperator(name, kinds if len(kinds) > 1 else kinds[0])
        owner = key_type.parts or (key_type.scalar,)
        own = [column.kind.compared_as for column in table.key if column.kind is not None]
        fields = [(f"part{number}", kind) for number, kind in enumerate([*owner, *own])]
        row_type = msgspec.defstruct("Entry", [*fields, ("net", int)], array_like=True)
        self._entries = entries = self.operator.table(ENTRIES, row_type, key=tuple(name for name, _ in fields))
        self._register(entries, row_type)

    def _register(self, entries: Any, row_type: Any) -> None:

        async def change(ctx: Context, key: list[Any], by: int) -> None:
            """A row has come to this value, by 1, or left it, by -1."""
            rows = ctx.rows(entries)
            entry = await rows.get(tuple(key))
            net = _counted(entry, by)
            if net > 0 and self.declared.unique:
                other = _other(await rows.select(scan=True), tuple(key))
                if other is not None:
                    raise self._violation(ctx.key, tuple(key), other)
            if net:
                await rows.put(row_type(*key, net))
            else:
                await rows.delete(tuple(key))

        async def owners(ctx: Context, first: int, last: int) -> list[Any]:
            """The keys of the rows that have this value, in order."""
            rows = ctx.rows(entries)
            found = await rows.select(scan=True, first=first, last=last)
            if any(entry.net < 1 for entry in found):
                there = [entry for entry in await rows.select(scan=True) if entry.net > 0]
                found = there[:first] if first else there[-last:] if last else there
            return [_key_of(entry) for entry in found]

        self.operator.register(change)
        self.operator.register(owners, read_only=True)

    # Changes -----------------------------------------------------------------------------------------------

    def calls(self, key: RowKey, old: Any, new: Any) -> Iterable[ImpliedCall]:
        """As `Consequence.calls`; raises `UnsupportedValue` for a value that no entity can have as its key."""
        before = None if old is None else self.declared.value_of(old)
        after = None if new is None else self.declared.value_of(new)
        if before == after:
            return []
        calls = []
        for value, by in ((before, -1), (after, 1)):
            if value is not None:
                calls.append(ImpliedCall(self.operator, CHANGE, self.entity_of(value), (key, by)))
        return calls

    def entity_of(self, value: RowKey) -> Key:
        """The entity that keeps the entries of a value; raises `UnsupportedValue`."""
        try:
            return self.operator.check_key(value if len(value) > 1 else value[0])
        except BadKey:
            raise UnsupportedValue(
                f"table {self._table.full_name}: {self.declared.text_of(value)} has no place in the app-wide index "
                f"{self.declared.name!r}, where a text has at most {KEY_BYTES_MAX} bytes and a number 64 bits"
            ) from None

    def _violation(self, entity: Any, key: RowKey, other: RowKey) -> UniqueViolation:
        value = entity if type(entity) is tuple else (entity,)
        return UniqueViolation(
            f"{self.named(key)}: {self.named(other)} has {self.declared.text_of(value)} already, which is unique in "
            f"the app by index {self.declared.name!r}"
        )

    def named(self, key: RowKey) -> str:
        """As messages name a row."""
        entity, primary_key = self.owner(key)
        table = self._table
        return f"row {shown(primary_key)} of table {table.full_name} of {table.operator}[{shown(entity)}]"

    # Look-ups ----------------------------------------------------------------------------------------------

    def owner(self, key: RowKey) -> tuple[Any, Any]:
        """(the entity's key, the primary key) of a row's key."""
        entity: Any = key[: self._table.entity_parts]
        return entity if self._key_type.parts else entity[0], self._table.primary_key(key)

    def minds(self, column: str) -> bool:
        """As `Consequence.minds`."""
        return any(each.name == column for each in self.declared.columns)

    # As state ----------------------------------------------------------------------------------------------

    @property
    def entries(self) -> Table:
        """As `Consequence.entries`."""
        return self._entries

    def derived(self, rows: Iterable[tuple[RowKey, bytes]]) -> dict[RowKey, bytes]:
        """As `Consequence.derived`."""
        decode, encode = self._table.row_type.decode, self._entries.row_type.encode
        declared, row_type = self.declared, self._entries.row_type.declared
        made: dict[RowKey, bytes] = {}
        for key, data in rows:
            value = declared.value_of(decode(data))
            if value is not None:
                made[value + key] = encode(row_type(*key, 1))
        return made


def _counted(entry: Any, by: int) -> int:
    """How often a row has come to the value, more than it has left it."""
    return by if entry is None else entry.net + by


def _other(entries: list[Any], key: RowKey) -> RowKey | None:
    """The key of another row than that of `key` that has the value."""
    return next((_key_of(entry) for entry in entries if entry.net > 0 and _key_of(entry) != key), None)


def _key_of(entry: Any) -> RowKey:
    return tuple([getattr(entry, name) for name in entry.__struct_fields__[:-1]])


def app_index(table: Table, name: Any) -> AppIndex:
    """The app-wide index of this name; raises `BadQuery`."""
    found = [each for each in table.consequences if isinstance(each, AppIndex)]
    for index in found:
        if index.declared.name == name:
            return index
    known = ", ".join(index.declared.name for index in found) or "none"
    raise BadQuery(
        f'table {table.full_name} has no app-wide index {shown(name)}, Index(…, scope="app"); it has: {known}'
    )
