"""Random requests that work on rows which refer to other entities, and on what these refer to.

What the steps do stands in `proof.link_steps`. Entities and ids are few, so that parents are often there, and often go.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec

from proof.chaos_app import PROGRAMMED, key_of
from proof.link_steps import IDS
from proof.random_requests import Steps, request_key
from proof.random_rows import ENTITIES, SHELVES
from proof.row_steps import MODULUS, RANKS
from styx.messages import Request

DEPTH_MAX: Final = 2
STEPS_MAX: Final = 3
_encode = msgspec.msgpack.Encoder().encode


def random_links(rng: Random, request_id: str) -> Request:
    """One request for `proof.chaos_app.app`."""
    index = rng.randrange(len(PROGRAMMED))
    key = request_key(key_of(index, rng.randrange(ENTITIES)))
    return Request(request_id, PROGRAMMED[index].name, key, "run", _encode([_program(rng, index, 0)]))


def _program(rng: Random, index: int, depth: int) -> Steps:
    """Steps on an entity of an operator."""
    steps: Steps = []
    for _ in range(rng.randint(1, STEPS_MAX)):
        drawn = rng.random()
        if drawn < 0.3 and depth < DEPTH_MAX:
            steps.append(_call(rng, index, depth))
        elif drawn < 0.65:
            steps.append(_link_step(rng, index))
        else:
            steps.append(_parent_step(rng))
    if rng.random() < 0.3:
        steps.append(["mix", rng.randrange(100)])
    return steps


def _link_step(rng: Random, index: int) -> list[Any]:
    id, mark = rng.randrange(IDS), rng.randrange(IDS)
    far = _parts(rng, index + 1)
    name = rng.choice(["link", "link", "link", "turn", "turn", "unlink", "seen"])
    operands: dict[str, list[Any]] = {
        "link": [id, far, mark, _parts(rng, index + 2)],
        "turn": [id, far, mark],
        "unlink": [id],
        "seen": [],
    }
    return ["links", name, *operands[name]]


def _parts(rng: Random, index: int) -> list[Any] | None:
    if rng.random() < 0.3:
        return None
    key = key_of(index % 3, rng.randrange(ENTITIES))
    return list(key) if isinstance(key, tuple) else [key]


def _parent_step(rng: Random) -> list[Any]:
    """Makes or deletes what rows of others refer to."""
    drawn, mark = rng.random(), rng.randrange(IDS)
    if drawn < 0.45:
        return ["rows", "put", 0, mark, rng.randrange(SHELVES), rng.randrange(RANKS)]
    if drawn < 0.65:
        return ["rows", "remove", 0, mark]
    if drawn < 0.72:
        return ["rows", "purge", 0, rng.randrange(SHELVES), 0, MODULUS]
    return ["delete"] if drawn < 0.8 else ["keep"]


def _call(rng: Random, index: int, depth: int) -> list[Any]:
    """Mostly to the entities that the own one's rows may refer to."""
    other = (index + rng.choice([0, 1, 1, 2, 2])) % 3
    program = _program(rng, other, depth + 1)
    name, mode = rng.choice(["call", "call", "carry"]), rng.choice(["sync", "async", "async"])
    return [name, mode, ["at", other, rng.randrange(ENTITIES)], program]
