"""The app of the transcripts: every request carries a short script, and a key's last digit is its slot.

`near` is the same function, said to stay on its slot; what it calls is `near` as well.

An entity is a number. A script is steps separated by `;`, and runs on the entity it is sent to:

    get / put N / add N / delete    `it` becomes the number read, put or computed (0 if there is none)
    need N                          raises `Short` if the number is below N
    fail WORD                       raises `Failed`
    send KEY (script)               an asynchronous call
    ask KEY (script)                a synchronous call; `it` becomes its result
    if N (script) (script)          the first script if `it` is at least N, else the second
    look KEY (script)               as `ask`, of the read-only function; it ends a transaction that would write
    later KEY (script)              a call after commit
    after N KEY WORD (script)       a call N seconds later under the name WORD, tried twice, 10 seconds apart
    emit WORD                       emits the event `told`, in a cluster with events=1
    tell KEY (script)               emits the event `ordered`, in a cluster with events=1: the script runs on the
                                    listener KEY, after the commit, in the order of the emitting entity, tried twice
    cancel WORD                     withdraws that call; `it` becomes 1 if it still waited
    all WORD (script)               a call on all partitions, each of which asks the entity WORD and its number to run
                                    the script; `it` becomes the sum of the results
    forever KEY                     sends itself to KEY
    spin                            never ends: the watchdog ends it
    row N V                         puts the entity's row N, with the value V
    take N                          removes the row N
    rows A B                        `it` becomes the number of rows with values from A to B
    sum A B                         `it` becomes the sum of these values
    account N V                     puts the entity's account N, with V in it
    more N V                        adds V to the account N, without reading it
    close N                         removes the account N
    held N                          `it` becomes what is in the account N
    accounts                        `it` becomes the number of accounts
    name N V                        inserts the entity's row N, with a value V that no other of its rows has
    unname N                        removes that row
    outside WORD                    an external function; `it` becomes its result

What a read-only function sends and asks is for the read-only function as well. N is a number or `it`. The function's
result is `it`. Never part of the engine; knows nothing of workers or epochs.
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Any

from msgspec import Meta, Struct

from proof.spinning import spin
from styx import App, Context, Event, Index, Operator, PartitionContext, Retry, between
from styx.model.partitioning import stable_hash

SLOT_COUNTS = (1, 2, 3, 4)
"""Numbers of slots for which a key's digit is its slot."""
TWICE = Retry(attempts=2, first=timedelta(seconds=10))
_COMMON_MULTIPLE = 12
_PARTITION_KEYS = {
    digit: next(n for n in range(1_000) if stable_hash(n) % _COMMON_MULTIPLE == digit) for digit in range(4)
}
_TOKEN = re.compile(r"[();]|[^\s();]+")

Step = tuple[str, tuple["str | Script", ...]]
Script = tuple[Step, ...]


class Short(Exception):
    """The number is below what was needed."""


class Failed(Exception):
    """The script said so."""


def slot_digit(key: str) -> int:
    """The slot that a key names with its last character."""
    return int(key[-1])


def _partition_key(key: str) -> int:
    return _PARTITION_KEYS[slot_digit(key)]


told: Event[str] = Event("told", str)
ordered: Event[str] = Event("ordered", str)
"""A key and a script."""


class Line(Struct):
    """A row of an entity."""

    n: int
    value: int


class Account(Struct):
    """A row that is added to."""

    n: int
    held: int


class Named(Struct):
    """A row whose value is its own, among those of its entity."""

    n: int
    value: int


entity = Operator("entity", partition_key=_partition_key)
lines = entity.table("lines", Line, key="n", indexes=[Index("by_value", order="value")])
accounts = entity.table("accounts", Account, key="n")
names = entity.table("names", Named, key="n", indexes=[Index("own", equal="value", unique=True)])


@entity.register
async def run(ctx: Context, script: str) -> int:
    """Runs the script on this entity."""
    return await _Interpreter(ctx, script, run).run(parse(script), 0)


@entity.register(local=True)
async def near(ctx: Context, script: str) -> int:
    """As `run`, on one slot if the script keeps to it."""
    return await _Interpreter(ctx, script, near).run(parse(script), 0)


@entity.register(contended=True)
async def hot(ctx: Context, script: str) -> int:
    """As `run`, left to the lock phase."""
    return await _Interpreter(ctx, script, run).run(parse(script), 0)


@entity.register(read_only=True)
async def look(ctx: Context, script: str) -> int:
    """Runs a script that only reads on this entity."""
    return await _Interpreter(ctx, script, look).run(parse(script), 0)


@entity.register_partition
async def everywhere(ctx: PartitionContext, script: str, word: str) -> int:
    """Runs the script on the partition's entity of that name."""
    return int(await ctx.call(entity, run, f"{word}{ctx.partition}", (script,)))


listener = Operator("listener", partition_key=_partition_key)


@listener.on(ordered, key=lambda event: event.partition(" ")[0], after_commit=True, retry=TWICE)
async def hear(ctx: Context, event: str) -> None:
    """Runs the script behind the key."""
    script = event.partition(" ")[2]
    await _Interpreter(ctx, script, run).run(parse(script), 0)


app = App("scripted", [entity])
emitting = App("scripted", [entity, listener], events=[told, ordered])
"""The same with events, which ask for marks, and who hears them."""


def version(kind: str, bound: int) -> App:
    """A version that takes only numbers `below` the bound, or only those `from` it on, and adds it to all others; or
    one `without` the operator.
    """
    if kind == "without":
        return App("scripted", [])
    if kind == "below":
        choosy = Operator("entity", partition_key=_partition_key, state_type=Annotated[int, Meta(lt=bound)])
    else:
        assert kind == "from"
        choosy = Operator(
            "entity",
            partition_key=_partition_key,
            state_type=Annotated[int, Meta(ge=bound)],
            migrate=lambda old: old + bound,
        )
    choosy.register(run)
    choosy.register(local=True)(near)
    choosy.register(contended=True)(hot)
    choosy.register(read_only=True)(look)
    return App("scripted", [choosy])


