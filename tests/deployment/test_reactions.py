"""Subscriptions and graphs in packages: they come back as they were, and count in fingerprints."""

from __future__ import annotations

from typing import Any

import pytest

from styx import App
from styx.deployment.fingerprint import fingerprint, function_modules
from styx.deployment.package import pack, read_header, unpack
from styx.schema.description import describe
from styx.testing import embedded_cluster
from tests.deployment.conftest import Load

pytestmark = pytest.mark.anyio
SECRET = b"a secret of this test"
SOURCE = """
from datetime import timedelta

import msgspec

from styx import App, Context, Event, Graph, Operator, Retry

TARGET = "t"

class Moved(msgspec.Struct):
    by: int
    group: str

moved = Event("moved", Moved)
source, target = Operator("source"), Operator("target")

def group_of(event):
    return event.group

@source.register
async def move(ctx: Context, by: int) -> None:
    ctx.emit(moved, Moved(by, "g"))

@target.on(moved, key=lambda event: TARGET)
async def take(ctx: Context, event: Moved) -> None:
    await ctx.put(await ctx.get(0) + event.by)

RETRY = Retry(3, timedelta(seconds=2))

@target.on(moved, key=lambda event: "later", after_commit=True, retry=RETRY, ordered_by=group_of)
async def note(ctx: Context, event: Moved) -> None:
    await ctx.put([*await ctx.get([]), event.by])

moves = Graph("moves", start=source.move).edge(source.move, target.take).terminal(target.take)
moves.publishes(source.move, moved)
app = App("moving", [source, target], events=[moved], graphs=[moves])
"""


def loaded(load: Load, change: tuple[str, str] = ("", "")) -> App:
    app: App = load({"moving.py": SOURCE.replace(*change)}, "moving").app
    return app


async def moved(app: App) -> Any:
    async with embedded_cluster(app) as cluster:
        await cluster.call("source", "s", "move", 4)
        await cluster.call("source", "s", "move", 5)
    return cluster.state()


async def test_they_come_back_as_they_were(load: Load) -> None:
    app = loaded(load)
    unpacked = unpack(pack(app, SECRET), SECRET)
    assert describe(unpacked) == describe(app)
    assert describe(unpack(pack(unpacked, SECRET), SECRET)) == describe(app)
    subscriptions = unpacked.operators["target"].subscriptions
    assert [each.described() for each in subscriptions] == [
        "take on moved, key=",
        "note on moved, key=, after the commit, ordered_by=, 3 attempts, 2000000 us",
    ]
    assert unpacked.graphs["moves"].publishes[0][1] is unpacked.events["moved"]


async def test_what_was_packed_reacts(load: Load) -> None:
    app = unpack(pack(loaded(load), SECRET), SECRET)
    async with embedded_cluster(app) as cluster:
        await cluster.call("source", "s", "move", 4)
        assert cluster.entity("target", "t") == 4


CHANGES = [
    ("after_commit=True, retry=RETRY, ordered_by=group_of", "after_commit=True"),
    ("Retry(3, ", "Retry(4, "),
    ('TARGET = "t"', 'TARGET = "u"'),
    (".publishes(source.move, moved)", ""),
    ('Graph("moves", ', 'Graph("steps", '),
    ("return event.group", "return event.by"),
]


@pytest.mark.parametrize("change", CHANGES, ids=range(len(CHANGES)))
async def test_each_change_gives_another_fingerprint(load: Load, change: tuple[str, str]) -> None:
    found, packed = [], []
    for each in (("", ""), change):  # the sources are read while they are those of the app
        app = loaded(load, each)
        found.append(fingerprint(app, function_modules(app)))
        packed.append(read_header(pack(app, SECRET), SECRET).fingerprint)
    assert found[0] != found[1]
    assert packed[0] != packed[1]
