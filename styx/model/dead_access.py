"""Dead calls as clients see them: the built-in functions behind `client.dead_calls`, and those that try one again or
drop it.

Each is an ordinary request, as the read of an entity is. A page of all dead calls of a partition is asked of the
internal operator of its number, `order*`, so that nobody has to know their keys. No function of an app can call any of
these, and a gateway has paths of their own for them.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from styx.errors import BadArguments, InTransactionError, UnsupportedValue
from styx.model.agenda import AT_ONCE, DeadCall, agenda_of, called_key, decode_dead, encode_entry, entry_key, giver_of
from styx.model.app import App
from styx.model.context import Context
from styx.model.dead_calls import dead_cell, dead_indexes, dead_range
from styx.model.function_spec import DEAD_FUNCTION, DROP_DEAD_FUNCTION, REPLAY_DEAD_FUNCTION, FunctionSpec, Hints
from styx.model.giving import new_id
from styx.model.operator import Operator
from styx.model.partition_function import PARTITIONS_SUFFIX, checked_partition
from styx.relational.index_range import Group, Position, TableIndex
from styx.values.codec import decode_plain, encode_strict, pack_strict, shown

PAGE_MAX: Final = 50
"""Dead calls that one transaction gives."""
ARGUMENTS_SHOWN_BYTES: Final = 8 * 1024
"""Larger arguments of a call are not shown in a list."""

_READ_ONLY: Final = Hints(read_only=True)
_functions: Final[WeakKeyDictionary[Operator, dict[str, FunctionSpec]]] = WeakKeyDictionary()


def dead_function(operator: Operator, name: str) -> FunctionSpec:
    """`DEAD_FUNCTION`, `REPLAY_DEAD_FUNCTION` or `DROP_DEAD_FUNCTION` on the operator's entities."""
    return _made(operator)[name]


def partition_of_dead(app: App, named: str, number: Any) -> tuple[FunctionSpec, Any, Operator]:
    """What lists a partition's dead calls, the partition's checked number, and the operator; raises as
    `checked_partition`.
    """
    operator = checked_partition(app, named, number)
    return _made(operator)[named], number, operator


def _made(operator: Operator) -> dict[str, FunctionSpec]:
    made = _functions.get(operator)
    if made is None:
        made = _functions[operator] = {
            DEAD_FUNCTION: operator.spec(DEAD_FUNCTION, _dead_of_entity, _READ_ONLY),
            REPLAY_DEAD_FUNCTION: operator.spec(REPLAY_DEAD_FUNCTION, _replay),
            DROP_DEAD_FUNCTION: operator.spec(DROP_DEAD_FUNCTION, _drop),
            operator.partitions.name: FunctionSpec(
                operator.partitions.numbers,
                DEAD_FUNCTION,
                _dead_of_partition,
                encode_strict,
                decode_plain,
                pack_strict,
                decode_plain,
                _READ_ONLY,
            ),
        }
    return made


# Lists -----------------------------------------------------------------------------------------------------


async def _dead_of_partition(ctx: Context, behind: list[Any] | None, first: int) -> list[Any]:
    name, number = ctx.operator.removesuffix(PARTITIONS_SUFFIX), ctx._key
    operator = ctx._env.app.operators[name]
    types = [int, *(operator.key_type.parts or (operator.key_type.scalar,)), str]
    page = _page(ctx, dead_indexes(operator)[1], (number,), _position(behind, types), first)
    return [*page, _partitions(ctx, operator)]


async def _dead_of_entity(ctx: Context, behind: list[Any] | None, first: int) -> list[Any]:
    operator, key = ctx._env.app.operators[ctx.operator], ctx.key
    group = key if type(key) is tuple else (key,)
    return [*_page(ctx, dead_indexes(operator)[0], group, _position(behind, [str]), first), 1]


def _partitions(ctx: Context, operator: Operator) -> int:
    return operator.partitions.numbers.count(ctx._env.n_slots)


def _page(ctx: Context, index: TableIndex, group: Group, behind: Position | None, first: int) -> tuple[list[Any], Any]:
    """(calls, the position behind which the next page begins, None at the end)."""
    if type(first) is not int or not 0 < first <= PAGE_MAX:
        raise BadArguments(f"a page has 1 to {PAGE_MAX} dead calls, got {shown(first)}")
    env = ctx._env
    room = env.limits.value_bytes_max // 2
    shown_max = min(ARGUMENTS_SHOWN_BYTES, room // 4)
    calls: list[Any] = []
    position: Position | None = None
    found = ctx._cell.scan(env, dead_range(index, group, behind, first + 1), ctx._chain)
    for key, data in found:
        room -= min(len(data), shown_max + 2_000)
        if calls and (len(calls) == first or room < 0):
            return calls, position
        entry = index.entry(key, data, env.n_slots)
        assert entry is not None, "a dead call is in each index"
        position = entry[1]
        calls.append(_described(key, decode_dead(data), shown_max))
    return calls, None


def _position(behind: Any, types: list[Any]) -> Position | None:
    """The place, which has parts of these types: others could not be compared with those of the list."""
    if behind is None:
        return None
    if type(behind) is not list or [type(part) for part in behind] != types:
        raise BadArguments(f"{shown(behind)} is no place in a list of dead calls")
    return tuple(behind)


def _described(key: Any, dead: DeadCall, shown_max: int) -> list[Any]:
    entry = dead.entry
    giver, its_id = giver_of(key)
    arguments = decode_plain(entry.params) if len(entry.params) <= shown_max else None
    return [
        giver,
        its_id,
        entry.operator,
        entry.function,
        entry.key,
        arguments,
        len(entry.params),
        entry.given_us,
        dead.died_us,
        entry.attempt,
        *dead.error,
    ]


# Changes ---------------------------------------------------------------------------------------------------


async def _replay(ctx: Context, its_id: str) -> bool:
    dead = _taken(ctx, its_id)
    if dead is None:
        return False
    entry = dead.entry
    try:
        spec = ctx._env.app.resolve(entry.operator, entry.function)
        spec.keys.check(called_key(entry))
    except InTransactionError as error:
        raise UnsupportedValue(f"the dead call cannot be tried again, and stays: {error}") from None
    params = ctx._env.app.operators[entry.operator].again(entry.function, entry.params)
    given_us = ctx._env.timestamp_us
    again = replace(entry, due_us=AT_ONCE, id=new_id(ctx), given_us=given_us, params=params, attempt=0)
    # Under its id, and not under the name that it may have had: another call may stand there by now.
    agenda = ctx._cell.sibling(ctx._env, agenda_of(ctx.operator), entry_key(ctx.key, again.id))
    agenda.write(ctx._chain, encode_entry(again))
    return True


async def _drop(ctx: Context, its_id: str) -> bool:
    return _taken(ctx, its_id) is not None


def _taken(ctx: Context, its_id: str) -> DeadCall | None:
    """Removes a dead call of the entity; None if it is not there any more."""
    if type(its_id) is not str:
        raise BadArguments(f"the id of a dead call is a text, got {shown(its_id)}")
    cell = dead_cell(ctx, entry_key(ctx.key, its_id))
    data = cell.read(ctx._chain)
    if data is None:
        return None
    cell.write(ctx._chain, None)
    return decode_dead(data)
