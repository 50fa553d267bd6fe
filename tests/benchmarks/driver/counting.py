"""A workload small enough to be wrong in a known way: every request adds one to a counter, or refuses to."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from benchmarks.driver.workload import Audit, Generator, Loading, Planned
from styx import App, Context, Operator
from styx.client.base import Client
from styx.messages import Reply

counter = Operator("counter", key_type=int)
KEYS = 20
REFUSED_EVERY = 10


class Refused(Exception):
    """By the will of the workload."""


@counter.register
async def add(ctx: Context, refuse: bool) -> int:
    value = (await ctx.get() or 0) + 1
    if refuse:
        raise Refused("not this one")
    await ctx.put(value)
    return int(value)


@counter.register
async def total(ctx: Context) -> int:
    return int(await ctx.get() or 0)


app = App("counting", operators=[counter])


class Counting:
    """`forget`: how many commits the witness leaves out."""

    name = "counting"
    app = app
    app_target = f"{__name__}:app"

    def __init__(self, forget: int = 0) -> None:
        self.settings: dict[str, Any] = {"forget": forget}
        self._forget = forget

    def initial(self) -> Iterable[Loading]:
        yield Loading(counter, KEYS, ((key, 0) for key in range(KEYS)))

    def generator(self, client: int, clients: int, seed: int) -> Generator:
        return CountingGenerator(self._forget if client == 0 else 0)

    async def audit(self, client: Client, witnesses: list[Any]) -> Audit:
        found = sum([await client.call(counter, key, total) for key in range(KEYS)])
        committed = sum(witness["committed"] for witness in witnesses)
        violations = [] if found == committed else [f"{found} were added, {committed} committed"]
        return Audit([f"{KEYS} counters"], violations)


class CountingGenerator:
    def __init__(self, forget: int = 0) -> None:
        self.drawn = 0
        self.committed = -forget
        self.unknowns = 0

    def next(self) -> Planned:
        self.drawn += 1
        return Planned("add", counter, self.drawn % KEYS, "add", (self.drawn % REFUSED_EVERY == 0,))

    def answered(self, planned: Planned, reply: Reply) -> None:
        self.committed += reply.error is None

    def unknown(self, planned: Planned) -> None:
        self.unknowns += 1

    def witness(self) -> Any:
        return {"committed": self.committed}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--forget", type=int, default=0)


def make_workload(options: argparse.Namespace) -> Counting:
    return Counting(options.forget)
