"""An app whose requests carry small programs, so that random requests reach every rule of the programming model.

Three operators (text keys, number keys with a state type, composite keys with a partition key) register the same
interpreter four times: as `run`; as `hot`, which is contended; as `look`, which is read-only, so that each step that
writes ends it; and as `near`, which is local, and calls `near` as well (some calls of `run` go there, too). A fourth
operator is the bank of `proof.bank`. The app only interprets: programs are made in `proof.random_requests` and
`proof.random_looks`, by hand in tests, or by a shrinker. Programs have no loops, so they end; those that spin are
ended.

A program is a list of steps, a step a list of a name and its operands, all of it plain msgpack or JSON. It runs on the
entity it is sent to and has one register, the number that it last read, computed or was returned; `run` returns it.
An entity's state is a number, a counter and a note.

    ["read"]                     register = number (0 if there is no entity)
    ["add", n]                   number += n; register = number
    ["mix", n]                   number = f(number, register, n), where order matters; register = number
    ["set", n] / ["keep"]        blind write: number = n / number = register, without reading
    ["delete"]                   removes the entity
    ["guard", n]                 raises `Low` if number < n
    ["call", mode, target, p]    runs program p on the target; "sync": register = its result; "async"; "odd": one of
                                 both, or another function, as the register decides
    ["look", mode, target, p]    as "call", but p runs as a read-only function
    ["carry", mode, target, p]   as "call", and the target's register is this one at first
    ["fresh", mode, p]           counter += 1, then runs p on an entity named after it (composite keys: same slot)
    ["if", n, p, q]              p if register % 7 < n, else q
    ["try", p]                   p, and register = -1 if it raises an exception of its own
    ["raise"]                    raises `Chaos`
    ["random"] / ["now"]         register = a number from ctx.random() / ctx.now()
    ["next", n]                  register = the next number of the entity's sequence n
    ["last", n]                  register = the number that was taken last of it
    ["restart", n, m]            the next number of it is m + 1
    ["unique"]                   the note becomes ctx.unique_id() and the register a part of it
    ["uuid"]                     the note becomes ctx.uuid() and the register a part of it
    ["rows", name, …]            a step on the entity's rows: `proof.row_steps`
    ["lives", mode, k, what, n]  a step on an entity that lives for a time: `proof.life_steps`
    ["links", name, …]           a step on its rows that refer to other entities: `proof.link_steps`
    ["all", mode, index, steps]  the steps on each partition of an operator: `proof.partition_steps`; "sync": register =
                                 their results in one number
    ["survey", mode, index, steps]  as "all", by a read-only partition function
    ["emit", n] / ["emit at", n, key] / ["kept", n]  events: `proof.emit_steps`
    ["outside", n]               register = what the function `outside` gives for (n, register), called externally
    ["spin", kind]               "endless" or "slow": runs too long, or perhaps (`proof.spinning`); "hidden":
                                 endless, and hides that it was ended
    ["mutate"]                   empties this invocation's copy of its own arguments
    ["poison", kind]             misbehaves; see `proof.poisons`

A target is ["at", operator index, n], ["by", operator index, m] (key number register % m), ["self"], or ["caller"].
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from proof.bank import account
from proof.cron_ticks import register_ticks
from proof.emit_steps import EVENTS, emit, emit_at, kept
from proof.later_steps import give
from proof.life_steps import fleeting, live
from proof.link_steps import LINK_STEPS, declare_links
from proof.partition_steps import Sweep
from proof.poisons import POISONS
from proof.row_steps import ROW_STEPS, Refused, declare_tables
from proof.spinning import Interrupted, spin
from styx.model.app import App
from styx.model.context import Context
from styx.model.operator import Operator
from styx.model.partition_context import PartitionContext
from styx.model.partitioning import Key

MODULUS: Final = 1_000_003
"""Numbers that programs compute stay below this."""
FRESH_KEYS: Final = 1_000
"""Key numbers from here on are made by ["fresh", …]."""
SWEPT_KEYS: Final = 4
"""Entities of an operator that partition functions may visit."""


class Low(Exception):
    """A guard found too low a number."""


class Chaos(Exception):
    """A program said so."""


class Cell(msgspec.Struct):
    """An entity's state; the state type of the `number` operator."""

    number: int = 0
    counter: int = 0
    note: str = ""


