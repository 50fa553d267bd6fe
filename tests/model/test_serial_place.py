"""Places sort as the serial execution runs what stands there."""

from __future__ import annotations

import re
from itertools import product
from random import Random
from typing import Any

import msgspec
import pytest

from styx import App, Context, Operator
from styx.messages import Request
from styx.model.serial_place import PLACE_LETTERS, place_text, serial_place
from styx.testing.serial import SerialReference

node = Operator("node")
places: list[bytes] = []


@node.register
async def run(ctx: Context, steps: list[Any]) -> None:
    for kind, below in steps:
        places.append(serial_place(ctx))
        if kind == "call":
            await ctx.call(node, run, "n", (below,))
        elif kind == "async":
            ctx.call_async(node, run, "n", (below,))
    places.append(serial_place(ctx))


def steps(rng: Random, depth: int) -> list[Any]:
    kinds = ["say", "call", "async"] if depth else ["say"]
    return [[rng.choice(kinds), steps(rng, depth - 1)] for _ in range(rng.randrange(4))] if depth >= 0 else []


@pytest.mark.parametrize("seed", range(60))
def test_places_are_in_the_serial_order(seed: int) -> None:
    places.clear()
    params = msgspec.msgpack.encode([steps(Random(seed), 4)])
    outcome = SerialReference(App("tree", [node])).run(1, 0, Request("r", "node", "n", "run", params))
    assert outcome.error is None
    assert places == sorted(places)
    texts = [place_text(place) for place in places]
    assert texts == sorted(texts)
    assert [len(set(texts[:at])) for at in range(len(texts))] == [len(set(places[:at])) for at in range(len(texts))]


@node.register
async def call_often(ctx: Context, times: int) -> None:
    for _ in range(times):
        places.append(serial_place(ctx))
        ctx.call_async(node, run, "n", ([],))


def test_the_places_of_a_root_however_often_it_calls() -> None:
    places.clear()
    params = msgspec.msgpack.encode([300])
    outcome = SerialReference(App("often", [node])).run(1, 0, Request("r", "node", "n", "call_often", params))
    assert outcome.error is None
    assert places[:300] == [b"\0\0" + (calls + 1).to_bytes(2, "big") + b"\0\0" for calls in range(300)]


def test_texts_sort_as_places_whatever_their_steps() -> None:
    steps = [0, 1, 2, 9, 10, 11, 99, 100, 999, 1_000, 9_999, 10_000, 65_001]
    places = sorted(b"".join(step.to_bytes(2, "big") for step in pair) for pair in product(steps, steps))
    texts = [place_text(place) for place in places]
    assert texts == sorted(texts)
    assert len(set(texts)) == len(texts)
    assert place_text(bytes.fromhex("0000 0001 000a 0064 03e8 2710 fde9")) == "01a10b100c1000d10000d65001"
    assert re.fullmatch(f"[{PLACE_LETTERS}]+", "".join(texts))
