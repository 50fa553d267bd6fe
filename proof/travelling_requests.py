"""Random requests whose numbers travel: read or counted on one entity, and then an argument, a key, a result or a
condition on another, over several slots.

They make the lock phase patch call graphs. The programs are those of `proof.chaos_app`.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec

from proof.chaos_app import PROGRAMMED, key_of
from proof.random_requests import Profile, Steps, request_key
from styx.messages import Request

HOPS_MAX: Final = 4
"""Entities behind the first one in one line of calls."""
HOT_KEYS: Final = 2
"""Entities of each operator at which numbers begin."""

_encode = msgspec.msgpack.Encoder().encode


def random_travel(rng: Random, profile: Profile, request_id: str) -> Request:
    """One request for `proof.chaos_app.app`."""
    index = rng.randrange(len(PROGRAMMED))
    number = rng.randrange(HOT_KEYS if rng.random() < 0.6 else profile.keys)
    program = _program(rng, profile, rng.randint(1, HOPS_MAX))
    return Request(request_id, PROGRAMMED[index].name, request_key(key_of(index, number)), "run", _encode([program]))


def _program(rng: Random, profile: Profile, hops: int) -> Steps:
    """Gets a number, and sends it on; what is at the end of the line does something with it."""
    steps: Steps = _number(rng)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        steps += _sent_on(rng, profile, hops)
    return steps + (_local(rng) if rng.random() < 0.5 else [])


def _number(rng: Random) -> Steps:
    """The register becomes a number that other transactions change."""
    hot: Any = ["at", rng.randrange(len(PROGRAMMED)), rng.randrange(HOT_KEYS)]
    return rng.choice(
        [
            [["add", 1]],
            [["add", 1]],
            [["read"]],
            [["mix", rng.randint(1, 1_000)]],
            [["call", "sync", hot, [["add", 1]]]],
            [["call", "sync", hot, [["add", 1], ["mix", 7]]], ["keep"]],
            [["carry", "sync", hot, [["mix", rng.randint(1, 1_000)]]]],
        ]
    )


def _sent_on(rng: Random, profile: Profile, hops: int) -> Steps:
    if hops == 0:
        return _local(rng)
    operator = rng.randrange(len(PROGRAMMED))
    target: Any = (
        ["by", operator, profile.keys] if rng.random() < 0.5 else ["at", operator, rng.randrange(profile.keys)]
    )
    if rng.random() < 0.1:
        target = ["caller"]
    below = _program(rng, profile, hops - 1) if rng.random() < 0.6 else _local(rng)
    call: Steps = [[rng.choice(["call", "carry", "carry"]), rng.choice(["sync", "async"]), target, below]]
    chance = rng.random()
    if chance < 0.15:
        return [["if", rng.randint(1, 6), call, _local(rng)]]
    if chance < 0.25:
        return [["try", [*call, ["guard", rng.randint(-5, 60)]]]]
    return call + (_local(rng) if chance < 0.5 else [])


def _local(rng: Random) -> Steps:
    """Uses the register on this entity."""
    return rng.choice(
        [
            [["mix", rng.randint(1, 1_000)]],
            [["mix", rng.randint(1, 1_000)]],
            [["keep"]],
            [["add", 1]],
            [["read"]],
            [["mix", 3], ["guard", rng.randint(0, 500_000)]],
            [["if", rng.randint(1, 6), [["raise"]], [["mix", 5]]]],
            [["if", rng.randint(1, 6), [["delete"]], [["mix", 9]]]],
        ]
    )