def _warehouse(key: tuple[int, int]) -> int:
    return key[0]


text = Operator("text", key_type=str)
number = Operator("number", key_type=int, state_type=Cell)
pair = Operator("pair", n_partitions=3, key_type=(int, int), partition_key=_warehouse)

PROGRAMMED: Final = (text, number, pair)
"""The operators that run programs; a target's operator index counts in here."""

for _operator in PROGRAMMED:
    declare_tables(_operator)
declare_links([*PROGRAMMED])


def key_of(operator_index: int, n: int) -> Key:
    """The key with number `n` of an operator of `PROGRAMMED`; composite keys share three partitions."""
    return (f"k{n}", n, (n % 3, n))[operator_index]


# The interpreter -------------------------------------------------------------------------------------------


class Program:
    """One invocation of `run`: its context, its register, and where it was called from."""

    __slots__ = ("arguments", "caller", "cell", "ctx", "near", "register")

    def __init__(
        self, ctx: Context, arguments: list[Any], caller: list[Any] | None, register: int = 0, near: bool = False
    ) -> None:
        self.ctx = ctx
        self.near = near
        self.arguments = arguments
        self.caller = caller
        self.cell: Callable[[], Cell] = Cell
        self.register = register

    async def run(self, steps: list[Any]) -> None:
        """Runs the steps one after the other."""
        for name, *operands in list(steps):
            await _STEPS[name](self, *operands)

    async def load(self) -> Cell:
        """The entity's state, a new one if it has none."""
        state = await self.ctx.get()
        if state is None:
            return self.cell()
        return state if isinstance(state, Cell) else Cell(**state)

    async def store(self, cell: Cell) -> None:
        """Writes the entity's state in its operator's form."""
        await self.ctx.put(cell if self.ctx.operator == "number" else msgspec.structs.asdict(cell))

    async def update(self, value: int) -> None:
        """Sets number and register, keeping the rest of the state."""
        cell = await self.load()
        cell.number = self.register = value
        await self.store(cell)

    async def call(
        self,
        mode: str,
        operator: str,
        key: Any,
        steps: list[Any],
        function: str | None = None,
        register: int | None = None,
    ) -> None:
        """Runs a program elsewhere."""
        params: tuple[Any, ...] = (steps, [self.ctx.operator, self.ctx.key])
        if register is not None:
            params = (*params, register)
        if function is None:
            function = "near" if self.near or len(steps) % 3 == 0 else "run"
        if mode == "odd":
            mode, function = _odd(self.register, function)
        if mode == "async":
            self.ctx.call_async(operator, function, key, params)
        else:
            self.register = await self.ctx.call(operator, function, key, params)

    def target(self, kind: str, *operands: int) -> tuple[str, Any]:
        """The operator and the key that a target names."""
        if kind == "at":
            return PROGRAMMED[operands[0]].name, key_of(*operands)
        if kind == "by":
            return PROGRAMMED[operands[0]].name, key_of(operands[0], self.register % operands[1])
        if kind == "caller" and self.caller is not None:
            operator, key = self.caller
            return operator, key
        return self.ctx.operator, self.ctx.key


_OTHER: Final = {"run": "near", "near": "run"}


def _odd(register: int, function: str) -> tuple[str, str]:
    """The mode and the function of a call whose mode is "odd"."""
    if register % 3 == 1:
        return "async", function
    return "sync", _OTHER.get(function, function) if register % 3 == 2 else function


async def _read(program: Program) -> None:
    program.register = (await program.load()).number


async def _add(program: Program, n: int) -> None:
    await program.update((await program.load()).number + n)


async def _mix(program: Program, n: int) -> None:
    cell = await program.load()
    cell.number = (cell.number * 31 + program.register * 7 + n) % MODULUS
    await program.store(cell)
    program.register = cell.number


async def _set(program: Program, n: int) -> None:
    await program.store(Cell(n))


