"""The rows of one entity, read and loaded by clients: the built-in functions behind `client.rows` and
`client.load_rows`.

As a read of an entity and a bulk load of states, both are ordinary requests. Loaded rows are inserted or put as a
function would do it, by all rules of their table. A chunk is one transaction on entities of one slot.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from styx.errors import BadArguments, BadQuery, describe
from styx.model.bulk_load import LOAD_CHUNK_PAIRS_MAX, checked_keys, encode_pairs, entity_text
from styx.model.context import Context
from styx.model.function_spec import LOAD_ROWS_FUNCTION, READ_ROWS_FUNCTION, FunctionSpec, Hints
from styx.model.load_offenders import Offenders
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.model.row_statements import RowStatements
from styx.model.row_store import RowStore
from styx.model.table_names import entry_name, row_table
from styx.relational.table import Table

_READ_ONLY: Final = Hints(read_only=True)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, bool, list[tuple[Any, msgspec.Raw]]]).decode
_TRUE, _FALSE, _ARRAY_OF_THREE = b"\xc3", b"\xc2", b"\x93"
_readers: Final[WeakKeyDictionary[Operator, FunctionSpec]] = WeakKeyDictionary()


# Read ------------------------------------------------------------------------------------------------------


def rows_function(operator: Operator) -> FunctionSpec:
    """The read of an entity's rows in one table, named by the argument; no function can call it."""
    function = _readers.get(operator)
    if function is None:
        function = _readers[operator] = operator.spec(READ_ROWS_FUNCTION, _rows, _READ_ONLY)
        function.client_data = True
    return function


def _rows(ctx: Context, table: str) -> Coroutine[Any, Any, list[Any]]:
    # Not an `async def`: a table that does not exist is refused like arguments that do not fit, before it runs.
    return _selected(ctx, _table(ctx, table))


async def _selected(ctx: Context, table: Table) -> list[Any]:
    found: list[Any] = await ctx.rows(table).select(scan=True)
    return found


# Load ------------------------------------------------------------------------------------------------------


def load_rows_arguments(table: str, pairs: Sequence[bytes], replace: bool) -> bytes:
    """The arguments of `LOAD_ROWS_FUNCTION` for encoded pairs of entity and row; the request is for the first entity.
    `table` is its own name.
    """
    return b"".join([_ARRAY_OF_THREE, _encode(table), _TRUE if replace else _FALSE, encode_pairs(pairs)])


def load_rows_function(operator: Operator) -> FunctionSpec:
    """The load of an operator's rows; no function can call it."""
    function = operator.spec(LOAD_ROWS_FUNCTION, _load_rows)
    function.decode = _decode_params
    function.client_data = True
    return function


def _decode_params(data: bytes) -> tuple[Any, dict[str, Any]]:
    try:
        table, replace, pairs = _decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadArguments(f"a chunk of rows is [table, replace, [[key, row], …]]: {error}") from None
    if not 0 < len(pairs) <= LOAD_CHUNK_PAIRS_MAX:
        raise BadArguments(f"a chunk of a bulk load has 1 to {LOAD_CHUNK_PAIRS_MAX} pairs, got {len(pairs)}")
    return (table, replace, pairs), {}


def _load_rows(
    ctx: Context, table: str, replace: bool, pairs: list[tuple[Any, msgspec.Raw]]
) -> Coroutine[Any, Any, int]:
    # Likewise: a chunk that is wrong in itself is refused before it runs.
    declared, keys = _table(ctx, table), checked_keys(ctx, pairs)
    if declared.view_rule is not None:
        raise BadArguments(f"{declared.view_rule.named} is kept by the engine: load rows of the table")
    if declared.keeps_event:
        raise BadArguments(f"the rows of event {declared.keeps_event!r} are kept by the engine: functions emit it")
    return _put_all(ctx, declared, replace, keys, _decoded(declared, keys, pairs))


def _decoded(table: Table, keys: list[Key], pairs: list[tuple[Any, msgspec.Raw]]) -> list[Any]:
    decode = table.row_type.decode
    rows: list[Any] = []
    offenders = Offenders()
    for place, (_, data) in enumerate(pairs):
        try:
            rows.append(decode(data))
        except Exception as error:  # noqa: BLE001 - a row type's own code can run here: it can raise anything
            kind, message = describe(error)
            why = message if isinstance(error, msgspec.ValidationError) else f"{kind}: {message}"
            offenders.add(place, entity_text(table.full_name, keys[place]), why)
            if offenders.full:
                break
    if offenders:
        raise offenders.error(BadArguments)
    return rows


async def _put_all(ctx: Context, table: Table, replace: bool, keys: list[Key], rows: list[Any]) -> int:
    offenders = Offenders()
    for place, (key, row) in enumerate(zip(keys, rows, strict=True)):
        statements = RowStatements(RowStore(ctx, table.operator, key))
        try:
            if replace:
                statements.put(table, row)
            else:
                statements.insert(table, row, None)
        except Exception as error:
            if ctx._doom is not None:
                raise  # a limit of the function, not a rule of the row
            offenders.add(place, _row_text(table, key, row), error)
            if offenders.full:
                break
    if offenders:
        raise offenders.error()
    return len(keys)


def _row_text(table: Table, key: Key, row: Any) -> str:
    """How an error names a row; only by its entity, if it has no primary key yet or none that can be one."""
    try:
        if table.auto is not None and getattr(row, table.key[0].name) == table.auto_default:
            return entity_text(table.full_name, key)
        parts = table.parts_of(row)
    except BadQuery:
        return entity_text(table.full_name, key)
    return entry_name(table.full_name, (*(key if type(key) is tuple else (key,)), *parts))


def _table(ctx: Context, name: str) -> Table:
    return ctx._env.app.declared_table(row_table(ctx.operator, name))
