"""App-wide indexes: entries on the slot of their value, kept by the transaction that changes the row.

The entities of an index's internal operator are the values; each has a row for every row of the table that has the
value. So a look-up is a call of one function on one entity, in conflict with whatever comes to that value or leaves it,
and serializable as every call. An entry counts how often its row has come to the value more than it has left it: 1, but
amid a transaction whose calls run in another order than its writes; what is 0 is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from styx.errors import BadKey, BadQuery, UniqueViolation, UnsupportedValue
from styx.model.consequence import Consequence, ImpliedCall
from styx.model.internal_operator import INTERNAL_MARK, InternalOperator
from styx.model.limits import KEY_BYTES_MAX
from styx.model.row_page import position_of
from styx.model.row_store import RowStore
from styx.relational.app_wide import AppWideIndex, Look
from styx.relational.conditions import Comparison
from styx.relational.index_range import RowKey
from styx.relational.ordered_part import part_class
from styx.relational.query import Conditions
from styx.relational.table import Table
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.context import Context
    from styx.model.partitioning import Key, KeyType

CHANGE: Final = "change"
OWNERS: Final = "owners"
PAGE: Final = "page"
ENTRIES: Final = "entries"
NO_CONDITIONS: Final[Conditions] = {}


class AppIndex(Consequence):
    """The entries of one app-wide index, `declared`, of a table whose entities have keys of `key_type`."""

    __slots__ = ("_all", "_entries", "_key_type", "_order", "_table", "declared", "operator")

    def __init__(self, table: Table, declared: AppWideIndex, key_type: KeyType) -> None:
        self._table = table
        self._key_type = key_type
        self.declared = declared
        columns, order = (",".join(column.name for column in each) for each in (declared.columns, declared.order))
        columns += f";{order}" if order else ""
        name = INTERNAL_MARK.join([table.operator, table.name, f"{declared.name}({columns})"])
        kinds = tuple([column.kind.compared_as for column in declared.columns if column.kind is not None])
        self.operator = InternalOperator(name, kinds if len(kinds) > 1 else kinds[0])
        owner = key_type.parts or (key_type.scalar,)
        own = [column.kind.compared_as for column in table.key if column.kind is not None]
        fields: list[Any] = [(f"part{number}", kind) for number, kind in enumerate([*owner, *own])]
        self._order = tuple([f"order{number}" for number in range(len(declared.order))])
        fields = [(each, part_class(column)) for each, column in zip(self._order, declared.order, strict=True)] + fields
        row_type = msgspec.defstruct("Entry", [*fields, ("net", int)], array_like=True)
        self._entries = entries = self.operator.table(ENTRIES, row_type, key=tuple([each for each, _ in fields]))
        self._all = entries.plan(NO_CONDITIONS, scan=True)
        self._register(entries, row_type)

    def _register(self, entries: Any, row_type: Any) -> None:

        async def change(ctx: Context, key: list[Any], by: int) -> None:
            """A row has come to this value, by 1, or left it, by -1."""
            store = RowStore(ctx, ctx.operator, ctx.key)
            place = store.entity + entries.key_parts(key)
            alone = self.declared.unique
            held: Mapping[RowKey, bytes] | None = None
            if alone and by > 0:
                held = self._held(store)  # all that is read: the row's own entry is among them
            data = store.read(entries, place) if held is None else held.get(place)
            net = _counted(0 if data is None else store.decoded(entries, place, data).net, by)
            if alone and net > 0:
                self._check_alone(store, place, self._held(store) if held is None else held)
            store.write(entries, place, entries.row_type.encode(row_type(*key, net)) if net else None)

        async def owners(ctx: Context, first: int, last: int, asked: Sequence[Any] = ((), None)) -> list[Any]:
            """The keys of the rows that have this value and are in the range, in order."""
            rows, conditions = ctx.rows(entries), self._conditions(*asked)
            found = await rows.select(conditions, scan=True, first=first, last=last)
            if any(entry.net < 1 for entry in found):
                there = [entry for entry in await rows.select(conditions, scan=True) if entry.net > 0]
                found = there[:first] if first else there[-last:] if last else there
            return [self._owner_key(entry) for entry in found]

        async def page(ctx: Context, size: int, after: str | None, asked: Sequence[Any]) -> list[Any]:
            """A page of what `owners` gives, and the cursor of the next one."""
            conditions = self._conditions(*asked)
            found = await ctx.rows(entries).pages(conditions, scan=True, size=size, after=after)
            return [[self._owner_key(entry) for entry in found.rows if entry.net > 0], found.next]

        self.operator.register(change)
        self.operator.register(owners, read_only=True)
        self.operator.register(page, read_only=True)

    def _held(self, store: RowStore) -> Mapping[RowKey, bytes]:
        """All entries of a value."""
        return dict(store.scan(self._all.range_of(store.entity, NO_CONDITIONS)))

    def _check_alone(self, store: RowStore, place: RowKey, held: Mapping[RowKey, bytes]) -> None:
        """Raises `UniqueViolation` if another row than that of the entry `place` has the value."""
        for other, data in held.items():
            if other != place and store.decoded(self._entries, other, data).net > 0:
                begin = len(store.entity)
                raise self._violation(store.key, place[begin:], other[begin:])

    def check_cursor(self, after: Any) -> None:
        """Refuses what is no cursor of a page of a look-up."""
        try:
            position_of(self._entries, self._entries.indexes[0], after)
        except BadQuery:
            raise BadQuery(
                f"table {self._table.full_name}: after= is the next of the page before, of the same look-up by index "
                f"{self.declared.name!r}, got {shown(after)}"
            ) from None

    def _conditions(self, fixed: Sequence[Any], compared: Sequence[Any] | None) -> dict[str, Any]:
        """The conditions of a look-up on the columns of the entries: `sent` made them."""
        conditions: dict[str, Any] = dict(zip(self._order, fixed, strict=False))
        if compared is not None:
            conditions[self._order[len(fixed)]] = Comparison(*compared)
        return conditions

    def _owner_key(self, entry: Any) -> RowKey:
        """The key of the row that an entry is of."""
        return _key_of(entry)[len(self._order) :]

    # Changes -----------------------------------------------------------------------------------------------

    def calls(self, key: RowKey, old: Any, new: Any) -> Iterable[ImpliedCall]:
        """As `Consequence.calls`; raises `UnsupportedValue` for a value that no entity can have as its key."""
        before = None if old is None else self._place_of(old)
        after = None if new is None else self._place_of(new)
        if before == after:
            return []
        calls = []
        for place, by in ((before, -1), (after, 1)):
            if place is not None:
                value, order = place
                calls.append(ImpliedCall(self.operator, CHANGE, self.entity_of(value), (order + key, by)))
        return calls

    def _place_of(self, row: Any) -> tuple[RowKey, RowKey] | None:
        """The value of a row, and its place in the order there; None if the row is not in the index."""
        value = self.declared.value_of(row)
        return None if value is None else (value, self.declared.order_of(row))

    def check_place(self, row: Any) -> None:
        """Raises `UnsupportedValue` for a row that can have no place in the index."""
        place = self._place_of(row)
        if place is not None:
            self.entity_of(place[0])

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
        return any(each.name == column for each in (*self.declared.columns, *self.declared.order))

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
            row = decode(data)
            value = declared.value_of(row)
            if value is not None:
                entry = declared.order_of(row) + key
                made[value + entry] = encode(row_type(*entry, 1))
        return made


def sent(look: Look) -> tuple[Any, ...]:
    """The range of a look-up, as an argument of the functions that look up."""
    compared = look.compared
    return look.order, None if compared is None else (compared.operation, compared.low, compared.high)


def _counted(net: int, by: int) -> int:
    """How often a row has come to the value, more than it has left it."""
    return net + by


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
