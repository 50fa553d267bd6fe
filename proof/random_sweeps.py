"""Random requests that work on whole partitions, and on the rows of entities that these meet.

What a sweep does stands in `proof.partition_steps`.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec

from proof.chaos_app import PROGRAMMED, key_of
from proof.random_requests import Steps, request_key
from proof.random_rows import ENTITIES, SHELVES, row_step
from proof.row_steps import MODULUS, RANKS
from styx.messages import Request

STEPS_MAX: Final = 3
_ENDS: Final = ([0, 0], [0, 0], [1, 0], [0, 2])
_MODES: Final = ["sync"] * 12 + ["async"] * 6 + ["stray"]
_encode = msgspec.msgpack.Encoder().encode


def random_sweep(rng: Random, request_id: str, spin: Steps | None = None) -> Request:
    """One request for `proof.chaos_app.app`: half of them change rows of an entity, the others sweep. With `spin`, an
    entity that it visits runs these steps.
    """
    index = rng.randrange(len(PROGRAMMED))
    key = request_key(key_of(index, rng.randrange(ENTITIES)))
    steps: Steps = [row_step(rng)]
    if rng.random() < 0.5:
        steps.insert(rng.randrange(2), _all(rng, spin))
        if rng.random() < 0.3:
            steps.append(["if", rng.randint(1, 6), [row_step(rng)], [_all(rng)]])
    if rng.random() < 0.5:
        steps.append(["mix", rng.randrange(100)])
    if rng.random() < 0.2:
        steps += _beside(rng)
    return Request(request_id, PROGRAMMED[index].name, key, "run", _encode([steps]))


def random_survey(rng: Random, request_id: str) -> Request:
    """One read-only request that sweeps, and at times tries to write."""
    index = rng.randrange(len(PROGRAMMED))
    key = request_key(key_of(index, rng.randrange(ENTITIES)))
    steps = [_step(rng, reading=rng.random() < 0.95) for _ in range(rng.randint(1, STEPS_MAX))]
    survey = ["survey", rng.choice(["sync", "async"]), rng.randrange(len(PROGRAMMED)), steps]
    return Request(request_id, PROGRAMMED[index].name, key, "look", _encode([[survey]]))


def _all(rng: Random, spin: Steps | None = None) -> list[Any]:
    steps = [_step(rng) for _ in range(rng.randint(1, STEPS_MAX))]
    visits = [_visited(rng) for _ in range(rng.choice([0, 0, 1, 2, 4]))]
    if spin is not None:
        visits.append(spin)
    for visited in visits:
        visit = ["visit", rng.choice(_MODES), rng.randrange(ENTITIES), visited]
        steps.insert(rng.randint(0, len(steps)), visit)
    return ["all", rng.choice(["sync", "sync", "async"]), rng.randrange(len(PROGRAMMED)), steps]


def _beside(rng: Random) -> Steps:
    """Two branches that run at once: one changes rows of an entity, the other changes those that its sweeps find."""
    index = rng.randrange(len(PROGRAMMED))
    target = ["at", index, rng.randrange(ENTITIES)]
    branches: Steps = [
        ["call", "async", target, [row_step(rng), row_step(rng)]],
        ["all", "async", index, [["bump", 0, rng.randrange(SHELVES), 0, MODULUS]]],
    ]
    return branches if rng.random() < 0.7 else branches[::-1]


def _visited(rng: Random) -> Steps:
    """What runs on an entity that a partition function calls. It may fail, as it may on other partitions; and it may
    call entities of other partitions, which others of those functions call as well.
    """
    kind = rng.choice(["row", "row", "fails", "leaves"])
    if kind == "fails":
        failing = ["raise"] if rng.random() < 0.5 else ["guard", MODULUS]
        return [["read"], ["if", rng.randint(1, 5), [["mix", rng.randrange(100)]], [failing]]]
    if kind == "leaves":
        target = ["at", rng.randrange(len(PROGRAMMED)), rng.randrange(2)]
        steps = [["mix", rng.randrange(100)], row_step(rng)]
        return [["carry", rng.choice(["sync", "sync", "async"]), target, steps], ["mix", rng.randrange(100)]]
    return [row_step(rng)]


def _step(rng: Random, reading: bool = False) -> list[Any]:
    name = rng.choice(["scan", "ids", "count"] if reading else ["scan", "ids", "count", "bump", "bump", "purge"])
    bounds = [0, MODULUS] if rng.random() < 0.5 else sorted([rng.randint(0, RANKS), rng.randint(1, RANKS)])
    ends = rng.choice(_ENDS) if name in ("scan", "ids") else []
    return [name, 0 if rng.random() < 0.8 else 1, rng.randrange(SHELVES), *bounds, *ends]