async def _keep(program: Program) -> None:
    await program.store(Cell(program.register))


async def _delete(program: Program) -> None:
    await program.ctx.delete()


async def _guard(program: Program, n: int) -> None:
    found = (await program.load()).number
    if found < n:
        raise Low(f"{program.ctx.operator}[{program.ctx.key!r}] holds {found}, less than {n}")


async def _call(program: Program, mode: str, target: list[Any], steps: list[Any]) -> None:
    await program.call(mode, *program.target(*target), steps)


async def _carry(program: Program, mode: str, target: list[Any], steps: list[Any]) -> None:
    await program.call(mode, *program.target(*target), steps, register=program.register)


async def _look(program: Program, mode: str, target: list[Any], steps: list[Any]) -> None:
    await program.call(mode, *program.target(*target), steps, "look")


async def _fresh(program: Program, mode: str, steps: list[Any]) -> None:
    cell = await program.load()
    cell.counter += 1
    await program.store(cell)
    key: Any = program.ctx.key
    if isinstance(key, tuple):
        made: Any = (key[0], FRESH_KEYS + key[1] * 1_000 % MODULUS + cell.counter)
    elif isinstance(key, int):
        made = FRESH_KEYS + key * 1_000 % MODULUS + cell.counter
    else:
        made = f"{key}/{cell.counter}"
    await program.call(mode, program.ctx.operator, made, steps)


async def _if(program: Program, n: int, then: list[Any], otherwise: list[Any]) -> None:
    await program.run(then if program.register % 7 < n else otherwise)


async def _try(program: Program, steps: list[Any]) -> None:
    try:
        await program.run(steps)
    except (Low, Chaos, Refused):
        program.register = -1


async def _raise(program: Program) -> None:
    raise Chaos(f"at {program.register}")


async def _random(program: Program) -> None:
    program.register = program.ctx.random().randrange(MODULUS)


async def _now(program: Program) -> None:
    program.register = int(program.ctx.now().timestamp() * 1_000_000) % MODULUS


async def _uuid(program: Program) -> None:
    unique = program.ctx.uuid()
    cell = await program.load()
    cell.note = str(unique)
    await program.store(cell)
    program.register = unique.int % MODULUS


async def _unique(program: Program) -> None:
    unique = program.ctx.unique_id()
    cell = await program.load()
    cell.note = unique
    await program.store(cell)
    program.register = int.from_bytes(unique.encode(), "big") % MODULUS


async def _next(program: Program, n: int) -> None:
    program.register = await program.ctx.sequence(f"s{n}").next()


async def _last(program: Program, n: int) -> None:
    program.register = await program.ctx.sequence(f"s{n}").last()


async def _restart(program: Program, n: int, after: int) -> None:
    await program.ctx.sequence(f"s{n}").restart(after)


async def _rows(program: Program, name: str, *operands: int) -> None:
    program.register = await ROW_STEPS[name](program.ctx, program.register, *operands)


async def _later(program: Program, ms: int, n: int, target: list[Any], steps: list[Any]) -> None:
    give(program.ctx, ms, n, *program.target(*target), steps)


async def _lives(program: Program, mode: str, key: int, what: str, n: int) -> None:
    result = await live(program.ctx, mode, key, what, n)
    program.register = program.register if result is None else result % MODULUS


async def _withdraw(program: Program, n: int) -> None:
    program.register = int(await program.ctx.cancel(f"t{n}"))


async def _links(program: Program, name: str, *operands: Any) -> None:
    program.register = await LINK_STEPS[name](program.ctx, program.register, *operands)


def outside(n: int, register: int) -> int:
    """The external function; it fails for some arguments."""
    if (n + register) % 11 == 0:
        raise Chaos(f"outside {n} {register}")
    return (register * 3 + n) % MODULUS


async def _outside(program: Program, n: int) -> None:
    program.register = await program.ctx.call_external(outside, n, program.register)


async def _emit(program: Program, n: int) -> None:
    emit(program.ctx, n, program.register)


async def _emit_at(program: Program, n: int, key: Any) -> None:
    emit_at(program.ctx, n, program.register, key)


