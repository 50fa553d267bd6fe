"""Edits of state by a person: the built-in functions behind `styx state edit`, for an entity's value or one row.

`LOOK_FUNCTION` gives the value with a *mark*, a digest of its bytes. `EDIT_FUNCTION` puts another value, or deletes it,
if the mark is still the one that was seen, and raises `EditConflict` if it is not. Both are ordinary requests: they go
through the log, and what is written is written by the context's own methods, so that all rules of the state type, of
tables, views and references hold. No function of an app can call them, and a gateway has paths of their own for them.
"""

from __future__ import annotations

from collections.abc import Coroutine
from hashlib import blake2b
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from styx.errors import BadArguments, BadQuery, EditConflict, describe
from styx.model.context import Context
from styx.model.function_spec import EDIT_FUNCTION, LOOK_FUNCTION, FunctionSpec, Hints
from styx.model.operator import Operator
from styx.model.table_names import entry_name, row_table
from styx.relational.table import Table
from styx.values.codec import decode_plain, encode_any, shown

ABSENT: Final = ""
"""The mark of what is not there."""
_MARK_BYTES: Final = 16
_READ_ONLY: Final = Hints(read_only=True)
_functions: Final[WeakKeyDictionary[Operator, dict[str, FunctionSpec]]] = WeakKeyDictionary()


def edit_function(operator: Operator, name: str) -> FunctionSpec:
    """`LOOK_FUNCTION` or `EDIT_FUNCTION` on the operator's entities."""
    made = _functions.get(operator)
    if made is None:
        look, edit = operator.spec(LOOK_FUNCTION, _look, _READ_ONLY), operator.spec(EDIT_FUNCTION, _edit)
        edit.client_data = True
        made = _functions[operator] = {LOOK_FUNCTION: look, EDIT_FUNCTION: edit}
    return made[name]


def mark_of(data: bytes) -> str:
    """The mark of a value, of its bytes as the present types encode it."""
    return blake2b(data, digest_size=_MARK_BYTES).hexdigest()


def _look(ctx: Context, table: str, pk: list[Any]) -> Coroutine[Any, Any, list[Any]]:
    # Not an `async def`: what is wrong in itself is refused like arguments that do not fit, before it runs.
    declared = _table(ctx, table)
    return _looked(ctx, declared, _key(declared, pk))


def _edit(ctx: Context, table: str, pk: list[Any], mark: str, value: bytes | None) -> Coroutine[Any, Any, str]:
    declared = _table(ctx, table)
    return _edited(ctx, declared, _key(declared, pk), mark, value)


def _table(ctx: Context, table: str) -> Table | None:
    if not table:
        return None
    declared = ctx._env.app.declared_table(row_table(ctx.operator, table))
    if declared.made:
        raise BadArguments(f"the rows of {declared.full_name} are kept by the engine: edit what they are made of")
    return declared


def _key(table: Table | None, pk: list[Any]) -> Any:
    """The row's primary key, as `ctx.rows(table)` takes it, of its JSON."""
    if table is None:
        return ()
    try:
        if len(pk) == len(table.key):
            pk = [column.of_json(each) for column, each in zip(table.key, pk, strict=True)]
        key = pk[0] if len(pk) == 1 else tuple(pk)
        table.key_parts(key)
    except msgspec.ValidationError as error:
        raise BadArguments(f"the primary key of {table.full_name}: {error}") from None
    except BadQuery as error:
        raise BadArguments(str(error)) from None
    return key


async def _looked(ctx: Context, table: Table | None, pk: Any) -> list[Any]:
    """[mark, value as results have it, whether it fits its type: then an edit must not lose anything of it]."""
    data, value, fits = await _found(ctx, table, pk)
    return [ABSENT if data is None else mark_of(data), decode_plain(encode_any(value, "the value")), fits]


async def _found(ctx: Context, table: Table | None, pk: Any) -> tuple[bytes | None, Any, bool]:
    """(the bytes of the value, None if there is none; the value; whether it fits its type)."""
    if table is not None:
        row = await ctx.rows(table).get(pk)
        return None if row is None else table.row_type.encode(row), row, True
    data = ctx._cell.read(ctx._chain)
    if data is None:
        return None, None, True
    spec = ctx._spec
    try:
        value = spec.decode_state(data)
        return spec.encode_state(value), value, True
    except Exception:  # noqa: BLE001 - a state type's own code can run here: an edit may be what repairs it
        return data, decode_plain(data), False


async def _edited(ctx: Context, table: Table | None, pk: Any, mark: str, value: bytes | None) -> str:
    name = entry_name(ctx.operator, ctx.key)
    if table is not None:
        name = entry_name(table.full_name, (*(ctx.key if type(ctx.key) is tuple else (ctx.key,)), *table.key_parts(pk)))
    data, _, _ = await _found(ctx, table, pk)
    found = ABSENT if data is None else mark_of(data)
    if found != mark:
        what = "it is not there any more" if data is None else "it has another value now"
        raise EditConflict(
            f"{name} was changed since it was read: {what}. Nothing was written: look again, and edit that"
        )
    if table is not None:
        return await _put_row(ctx, table, pk, value, name)
    if value is None:
        await ctx.delete()
        return ABSENT
    state = _decoded(ctx._spec.decode_state, value, name)
    await ctx.put(state)
    return mark_of(ctx._spec.encode_state(state))


async def _put_row(ctx: Context, table: Table, pk: Any, value: bytes | None, name: str) -> str:
    rows = ctx.rows(table)
    if value is None:
        await rows.delete(pk)
        return ABSENT
    row = _decoded(table.row_type.decode, value, name)
    if table.parts_of(row) != table.key_parts(pk):
        raise BadArguments(f"{name} would become the row {shown(table.parts_of(row))}: delete it, and make that one")
    await rows.put(row)
    return mark_of(table.row_type.encode(row))


def _decoded(decode: Any, value: bytes, name: str) -> Any:
    try:
        return decode(value)
    except Exception as error:  # noqa: BLE001 - a type's own code can run here
        kind, message = describe(error)
        raise BadArguments(f"{name} cannot have this value: {kind}: {message}") from None
