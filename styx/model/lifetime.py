"""Lifetimes: a value or a row that was not written for its time to live, `ttl=`, is deleted.

Whatever lives for a time only has one entry in the agenda of its entity, `LIFE` and its name, which each write moves
and each deletion removes. The entry's delivery deletes it (`styx.model.expiry`). So what was written since is not
deleted, because the entry that was due is another one then. Nothing here looks at a clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from styx.errors import UnsupportedValue
from styx.model.agenda import (
    AT_ONCE,
    ATTEMPTS_MAX,
    FIRST_RUN,
    AgendaEntry,
    agenda_of,
    decode_entry,
    encode_entry,
    entry_key,
)
from styx.model.giving import new_id
from styx.model.serial_id import entry_id
from styx.relational.table import Table
from styx.relational.time_to_live import EACH, NONE_US, in_us, is_ttl, wrong_ttl

if TYPE_CHECKING:
    from styx.model.cell import Cell
    from styx.model.context import Context
    from styx.model.row_store import RowStore

LIFE: Final = "~"
"""Begins the last part of the key of an entry that ends a life; those of other entries begin with `@` or a digit."""
VALUE: Final = LIFE
"""The last part of the key of the entry that ends the life of an entity's value."""
EXPIRE_FUNCTION: Final = "<expire>"
"""Stands in an entry that ends a life in the place of the function; no function can have its name."""
PAUSE_US: Final = 1_000_000
"""The first pause before another attempt to delete what could not be deleted; each further one is twice as long."""
LONG_AGO_US: Final = 1
"""Due, but not at once as a call after commit is, which needs no time."""
AS_BEFORE: Final = -1
"""Said of a row whose columns are changed: it lives as long again as was said when it was put."""

_encode = msgspec.msgpack.Encoder().encode
_encode_json = msgspec.json.Encoder().encode
_NO_ROW: Final[list[str | int]] = []


class Life(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What an entry that ends a life says: of the row with these key parts in a table of the operator, or of the
    entity's value if `table` is "". `own`: the statement that wrote the row gave it its `ttl_us`, and not the
    declaration.
    """

    table: str
    row: list[str | int]
    ttl_us: int
    own: bool = False


_decode_life = msgspec.msgpack.Decoder(Life).decode


def life_of(entry: AgendaEntry) -> Life | None:
    """What the entry says if it ends a life, else None."""
    return _decode_life(entry.params) if entry.function == EXPIRE_FUNCTION else None


def encode_life(life: Life) -> bytes:
    """The life as an entry's `params`."""
    return _encode(life)


def name_of_row(table: str, row: Any) -> str:
    """The last part of the key of the entry that ends a row's life; `row`: the parts of its primary key."""
    return f"{LIFE}{table}/{_encode_json(row).decode()}"


# What apps say ---------------------------------------------------------------------------------------------


def row_ttl_us(table: Table, ttl: Any) -> int:
    """What a statement says of the row that it writes, in microseconds; raises `UnsupportedValue`."""
    if not is_ttl(ttl):
        raise UnsupportedValue(f"table {table.full_name}: {wrong_ttl(ttl)}")
    if not table.fades:
        raise UnsupportedValue(
            f"table {table.full_name}: a row gets a ttl= only if its table is declared with one: declare the table "
            f'with ttl="{EACH}", or with the usual time as ttl=timedelta(…)'
        )
    return in_us(ttl)


# Writes and deletions --------------------------------------------------------------------------------------


def value_written(context: Context) -> None:
    """The value of the context's entity, which lives for a time only, was written: it lives anew."""
    _live(context, context._spec.operator, context._key, VALUE, Life("", _NO_ROW, context._spec.ttl_us))


def values_loaded(context: Context, keys: list[Any]) -> None:
    """As `value_written`, of entities of the context's operator and slot."""
    spec = context._spec
    life = Life("", _NO_ROW, spec.ttl_us)
    for key in keys:
        _live(context, spec.operator, key, VALUE, life)


def value_deleted(context: Context) -> None:
    """The value was deleted: its life ends with it."""
    _cell_of(context, context._spec.operator, context._key, VALUE).write(context._chain, None)


def keep_life(store: RowStore, table: Table, key: Any, deleted: bool, given_us: int) -> None:
    """A row of a table whose rows may live for a time was deleted, and its life ends with it; or it was written, and
    lives anew. `given_us`: how long, `NONE_US` for the table's usual time, `AS_BEFORE` if its columns were changed.
    """
    row = list(key[table.entity_parts :])
    last = name_of_row(table.name, row)
    cell = _cell_of(store.context, table.operator, store.key, last)
    life: Life | None = None
    if not deleted:
        if given_us == AS_BEFORE:
            life = _own_life(cell.read(store.context._chain))
            given_us = NONE_US
            if life is None and table.ttl_us == NONE_US:
                return  # it has no end, nor did it have one
        if life is None and (given_us or table.ttl_us):
            life = Life(table.name, row, given_us or table.ttl_us, given_us != NONE_US)
    if life is None:
        cell.write(store.context._chain, None)
    else:
        _live(store.context, table.operator, store.key, last, life)


def _own_life(data: bytes | None) -> Life | None:
    """The life that a row was given by the statement that put it."""
    life = None if data is None else life_of(decode_entry(data))
    return life if life is not None and life.own else None


def begin_life(context: Context, last: str, life: Life) -> None:
    """What a version of the app has found alive, and now lets live for a time, begins its life."""
    _live(context, context._spec.operator, context._key, last, life)


def _live(context: Context, operator: str, key: Any, last: str, life: Life) -> None:
    now_us = context._env.timestamp_us
    # As other entries: an id is that of one entry on its slot, whatever it is for.
    entry = _ending(now_us + life.ttl_us, new_id(context), now_us, operator, key, life)
    _cell_of(context, operator, key, last).write(context._chain, encode_entry(entry))


def first_entry(table: str, key: tuple[str | int, ...], operator: str, entity: Any, life: Life) -> AgendaEntry:
    """The entry under `key` of a `table` for what was there before it was to live for a time: its delivery, as soon as
    the worker was told the time, begins the life. So no clock is needed where it is made, and it is the same however
    often it is made.
    """
    return _ending(LONG_AGO_US, id_of_place(table, key), AT_ONCE, operator, entity, life)


def id_of_place(table: str, key: tuple[str | int, ...]) -> str:
    """The id of an entry that a version of the app puts under `key` of a `table`, when it begins."""
    return entry_id(0, FIRST_RUN, 0, _encode([table, key]), 0)


def _ending(due_us: int, its_id: str, given_us: int, operator: str, entity: Any, life: Life) -> AgendaEntry:
    key = list(entity) if type(entity) is tuple else entity
    return AgendaEntry(
        due_us, its_id, given_us, operator, EXPIRE_FUNCTION, key, encode_life(life), ATTEMPTS_MAX, PAUSE_US
    )


def _cell_of(context: Context, operator: str, key: Any, last: str) -> Cell:
    return context._cell.sibling(context._env, agenda_of(operator), entry_key(key, last))
