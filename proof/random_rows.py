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
_SUMS: Final = 3
_GROWN: Final = (1, 1, 2)
_GROWING: Final = 3
"""Ids of the rows that are added to, and of those in sums."""
_encode = msgspec.msgpack.Encoder().encode
_OFTEN: Final = ("put", "scan", "count", "grow")
_NAMES: Final = [name for name in ROW_STEPS for _ in range(2 if name in _OFTEN else 1)]


def random_rows(rng: Random, request_id: str) -> Request:
    """One request for `proof.chaos_app.app`, at times for its local function."""
    if rng.random() < 0.3:
        index, entity, program = 0, 0, _adding(rng, 0)
    else:
        index, entity, program = rng.randrange(len(PROGRAMMED)), rng.randrange(ENTITIES), _program(rng, 0)
    function = "near" if rng.random() < 0.2 else "run"
    key = request_key(key_of(index, entity))
    return Request(request_id, PROGRAMMED[index].name, key, function, _encode([program]))


def random_row_look(rng: Random, request_id: str) -> Request:
    """One request for a read-only function, which reads rows."""
    index = rng.randrange(len(PROGRAMMED))
    key = request_key(key_of(index, rng.randrange(ENTITIES)))
    steps = [row_step(rng, reading=rng.random() < 0.97) for _ in range(rng.randint(1, STEPS_MAX))]
    return Request(request_id, PROGRAMMED[index].name, key, "look", _encode([steps]))


def row_step(rng: Random, reading: bool = False) -> list[Any]:
    """One step, `reading` one that writes nothing."""
    name = rng.choice([each for each in _NAMES if each in READS] if reading else _NAMES)
    if name == "tally" or (name in READS and rng.random() < 0.1):
        return ["rows", name, _SUMS, *_operands(rng, name, of_sums=True)]
    return ["rows", name, rng.choice(_GROWN if name == "grow" else _TABLES), *_operands(rng, name)]


def _operands(rng: Random, name: str, of_sums: bool = False) -> list[int]:
    shelf, id = rng.randrange(SHELVES), rng.randrange(_GROWING if of_sums else IDS)
    if name in ("grow", "tally"):
        return [id % _GROWING, rng.choice([-1, 1, 1, 2])]
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


def _adding(rng: Random, depth: int) -> Steps:
    """Hardly anything but additions to two rows of one entity, also by calls."""
    steps: Steps = []
    for _ in range(rng.randint(1, 3)):
        drawn, id, n = rng.random(), rng.randrange(2), rng.choice([-1, 1, 2])
        if drawn < 0.3 and depth < 2:
            call = ["call", rng.choice(["sync", "async", "async"]), ["at", 0, 0], _adding(rng, depth + 1)]
            # By way of another slot a branch arrives behind a later one.
            detour = rng.random() < 0.5
            steps.append(["call", "async", ["at", rng.randrange(1, 3), rng.randrange(2)], [call]] if detour else call)
        elif drawn < 0.38:
            steps.append(["rows", "put", 1, id, 0, n])
        elif drawn < 0.44:
            steps.append(["rows", "remove", 1, id])
        elif drawn < 0.48:
            steps.append(["rows", "get", rng.choice((1, _SUMS)), id])
        else:
            steps.append(["rows", "tally", _SUMS, id, n] if rng.random() < 0.6 else ["rows", "grow", 1, id, n])
    return steps


def _call(rng: Random, depth: int) -> list[Any]:
    """With the register as its argument, as its key, or without it."""
    index = rng.randrange(len(PROGRAMMED))
    target: list[Any] = rng.choice(
        [["at", index, rng.randrange(ENTITIES)], ["by", index, ENTITIES], ["self"], ["self"]]
    )
    name = rng.choice(["call", "carry"])
    return [name, rng.choice(["sync", "async", "async"]), target, _program(rng, depth + 1)]
