"""A fixed piece of work, timed beside each measurement. It shows whether a shared machine was in a slow phase."""

from __future__ import annotations

import statistics
import time
from typing import Final

import msgspec

ROUNDS: Final = 3
MESSAGES: Final = 100_000
"""In one round: a few tens of milliseconds."""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds of processor time and of the clock for one round, as medians of `ROUNDS`. The two differ if other
    processes had the processor meanwhile. Both grow if the processor is slower.
    """

    cpu_ms: float
    wall_ms: float


def calibrate() -> Calibration:
    """Blocks for a fraction of a second."""
    cpu_ms, wall_ms = [], []
    for _ in range(ROUNDS):
        wall_s, cpu_s = time.perf_counter(), time.thread_time()
        _work()
        cpu_ms.append((time.thread_time() - cpu_s) * 1e3)
        wall_ms.append((time.perf_counter() - wall_s) * 1e3)
    return Calibration(cpu_ms=statistics.median(cpu_ms), wall_ms=statistics.median(wall_ms))


def _work() -> int:
    """The engine's most frequent work: encoding, decoding and look-ups of Python objects."""
    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(dict[str, int]).decode
    table: dict[int, bytes] = {}
    total = 0
    for number in range(MESSAGES):
        key = number * 7919 % 1000
        state = decode(table[key]) if key in table else {"balance": 0, "version": 1}
        state["balance"] += number
        total += state["balance"]
        table[key] = encode(state)
    return total
