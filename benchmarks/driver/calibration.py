"""A fixed piece of work, timed beside each measurement: on a shared machine, figures of a slow phase show as such."""

from __future__ import annotations

import statistics
import time
from typing import Final

import msgspec

ROUNDS: Final = 3
MESSAGES: Final = 100_000
"""In one round: a few tens of milliseconds."""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds of processor and of the clock for one round: the medians of `ROUNDS`.

    They differ where others were given the processor meanwhile; both grow where the processor itself is slower.
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
    """What the engine does most: encode, decode, look up, all in Python objects."""
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
