"""The calls that were given up, by operator: where they stand, in which order, and how many are kept.

A dead call is a row in a table of its own, beside the entity that gave it. A partition keeps `DEAD_CALLS_MAX` of an
operator's: one more takes the place of the oldest, in the transaction that gives it up, which says so. Nothing here
tries a call again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from styx.model.agenda import DeadCall, dead_of, decode_dead, encode_entry, entry_key
from styx.relational.index_range import HIGHEST, LOWEST, TOP, Group, IndexRange, Position, RowKey, TableIndex
from styx.relational.row_indexes import PrimaryKey

if TYPE_CHECKING:
    from styx.model.context import Context
    from styx.model.operator import Operator
    from styx.model.partitioning import KeySpace

DEAD_CALLS_MAX: Final = 10_000
"""Dead calls that one partition of an operator keeps."""

_indexes: Final[WeakKeyDictionary[Operator, tuple[TableIndex, ...]]] = WeakKeyDictionary()


class DeadByAge(TableIndex):
    """All dead calls of a partition: those that were given up first come first."""

    __slots__ = ("_keys",)

    def __init__(self, keys: KeySpace) -> None:
        super().__init__(dead_of(keys.operator), 1, "by age")
        self._keys = keys

    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        """As `TableIndex.entry`; raises what decoding raises."""
        return (self._keys.partition_of_flat(key[:-1], n_slots),), (decode_dead(data).died_us, *key)


def dead_indexes(operator: Operator) -> tuple[TableIndex, ...]:
    """The indexes of an operator's dead calls: those of an entity, in the order of their ids, and all of a partition,
    in the order of their age.
    """
    made = _indexes.get(operator)
    if made is None:
        keys = operator.key_space
        primary = PrimaryKey(dead_of(keys.operator), 0, "primary key", len(operator.key_type.parts) or 1, (), (), True)
        made = _indexes[operator] = (primary, DeadByAge(keys))
    return made


def keep_dead(ctx: Context, dead: DeadCall) -> int:
    """Keeps a call of the context's entity that is given up; how many older ones had to go."""
    operator = ctx._env.app.operators[ctx.operator]
    by_age = dead_indexes(operator)[1]
    group = (operator.key_space.partition_of(ctx.key, ctx._env.n_slots),)
    cell, env, chain = ctx._cell, ctx._env, ctx._chain
    over = cell.count(env, IndexRange(by_age, group, membership=True), chain) + 1 - DEAD_CALLS_MAX
    oldest = dead_range(by_age, group, first=over) if over > 0 else None
    for key, _ in [] if oldest is None else cell.scan(env, oldest, chain):
        dead_cell(ctx, key).write(chain, None)
    dead_cell(ctx, entry_key(ctx.key, dead.entry.id)).write(chain, encode_entry(dead))
    return max(0, over)


def dead_range(index: TableIndex, group: Group, behind: Position | None = None, first: int = 0) -> IndexRange:
    """So many of the lowest entries of a group behind a position; all without a number."""
    return IndexRange(index, group, LOWEST if behind is None else (*behind, TOP), HIGHEST, first=first)


def dead_cell(ctx: Context, key: Any) -> Any:
    """The cell of a dead call of the context's operator."""
    return ctx._cell.sibling(ctx._env, dead_of(ctx.operator), key)
