"""Random requests that work on the rows of a few entities, and steps on rows in other requests.

What the steps do stands in `proof.row_steps`. Ids, shelves and ranks are few, so that rows meet ranges often.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec

from proof.chaos_app import PROGRAMMED, key_of
from proof.random_requests import Steps, request_key
from proof.row_steps import MODULUS, RANKS, READS, ROW_STEPS
from styx.messages import Request

ENTITIES: Final = 2
"""Entities of each operator that have rows."""
IDS: Final = 8
SHELVES: Final = 2
DEPTH_MAX: Final = 3
STEPS_MAX: Final = 4
_TABLES: Final = (0, 0, 0, 0, 1, 1, 2)
_encode = msgspec.msgpack.Encoder().encode
_NAMES: Final = [name for name in ROW_STEPS for _ in range(2 if name in ("put", "scan", "count") else 1)]


def random_rows(rng: Random, request_id: str) -> Request:
    """One request for `proof.chaos_app.app`, at times for its local function."""
    index = rng.randrange(len(PROGRAMMED))
    key = request_key(key_of(index, rng.randrange(ENTITIES)))
    function = "near" if rng.random() < 0.2 else "run"
    return Request(request_id, PROGRAMMED[index].name, key, function, _encode([_program(rng, 0)]))


def random_row_look(rng: Random, request_id: str) -> Request:
    """One request for a read-only function, which reads rows."""
    index = rng.randrange(len(PROGRAMMED))
    key = request_key(key_of(index, rng.randrange(ENTITIES)))
    steps = [row_step(rng, reading=rng.random() < 0.97) for _ in range(rng.randint(1, STEPS_MAX))]
    return Request(request_id, PROGRAMMED[index].name, key, "look", _encode([steps]))


def row_step(rng: Random, reading: bool = False) -> list[Any]:
    """One step, `reading` one that writes nothing."""
    name = rng.choice([each for each in _NAMES if each in READS] if reading else _NAMES)
    return ["rows", name, rng.choice(_TABLES), *_operands(rng, name)]


def _operands(rng: Random, name: str) -> list[int]:
    shelf, id = rng.randrange(SHELVES), rng.randrange(IDS)
    if name in ("put", "insert"):
        return [id, shelf, rng.randrange(RANKS)]
    if name in ("remove", "get"):
        return [id]
    if name in ("add", "group", "groups", "whole"):
        return [shelf]
    if name == "find":
        return [rng.randrange(RANKS)]
    if name == "guard":
        return [shelf, rng.randint(1, 6)]
    by_shelf = 1 if name in ("bump", "purge") else rng.randrange(2)
    bounds = (
        [0, MODULUS]
        if rng.random() < 0.4
        else sorted([rng.randint(0, RANKS if by_shelf else IDS), rng.randint(1, IDS)])
    )
    if name in ("bump", "purge"):
        return [shelf, *bounds]
    if name == "count":
        return [by_shelf, shelf, *bounds]
    return [by_shelf, shelf, *bounds, *rng.choice([[0, 0], [0, 0], [1, 0], [2, 0], [0, 1], [0, 2]])]


def _program(rng: Random, depth: int) -> Steps:
    """Rows, calls to other entities with rows, and something of the entity's own that shows the register."""
    steps: Steps = []
    for _ in range(rng.randint(1, STEPS_MAX)):
        drawn = rng.random()
        if drawn < 0.25 and depth < DEPTH_MAX:
            steps.append(_call(rng, depth))
        elif drawn < 0.35:
            steps.append(["if", rng.randint(1, 6), [row_step(rng)], [["mix", 5]] if rng.random() < 0.5 else []])
        elif drawn < 0.4:
            steps.append(["try", [row_step(rng)]])
        else:
            steps.append(row_step(rng))
    if rng.random() < 0.3:
        steps.append(["mix", rng.randrange(100)] if rng.random() < 0.7 else ["keep"])
    return steps


def _call(rng: Random, depth: int) -> list[Any]:
    """With the register as its argument, as its key, or without it."""
    index = rng.randrange(len(PROGRAMMED))
    target: list[Any] = rng.choice(
        [["at", index, rng.randrange(ENTITIES)], ["by", index, ENTITIES], ["self"], ["self"]]
    )
    name = rng.choice(["call", "carry"])
    return [name, rng.choice(["sync", "async", "async"]), target, _program(rng, depth + 1)]