@lru_cache(maxsize=256)
def parse(text: str) -> Script:
    """The steps of a script; raises `ValueError`."""
    tokens = _TOKEN.findall(text)
    script = _script(tokens)
    if tokens:
        raise ValueError(f"cannot read {text!r} from {tokens[0]!r} on")
    return script


def _script(tokens: list[str]) -> Script:
    steps: list[Step] = []
    while tokens and tokens[0] != ")":
        name, operands = tokens.pop(0), list[str | Script]()
        while tokens and tokens[0] not in (";", ")"):
            operands.append(_block(tokens) if tokens[0] == "(" else tokens.pop(0))
        if tokens and tokens[0] == ";":
            tokens.pop(0)
        steps.append((name, tuple(operands)))
    return tuple(steps)


def _block(tokens: list[str]) -> Script:
    tokens.pop(0)
    script = _script(tokens)
    if not tokens:
        raise ValueError("a bracket is not closed")
    tokens.pop(0)
    return script


def written(script: Script) -> str:
    """The text of a script."""
    return "; ".join(" ".join([name, *map(_operand, operands)]) for name, operands in script)


def _operand(operand: str | Script) -> str:
    return operand if isinstance(operand, str) else f"({written(operand)})"


async def outside(word: str) -> int:
    """The external function; nothing ever runs it, the transcript says what it gives."""
    raise NotImplementedError(word)


class _Interpreter:
    def __init__(self, ctx: Context, text: str, function: Any) -> None:
        self.ctx = ctx
        self.function = function
        self.text = text

    async def run(self, script: Script, it: int) -> int:
        for name, operands in script:
            words = [operand for operand in operands if isinstance(operand, str)]
            scripts = [operand for operand in operands if not isinstance(operand, str)]
            it = await self.step(name, words, scripts, it)
        return it

    async def step(self, name: str, words: list[str], scripts: list[Script], it: int) -> int:
        if name in ("send", "ask", "look", "forever"):
            return await self._call(name, words[0], scripts, it)
        if name in ("later", "after", "cancel", "emit", "tell"):
            return await self._later(name, words, scripts, it)
        if name == "all":
            return sum(await self.ctx.call_all(entity, everywhere, (written(scripts[0]), words[0])))
        if name == "outside":
            return int(await self.ctx.call_external(outside, words[0]))
        if name == "if":
            return await self.run(scripts[it < int(words[0])], it)
        if name == "spin":
            spin(self.ctx, True)
        if name == "fail":
            raise Failed(words[0])
        if name in ("row", "take", "rows", "sum", "name", "unname"):
            return await self._rows(name, [int(word) for word in words], it)
        if name in ("account", "more", "close", "held", "accounts"):
            return await self._accounts(name, [int(word) for word in words], it)
        return await self._local(name, it if words == ["it"] else int(words[0]) if words else 0)

    async def _rows(self, name: str, numbers: list[int], it: int) -> int:
        rows = self.ctx.rows(lines)
        if name == "name":
            await self.ctx.rows(names).insert(Named(*numbers))
        elif name == "unname":
            await self.ctx.rows(names).delete(*numbers)
        elif name == "row":
            await rows.put(Line(*numbers))
        elif name == "take":
            await rows.delete(*numbers)
        elif name == "rows":
            return int(await rows.count(value=between(*numbers)))
        else:
            return sum(line.value for line in await rows.select(value=between(*numbers)))
        return it

    async def _accounts(self, name: str, numbers: list[int], it: int) -> int:
        rows = self.ctx.rows(accounts)
        if name == "account":
            await rows.put(Account(*numbers))
        elif name == "more":
            await rows.add(numbers[0], held=numbers[1])
        elif name == "close":
            await rows.delete(*numbers)
        elif name == "accounts":
            return int(await rows.count(scan=True))
        else:
            account = await rows.get(*numbers)
            return 0 if account is None else int(account.held)
        return it

    async def _later(self, name: str, words: list[str], scripts: list[Script], it: int) -> int:
        ctx = self.ctx
        if name == "emit":
            ctx.emit(told, words[0])
        elif name == "tell":
            ctx.emit(ordered, f"{words[0]} {written(scripts[0])}")
        elif name == "later":
            ctx.after_commit(entity, self.function, words[0], (written(scripts[0]),))
        elif name == "after":
            seconds, key, called = words
            delay = timedelta(seconds=int(seconds))
            ctx.after(delay, entity, self.function, key, (written(scripts[0]),), name=called, retry=TWICE)
        else:
            return int(await ctx.cancel(words[0]))
        return it

    async def _local(self, name: str, n: int) -> int:
        ctx = self.ctx
        number = 0 if name in ("put", "delete") else int(await ctx.get(0))
        if name == "need":
            if number < n:
                raise Short(f"{ctx.key} has {number}, needs {n}")
        elif name == "delete":
            await ctx.delete()
        elif name in ("add", "put"):
            number += n
            await ctx.put(number)
        elif name != "get":
            raise ValueError(f"no step {name!r}")
        return number

    async def _call(self, name: str, key: str, scripts: list[Script], it: int) -> int:
        text = self.text if name == "forever" else written(scripts[0])
        function = look if name == "look" else self.function
        if name in ("ask", "look"):
            return int(await self.ctx.call(entity, function, key, (text,)))
        self.ctx.call_async(entity, function, key, (text,))
        return it
