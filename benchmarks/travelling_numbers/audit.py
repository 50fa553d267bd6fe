"""The audit: every request has one reply, the numbers are those from 1 on in the replies' serial order, and all results
and all state are those of the serial execution.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from benchmarks.travelling_numbers import serial
from benchmarks.travelling_numbers.shapes import Arguments, Shape
from styx.client.base import Client
from styx.messages import Reply

SHOWN_MAX: Final = 5
"""Violations of a kind that are shown one by one."""
BEYOND: Final = 10
"""Invoices behind the last one that are looked for, and must not be there."""
READS_AT_ONCE: Final = 500


class Answered(NamedTuple):
    """A request's arguments and its reply, or why there is none."""

    arguments: Arguments
    reply: Reply | None
    why_not: str = ""


async def violations(client: Client, shape: Shape, answered: Sequence[Answered]) -> list[str]:
    """What is wrong, in a sentence each; empty if nothing is."""
    found = _without_result(answered)
    ordered = sorted(
        (each for each in answered if each.reply is not None and each.reply.error is None),
        key=lambda each: _place(each.reply),
    )
    results, state = serial.run(shape.name, [each.arguments for each in ordered])
    found += _differing_results(ordered, results)
    missing = len(answered) - len(ordered)
    beyond = range(len(ordered) + 1, len(ordered) + BEYOND + 1) if shape.name == "as_key" else ()
    expected: serial.Entities = {**state, **{("invoice", number): None for number in beyond}}
    if missing:
        # Each of them may have committed, so the state cannot be known.
        return [*found, f"the state was not compared, because {missing} requests have no result"]
    return found + await _differing_state(client, expected)


def _without_result(answered: Sequence[Answered]) -> list[str]:
    silent = [f"request {n} has no reply: {each.why_not}" for n, each in enumerate(answered) if each.reply is None]
    failed = [
        f"request {n} failed: {each.reply.error.type}: {each.reply.error.message}"
        for n, each in enumerate(answered)
        if each.reply is not None and each.reply.error is not None
    ]
    return [*_some(silent), *_some(failed)]


def _differing_results(ordered: Sequence[Answered], results: Sequence[Any]) -> list[str]:
    return _some(
        [
            f"the reply {_place(each.reply)} is {_result(each)}, but the serial execution gives {result}"
            for each, result in zip(ordered, results, strict=True)
            if _result(each) != result
        ]
    )


async def _differing_state(client: Client, expected: serial.Entities) -> list[str]:
    entities = list(expected)
    found: list[str] = []
    for first in range(0, len(entities), READS_AT_ONCE):
        some = entities[first : first + READS_AT_ONCE]
        replies = await asyncio.gather(*(client.read(operator, key) for operator, key in some))
        for entity, reply in zip(some, replies, strict=True):
            held = None if reply.error is not None else reply.result
            if reply.error is not None and reply.error.code != "unknown_entity":
                found.append(f"{entity[0]}[{entity[1]!r}] cannot be read: {reply.error.message}")
            elif held != expected[entity]:
                found.append(f"{entity[0]}[{entity[1]!r}] holds {held}, not {expected[entity]}")
    return _some(found)


def _place(reply: Reply | None) -> tuple[int, int, int]:
    assert reply is not None
    return reply.epoch, reply.phase, reply.tid


def _result(each: Answered) -> Any:
    assert each.reply is not None
    return each.reply.result


def _some(found: list[str]) -> list[str]:
    left = len(found) - SHOWN_MAX
    return found if left <= 0 else [*found[:SHOWN_MAX], f"and {left} more like that"]
