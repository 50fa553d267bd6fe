"""Random requests for the read-only function of the chaos app, and steps that call it from programs that write.

Most programs only read. Some contain a step that a read-only function must not make, some more calls than the
simulator's limits allow. Everything comes from the generator that is passed in. What the steps do stands in
`proof.chaos_app`.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec

from proof.chaos_app import PROGRAMMED, key_of
from proof.random_requests import Profile, Steps, request_key
from styx.messages import Request

DEPTH_MAX: Final = 3
"""Calls below calls in one program."""
BLOCK_STEPS_MAX: Final = 5
VIOLATING: Final = 0.15
"""Share of programs with a step that is not allowed."""

_encode = msgspec.msgpack.Encoder().encode
_WRITES: Final[tuple[Steps, ...]] = (
    ["mix", 3],
    ["add", 1],
    ["keep"],
    ["set", 7],
    ["delete"],
    ["uuid"],
    ["fresh", "async", []],
    ["outside", 4],
    ["poison", "swallowed"],
    ["call", "sync", ["at", 0, 0], [["read"]]],
    ["call", "async", ["at", 1, 1], [["mix", 9]]],
)


def random_look(rng: Random, profile: Profile, request_id: str) -> Request:
    """One request for a read-only function of `proof.chaos_app.app`."""
    index = rng.randrange(len(PROGRAMMED))
    key = request_key(key_of(index, rng.randrange(profile.keys)))
    steps = _reading(rng, profile, 0, [profile.calls_max])
    if rng.random() < VIOLATING:
        _insert(rng, steps, rng.choice(_WRITES))
    return Request(request_id, PROGRAMMED[index].name, key, "look", _encode([steps]))


def looking_step(rng: Random, profile: Profile) -> Steps:
    """One call of a read-only function; the caller computes with what it returns, if it waits."""
    steps = _reading(rng, profile, 1, [4])
    if rng.random() < VIOLATING / 3:
        _insert(rng, steps, rng.choice(_WRITES))
    return ["if", 7, [["look", _mode(rng), _target(rng, profile), steps], ["mix", 19]], []]


def _reading(rng: Random, profile: Profile, depth: int, left: list[int]) -> Steps:
    """The program of one invocation; `left` counts the calls that may still be made."""
    steps: Steps = [["read"]]
    for _ in range(rng.randint(1, BLOCK_STEPS_MAX)):
        if rng.random() < 0.4 and left[0] > 0 and depth < DEPTH_MAX:
            left[0] -= 1
            steps.append(["look", _mode(rng), _target(rng, profile), _reading(rng, profile, depth + 1, left)])
        else:
            steps.append(_local(rng))
    return steps


def _local(rng: Random) -> list[Any]:
    choices: list[tuple[int, list[Any]]] = [
        (12, ["read"]),
        (3, ["guard", rng.randint(-20, 60)]),
        (2, ["random"]),
        (2, ["now"]),
        (2, ["mutate"]),
        (2, ["try", [["raise"]]]),
        (1, ["if", rng.randint(1, 6), [["raise"]], [["read"]]]),
    ]
    return rng.choices([step for _, step in choices], [weight for weight, _ in choices])[0]


def _mode(rng: Random) -> str:
    return rng.choice(["sync", "async"])


def _target(rng: Random, profile: Profile) -> list[Any]:
    index = rng.randrange(len(PROGRAMMED))
    at: list[Any] = ["at", index, rng.randrange(profile.keys)]
    return rng.choice([at, at, ["by", index, profile.keys], ["self"], ["caller"]])


def _insert(rng: Random, steps: Steps, step: Steps) -> None:
    """Puts a step into a block of the program."""
    inner = [each[-1] for each in steps if each[0] == "look"]
    if inner and rng.random() < 0.6:
        _insert(rng, rng.choice(inner), step)
    else:
        steps.insert(rng.randint(0, len(steps)), step)
