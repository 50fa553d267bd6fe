"""A listing of an operator's entities, or of the rows of a table, in order of their keys: the built-in function behind
`client.list`, which gives one slot's part of a page.

It is asked of the internal operator `order*`, whose entities are the partitions, by reads outside the log. No function
of an app can call it, and a transaction cannot run it. The entities of a listing are those that have a value: one that
has only rows is found in a listing of rows.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from styx.errors import BadArguments, UnsupportedValue, ValueTooLarge
from styx.model.app import App
from styx.model.context import Context
from styx.model.function_spec import LIST_FUNCTION, FunctionSpec, Hints
from styx.model.group_rows import group_read
from styx.model.key_range import KeyRange, of_rows, of_values
from styx.model.operator import Operator
from styx.model.partition_function import PARTITIONS_SUFFIX, checked_partition
from styx.model.row_store import RowStore
from styx.model.table_names import entry_name, row_table
from styx.relational.table import Table
from styx.values.codec import decode_plain, encode_any, encode_strict, pack_strict, shown

LIST_DEFAULT: Final = 100
LIST_MAX: Final = 10_000
"""Entries of a page."""
PART_MAX: Final = 500
"""Entries that one slot gives at once: it does nothing else meanwhile."""
_FRAME_BYTES: Final = 16

_READ_ONLY: Final = Hints(read_only=True)
_functions: Final[WeakKeyDictionary[Operator, FunctionSpec]] = WeakKeyDictionary()
_encode = msgspec.msgpack.Encoder().encode


class ListEntry(NamedTuple):
    """An entry of a listing: its key, and its value as `entity` of a remote client or `rows` give it. The key of a row
    is that of its entity, flat, and then the primary key.
    """

    key: Any
    value: Any


class ListPage(NamedTuple):
    """The entries of a page; the key behind which the next one begins, as text, None if there is no next one; and the
    epoch at whose end it was read. Another page `at` this epoch is of the same moment.
    """

    entries: list[ListEntry]
    after: str | None
    epoch: int


class Listing(NamedTuple):
    """What is asked for: the entities of `operator`, or the rows of its table of that own name, "" for none. `prefix`
    and `after` are as `styx.model.key_range` takes them. `limit`: how many entries. Without `values`, keys only.
    """

    operator: str
    table: str = ""
    prefix: str = ""
    after: str | None = None
    limit: int = LIST_DEFAULT
    values: bool = True

    def checked(self) -> Listing:
        """Itself; raises `BadArguments` for another limit than a page has."""
        if type(self.limit) is not int or not 0 < self.limit <= LIST_MAX:
            raise BadArguments(f"a page of a listing has 1 to {LIST_MAX} entries: got limit={shown(self.limit)}")
        return self


def slots_listed(operator: Operator, n_slots: int) -> int:
    """How many partitions, from 0 on, stand for all slots that have any of the operator's."""
    return min(operator.partitions.numbers.count(n_slots), n_slots)


# A slot's part ---------------------------------------------------------------------------------------------


def partition_of_list(app: App, named: str, number: Any) -> tuple[FunctionSpec, Any, Operator]:
    """What lists the slot of a partition, the partition's checked number, and the operator; raises as
    `checked_partition`.
    """
    operator = checked_partition(app, named, number)
    function = _functions.get(operator)
    if function is None:
        numbers = operator.partitions.numbers
        function = _functions[operator] = FunctionSpec(
            numbers, LIST_FUNCTION, _list, encode_strict, decode_plain, pack_strict, decode_plain, _READ_ONLY
        )
    return function, number, operator


def _list(
    ctx: Context, table: str, prefix: str, after: str | None, first: int, room: int, values: bool
) -> Coroutine[Any, Any, bytes | None]:
    # Not an `async def`: what is wrong in itself is refused like arguments that do not fit, before it runs.
    operator = ctx._env.app.operators[ctx.operator.removesuffix(PARTITIONS_SUFFIX)]
    if not 0 < first <= PART_MAX or room <= 0:
        raise BadArguments(f"a slot gives 1 to {PART_MAX} entries of a listing at once, got {first}")
    if not table:
        wanted = of_values(operator.key_type, operator.name, prefix, after)
        return _part(ctx, _Values(operator), wanted, first, room, values)
    declared = ctx._env.app.declared_table(row_table(operator.name, table))
    wanted = of_rows(_kinds(operator, declared), declared.full_name, prefix, after)
    return _part(ctx, _RowValues(ctx, operator, declared), wanted, first, room, values)


def _kinds(operator: Operator, table: Table) -> list[type]:
    """The types of the parts of a row's key."""
    entity = operator.key_type.parts or (operator.key_type.scalar or str,)
    return [*entity, *(str if column.kind is None else column.kind.compared_as for column in table.key)]


class _Values:
    """The values of an operator's entities."""

    def __init__(self, operator: Operator) -> None:
        self.stored = operator.name
        self._operator = operator

    def of(self, key: Any, data: bytes) -> Any:
        """The value, decoded; raises what the state type's own code raises."""
        return self._operator.decode_state(data)


class _RowValues:
    """The rows of a table."""

    def __init__(self, ctx: Context, operator: Operator, table: Table) -> None:
        self.stored = table.full_name
        self._ctx = ctx
        self._operator = operator
        self._table = table

    def of(self, key: Any, data: bytes) -> Any:
        """The row, decoded, as a function reads it; raises as `_Values.of`."""
        table, operator = self._table, self._operator
        entity = key[: table.entity_parts]
        store = RowStore(self._ctx, operator.name, entity if operator.key_type.parts else entity[0])
        row = store.decoded(table, key, data)
        return row if table.view_rule is None else group_read(store, table.view_rule, key, row)


async def _part(
    ctx: Context, of: _Values | _RowValues, wanted: KeyRange, first: int, room: int, values: bool
) -> bytes | None:
    """The msgpack of (entries, whether there are more), None as long as the slot's keys are not in order."""
    found = ctx._cell.listed(of.stored, wanted, first)
    if found is None:
        return None
    most = ctx._env.limits.value_bytes_max - _FRAME_BYTES
    room = min(room, most // 2)
    entries: list[bytes] = []
    listed, more = found
    for key, data in listed:
        entry = _entry(of, key, data) if values else _encode((key, None))
        room -= len(entry)
        if entries and room < 0:
            more = True
            break
        if len(entry) > most:
            raise ValueTooLarge(f"{entry_name(of.stored, key)} is too large for a listing: list keys only, and read it")
        entries.append(entry)
    return b"".join([b"\x92\xdd", len(entries).to_bytes(4, "big"), *entries, b"\xc3" if more else b"\xc2"])


def _entry(of: _Values | _RowValues, key: Any, data: bytes) -> bytes:
    try:
        return encode_any((key, of.of(key, data)), entry_name(of.stored, key))
    except Exception as error:  # noqa: BLE001 - a state type's own code can run here
        raise UnsupportedValue(f"{entry_name(of.stored, key)} cannot be listed: {error}") from None
