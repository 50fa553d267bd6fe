"""The judged app: registers, lists and sequences on three kinds of keys, and transactions over several of them.

A transaction is ordinary (`transact`), read-only (`look`) or local (`near`). `proof.judge.operation` says what its
operations are, and `proof.judge.workload` makes them.
"""

from __future__ import annotations

from typing import Any, Final

from proof.judge.operation import (
    READS,
    WRITES,
    Done,
    Operation,
    Refused,
    carried_at_the_end,
    carried_behind,
    target,
    written,
)
from proof.judge.rows.shelf import shelf
from styx.model.app import App
from styx.model.context import Context
from styx.model.operator import Operator
from styx.model.partitioning import Key

GROUP: Final = 8
"""Entities with numbers in a row whose pair keys are in one group."""
GROUPS: Final = 5
SEQUENCE: Final = "numbers"


def _group(key: tuple[int, int]) -> int:
    return key[0]


text = Operator("text", key_type=str)
number = Operator("number", key_type=int)
pair = Operator("pair", n_partitions=3, key_type=(int, int), partition_key=_group)

OPERATORS: Final = (text, pair, number, pair)
"""In turn, by an entity's number."""


def entity_of(n: int) -> tuple[str, Key]:
    """The operator and the key of the entity with number `n`."""
    operator = OPERATORS[n % len(OPERATORS)]
    keys: dict[str, Key] = {"text": f"k{n}", "number": n, "pair": (n // GROUP % GROUPS, n)}
    return operator.name, keys[operator.name]


def neighbours(n: int, numbers: range) -> list[int]:
    """Those of `numbers` whose entities are on the slot of entity `n` by their keys, on any number of slots."""
    operator, key = entity_of(n)
    if not isinstance(key, tuple):
        return [n]
    group = operator, key[0]
    others = ((other, *entity_of(other)) for other in numbers)
    return [other for other, operator, key in others if isinstance(key, tuple) and (operator, key[0]) == group]


# Requests --------------------------------------------------------------------------------------------------


async def transact(
    ctx: Context, shape: str, operations: list[Operation], last: list[Operation], fails: bool
) -> list[Done]:
    """One transaction: `operations` one after the other, in a "star" of calls from here or a "chain" from entity to
    entity, then `last`, which only writes, in calls at the same time. Raises `Refused` at the end if it `fails`.
    """
    done = await (_chain(ctx, operations, 0) if shape == "chain" else _star(ctx, operations))
    carried = carried_at_the_end(operations, done)
    for kind, numbers, value in last:
        n = target(numbers, carried)
        made = _made(ctx, kind, value, carried)
        operator, key = entity_of(n)
        ctx.call_async(operator, "apply", key, (kind, made))
        done.append([n, made])
    if fails:
        raise Refused("as told")
    return done


async def near(ctx: Context, shape: str, operations: list[Operation], last: list[Operation], fails: bool) -> list[Done]:
    """As `transact`; it is said to stay on its slot."""
    return await transact(ctx, shape, operations, last, fails)


async def look(ctx: Context, shape: str, operations: list[Operation], last: list[Operation], fails: bool) -> list[Done]:
    """As `transact`, of operations that only read."""
    return await transact(ctx, shape, operations, last, fails)


# Operations ------------------------------------------------------------------------------------------------


async def apply(ctx: Context, kind: str, value: Any) -> Any:
    """Does one operation on this entity, with a `value` that is ready to be written. Returns what it read or took."""
    if kind == "r":
        return await ctx.get()
    if kind == "next":
        return await ctx.sequence(SEQUENCE).next()
    if kind == "last":
        return await ctx.sequence(SEQUENCE).last()
    await ctx.put([*(await ctx.get([])), value] if kind == "append" else value)
    return None


async def peek(ctx: Context, kind: str, value: Any) -> Any:
    """As `apply`, of an operation that reads."""
    return await apply(ctx, kind, value)


async def _star(ctx: Context, operations: list[Operation]) -> list[Done]:
    done: list[Done] = []
    carried = 0
    for kind, numbers, value in operations:
        n = target(numbers, carried)
        made = _made(ctx, kind, value, carried)
        operator, key = entity_of(n)
        got = await ctx.call(operator, "peek" if kind in READS else "apply", key, (kind, made))
        done.append([n, made if kind in WRITES else got])
        carried = carried_behind(kind, got, carried)
    return done


async def _chain(ctx: Context, operations: list[Operation], carried: int) -> list[Done]:
    """Sends the first operation to its entity, which then does the rest."""
    if not operations:
        return []
    (kind, numbers, value), *rest = operations
    n = target(numbers, carried)
    operator, key = entity_of(n)
    function = "follow" if all(kind in READS for kind, _, _ in operations) else "link"
    made = _made(ctx, kind, value, carried)
    return await ctx.call(operator, function, key, (n, kind, made, rest, carried))  # type: ignore[no-any-return]


async def link(ctx: Context, n: int, kind: str, value: Any, rest: list[Operation], carried: int) -> list[Done]:
    """An operation on this entity, number `n`, and then the rest of the chain."""
    got = await apply(ctx, kind, value)
    done = [[n, value if kind in WRITES else got]]
    return done + await _chain(ctx, rest, carried_behind(kind, got, carried))


async def follow(ctx: Context, n: int, kind: str, value: Any, rest: list[Operation], carried: int) -> list[Done]:
    """As `link`, of operations that read."""
    return await link(ctx, n, kind, value, rest, carried)


def _made(ctx: Context, kind: str, value: Any, carried: int) -> Any:
    return written(value, carried, ctx.unique_id) if kind in WRITES else None


for _operator in (text, number, pair):
    for _function in (transact, link, apply):
        _operator.register(_function)
    _operator.register(local=True)(near)
    for _function in (look, follow, peek):
        _operator.register(read_only=True)(_function)

app = App("judge", [text, number, pair, shelf])
