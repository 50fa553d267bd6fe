"""The judged app: registers and lists on three kinds of keys, and transactions over several of them.

An operation is [kind, numbers, value]: "r" reads, "w" writes, "append" appends to a list. It is done on the entity with
one of the numbers. The number last read in the transaction decides which one, so a transaction that runs again may use
other entities. `proof.judge.workload` makes the transactions.
"""

from __future__ import annotations

from typing import Any, Final

from styx.model.app import App
from styx.model.context import Context
from styx.model.operator import Operator
from styx.model.partitioning import Key

Operation = list[Any]
"""[kind, numbers, value]; the value of "r" is None."""
Done = list[Any]
"""[number, value read]. The value is None for an entity without state, and for an operation other than "r"."""


class Refused(Exception):
    """The transaction fails on purpose, after all its operations."""


def _group(key: tuple[int, int]) -> int:
    return key[0]


text = Operator("text", key_type=str)
number = Operator("number", key_type=int)
pair = Operator("pair", n_partitions=3, key_type=(int, int), partition_key=_group)

OPERATORS: Final = (text, number, pair)

app = App("judge", [text, number, pair])


def entity_of(n: int) -> tuple[str, Key]:
    """The operator and the key of the entity with number `n`."""
    keys: tuple[Key, ...] = (f"k{n}", n, (n % 2, n))
    return OPERATORS[n % len(OPERATORS)].name, keys[n % len(OPERATORS)]


async def transact(
    ctx: Context, shape: str, operations: list[Operation], last: list[Operation], fails: bool
) -> list[Done]:
    """One transaction: `operations` one after the other, in a "star" of calls from here or a "chain" from entity to
    entity, then `last`, none of them "r", in calls at the same time. Raises `Refused` at the end if it `fails`.
    """
    done = await (chain(ctx, operations, 0) if shape == "chain" else _star(ctx, operations))
    pointer = _pointer(done)
    for kind, numbers, value in last:
        n = numbers[pointer % len(numbers)]
        operator, key = entity_of(n)
        ctx.call_async(operator, "apply", key, (kind, value))
        done.append([n, None])
    if fails:
        raise Refused("as told")
    return done


async def chain(ctx: Context, operations: list[Operation], pointer: int) -> list[Done]:
    """Sends the first operation to its entity, which then does the rest."""
    if not operations:
        return []
    (kind, numbers, value), *rest = operations
    n = numbers[pointer % len(numbers)]
    operator, key = entity_of(n)
    return await ctx.call(operator, "link", key, (n, kind, value, rest, pointer))  # type: ignore[no-any-return]


async def link(ctx: Context, n: int, kind: str, value: Any, rest: list[Operation], pointer: int) -> list[Done]:
    """An operation on this entity, number `n`, and then the rest of the chain."""
    read = await apply(ctx, kind, value)
    done = [[n, read]]
    return done + await chain(ctx, rest, _pointer(done) if kind == "r" else pointer)


async def apply(ctx: Context, kind: str, value: Any) -> Any:
    """Does one operation on this entity. Returns the value that "r" read."""
    if kind == "r":
        return await ctx.get()
    if kind == "append":
        await ctx.put([*(await ctx.get([])), value])
    else:
        await ctx.put(value)
    return None


async def _star(ctx: Context, operations: list[Operation]) -> list[Done]:
    done: list[Done] = []
    pointer = 0
    for kind, numbers, value in operations:
        n = numbers[pointer % len(numbers)]
        operator, key = entity_of(n)
        read = await ctx.call(operator, "apply", key, (kind, value))
        done.append([n, read])
        pointer = _pointer(done) if kind == "r" else pointer
    return done


def _pointer(done: list[Done]) -> int:
    """The number last read: a register's value, or the length of a list."""
    read = next((read for _, read in reversed(done) if read is not None), 0)
    return len(read) if isinstance(read, list) else int(read)


for _operator in OPERATORS:
    for _function in (transact, link, apply):
        _operator.register(_function)