async def _kept(program: Program, n: int) -> None:
    program.register = await kept(program.ctx, n)


async def _spin(program: Program, kind: str) -> None:
    try:
        spin(program.ctx, kind != "slow")
    except Interrupted:
        if kind != "hidden":
            raise


async def _mutate(program: Program) -> None:
    program.arguments.clear()


async def _poison(program: Program, kind: str) -> None:
    await POISONS[kind](program)


async def _all(program: Program, mode: str, index: int, steps: list[Any], function: str = "sweep") -> None:
    params = (steps, program.register)
    if mode == "async":
        program.ctx.call_all_async(PROGRAMMED[index].name, function, params)
        return
    for result in await program.ctx.call_all(PROGRAMMED[index].name, function, params):
        program.register = (program.register * 31 + result) % MODULUS


async def _survey(program: Program, mode: str, index: int, steps: list[Any]) -> None:
    await _all(program, mode, index, steps, "survey")


_STEPS: Final[Mapping[str, Callable[..., Awaitable[None]]]] = {
    "read": _read,
    "add": _add,
    "mix": _mix,
    "set": _set,
    "keep": _keep,
    "delete": _delete,
    "guard": _guard,
    "call": _call,
    "look": _look,
    "carry": _carry,
    "fresh": _fresh,
    "if": _if,
    "try": _try,
    "raise": _raise,
    "random": _random,
    "now": _now,
    "uuid": _uuid,
    "unique": _unique,
    "next": _next,
    "last": _last,
    "restart": _restart,
    "rows": _rows,
    "later": _later,
    "cancel": _withdraw,
    "emit": _emit,
    "emit at": _emit_at,
    "kept": _kept,
    "lives": _lives,
    "links": _links,
    "all": _all,
    "survey": _survey,
    "mutate": _mutate,
    "spin": _spin,
    "outside": _outside,
    "poison": _poison,
}


async def run(ctx: Context, program: list[Any], caller: list[Any] | None = None, register: int = 0) -> Any:
    """Runs a program on this entity; `caller` is the calling entity's [operator, key]. Returns the register, which is
    `register` at first.
    """
    running = Program(ctx, program, caller, register)
    await running.run(program)
    return running.register


async def hot(ctx: Context, program: list[Any], caller: list[Any] | None = None, register: int = 0) -> Any:
    """As `run`, of a program that is said to be in conflict, which some are not."""
    return await run(ctx, program, caller, register)


async def near(ctx: Context, program: list[Any], caller: list[Any] | None = None, register: int = 0) -> Any:
    """As `run`; it is said to stay on its slot, which some programs do not."""
    running = Program(ctx, program, caller, register, near=True)
    await running.run(program)
    return running.register


async def look(ctx: Context, program: list[Any], caller: list[Any] | None = None) -> Any:
    """As `run`, of a program that only reads, or is ended."""
    return await run(ctx, program, caller)


async def sweep(ctx: PartitionContext, steps: list[Any], register: int = 0) -> int:
    """Runs steps on this partition; returns their register."""
    index = [operator.name for operator in PROGRAMMED].index(ctx.operator)
    running = Sweep(ctx, [key_of(index, n) for n in range(SWEPT_KEYS)], register)
    await running.run(steps)
    return running.register


async def survey(ctx: PartitionContext, steps: list[Any], register: int = 0) -> int:
    """As `sweep`, of steps that only read, or are ended."""
    return await sweep(ctx, steps, register)


def register_sweeps(operator: Operator) -> None:
    """Registers the partition functions."""
    operator.register_partition(sweep)
    operator.register_partition(read_only=True)(survey)


for _operator in PROGRAMMED:
    _operator.register(run)
    _operator.register(contended=True)(hot)
    _operator.register(local=True)(near)
    _operator.register(read_only=True)(look)
    register_sweeps(_operator)

register_ticks(text)

app = App("chaos", [text, number, pair, account, fleeting])
emitting = App("chaos", [text, number, pair, account, fleeting], events=EVENTS)
"""The same app with events, for programs that emit some."""
