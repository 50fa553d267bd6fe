"""Steps on rows that refer to other entities, for the programs of `proof.chaos_app`: ["links", name, …].

Each operator has one more table, whose rows refer to rows of `marks` of entities of the next operator, by `far`, the
key of the entity, and `mark`, the id; and by `kin` to entities of the operator behind that one, which must have a
value. Between them the references have every `on_delete`. A key is a list of its parts, or None, which refers to
nothing.

    ["link", id, far, mark, kin]   puts a row; `mark` plus the register, modulo `IDS`
    ["turn", id, far, mark]        changes what a row refers to, if it is there
    ["unlink", id]                 register = whether the row was there
    ["seen"]                       register = the rows in one number
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final
from zlib import crc32

import msgspec

from proof.row_steps import MODULUS, TABLES
from styx.model.app import App
from styx.model.context import Context
from styx.model.operator import Operator
from styx.model.reference_entries import ReferenceEntries
from styx.model.rows import Rows
from styx.model.table_names import row_table
from styx.relational.declarations import Ref

LINKS: Final = "links"
IDS: Final = 4
_ON_DELETE: Final[tuple[tuple[str, str], ...]] = (
    ("cascade", "set_null"),
    ("set_null", "cascade"),
    ("restrict", "set_default"),
)
"""What becomes of a row when its mark is deleted, and when its kin is; by the operator's index."""
State = Mapping[tuple[str, Any], bytes]


def declare_links(operators: list[Operator], *, referring: bool = True) -> None:
    """The tables of the operators that run programs, which have those of `proof.row_steps`. Not `referring`: their rows
    have the same columns, which may hold anything.
    """
    for index, operator in enumerate(operators):
        near, behind = operators[(index + 1) % 3], operators[(index + 2) % 3]
        far, kin = _columns("far", near), _columns("kin", behind)
        fields: list[Any] = [("id", int), *((name, kind | None, None) for name, kind in (*far, *kin)), ("mark", int, 0)]
        if _ON_DELETE[index][1] == "set_default":
            fields = [field if field[0] not in dict(kin) else (field[0], field[1], 0) for field in fields]
        if _ON_DELETE[index][0] == "set_null":
            fields[-1] = ("mark", int | None, None)
        row = msgspec.defstruct("Link", fields, kw_only=True)
        marks = near.tables[TABLES[0]]
        references = [
            Ref((*(name for name, _ in far), "mark"), marks, _ON_DELETE[index][0]),
            Ref(tuple(name for name, _ in kin), behind, _ON_DELETE[index][1]),
        ]
        operator.table(LINKS, row, key="id", references=references if referring else ())


def _columns(what: str, operator: Operator) -> list[tuple[str, Any]]:
    key_type = operator.key_type
    return [(f"{what}_{number}", kind) for number, kind in enumerate(key_type.parts or (key_type.scalar,))]


def _rows(ctx: Context) -> Rows:
    return ctx.rows(ctx._env.app.table(row_table(ctx.operator, LINKS)))


def _changes(ctx: Context, what: str, parts: Any) -> dict[str, Any]:
    names = [name for name in _row_type(ctx).__struct_fields__ if name.startswith(what)]
    return dict(zip(names, parts or [None] * len(names), strict=True))


def _row_type(ctx: Context) -> Any:
    table = ctx._env.app.table(row_table(ctx.operator, LINKS))
    assert table is not None
    return table.row_type.declared


async def _link(ctx: Context, register: int, id: int, far: Any, mark: int, kin: Any) -> int:
    values = {**_changes(ctx, "far", far), **_changes(ctx, "kin", kin)}
    await _rows(ctx).put(_row_type(ctx)(id=id, mark=(mark + register) % IDS, **values))
    return register


async def _turn(ctx: Context, register: int, id: int, far: Any, mark: int) -> int:
    if await _rows(ctx).exists(id=id):
        await _rows(ctx).update(id, mark=mark, **_changes(ctx, "far", far))
    return register


async def _unlink(ctx: Context, register: int, id: int) -> int:
    return int(await _rows(ctx).delete(id))


async def _seen(ctx: Context, register: int) -> int:
    found = await _rows(ctx).select(scan=True)
    return crc32(repr([msgspec.structs.astuple(row) for row in found]).encode()) % MODULUS


LINK_STEPS: Final[Mapping[str, Callable[..., Awaitable[int]]]] = {
    "link": _link,
    "turn": _turn,
    "unlink": _unlink,
    "seen": _seen,
}
"""Each takes the context, the register and the operands, and gives the register."""


def check_links(app: App, state: State) -> int:
    """Holds all references to other entities against the rows: each row has its parent and exactly its entry, and no
    other entries are there. Returns how many entries there are.
    """
    found = 0
    for table in app.tables.values():
        rows = list(_of(state, table.full_name))
        for entries in table.consequences:
            if not isinstance(entries, ReferenceEntries):
                continue
            reference, expected = entries.reference, set()
            for key, data in rows:
                parent = reference.parent_key(table.row_type.decode(data))
                if parent is not None:
                    expected.add((*parent, *key))
                    there = (
                        (reference.parent.name, reference.entity(parent))
                        if reference.parent_table is None
                        else (reference.parent_table.full_name, parent)
                    )
                    assert there in state, f"{table.full_name}[{key}] refers to {there}, which is not there"
            decode = entries.table.row_type.decode
            times = {key: decode(data).times for key, data in _of(state, entries.table.full_name)}
            assert times == dict.fromkeys(expected, 1), f"the entries of {reference.name} are not those of its rows"
            found += len(times)
    return found


def _of(state: State, table: str) -> Iterable[tuple[Any, bytes]]:
    return [(key, data) for (name, key), data in state.items() if name == table]
