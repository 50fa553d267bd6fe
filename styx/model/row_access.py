"""The rows of one entity, read and loaded by clients: the built-in functions behind `client.rows` and
`client.load_rows`.

As a read of an entity and a bulk load of states, both are ordinary requests. Loaded rows are inserted or put as a
function would do it, by all rules of their table. A chunk is one transaction on entities of one slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from styx.errors import BadArguments, BadKey, describe
from styx.model.bulk_load import LOAD_CHUNK_PAIRS_MAX, encode_pairs, entity_text
from styx.model.context import Context
from styx.model.function_spec import LOAD_ROWS_FUNCTION, READ_ROWS_FUNCTION, FunctionSpec, Hints
from styx.model.operator import Operator
from styx.model.rows import Rows
from styx.relational.table import Table
from styx.values.codec import shown

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
    return function


async def _rows(ctx: Context, table: str) -> list[Any]:
    found: list[Any] = await ctx.rows(_table(ctx, table)).select(scan=True)
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


async def _load_rows(ctx: Context, table: str, replace: bool, pairs: list[tuple[Any, msgspec.Raw]]) -> int:
    declared = _table(ctx, table)
    keys = _checked_keys(ctx, pairs)
    decode, operator = declared.row_type.decode, ctx.operator
    for key, (_, data) in zip(keys, pairs, strict=True):
        try:
            row = decode(data)
        except BaseException as error:  # noqa: BLE001 - a row type's own code can run here: it can raise anything
            kind, message = describe(error)
            why = message if isinstance(error, msgspec.ValidationError) else f"{kind}: {message}"
            text = entity_text(declared.full_name, key)
            raise ctx._doomed(BadArguments(f"{text} cannot be loaded: {why}")) from None
        rows = Rows(ctx, declared, operator, key)
        if replace:
            await rows.put(row)
        else:
            await rows.insert(row)
    return len(keys)


def _checked_keys(ctx: Context, pairs: list[tuple[Any, msgspec.Raw]]) -> list[Any]:
    space = ctx._spec.keys
    try:
        keys = [space.check(key) for key, _ in pairs]
        slot, *slots = space.slots_of([ctx.key, *keys], ctx._env.n_slots)
        for key, other in zip(keys, slots, strict=True):
            if other != slot:
                raise BadKey(
                    f"{entity_text(ctx.operator, key)} does not belong to the slot of {shown(ctx.key)}, the first key "
                    "of its chunk: send it in another chunk"
                )
    except BadKey as error:
        raise ctx._doomed(error) from None
    return keys


def _table(ctx: Context, name: str) -> Table:
    try:
        return ctx._env.app.declared_table(f"{ctx.operator}/{name}")
    except BadArguments as error:
        raise ctx._doomed(error) from None
