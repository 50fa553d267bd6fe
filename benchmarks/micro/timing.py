"""Processor time of one row of the micro-benchmarks, and how several runs of one are told."""

from __future__ import annotations

import statistics

from benchmarks.micro.engine_loop import EngineLoop
from benchmarks.micro.rows import ALL_AT_ONCE, Row, run_row
from benchmarks.reference.cpu_time import cpu_seconds
from styx.messages import decode_reply


def time_row(row: Row, count: int, at_once: int = ALL_AT_ONCE) -> tuple[float, EngineLoop, list[bytes]]:
    """CPU seconds of the engine alone on `count` requests of any row; the engine; its replies."""
    engine, routed = row.engine(), row.routed(count)
    given: list[bytes] = []
    engine_s = cpu_seconds(lambda: given.extend(run_row(engine, routed, at_once)))
    assert row.answered(given) == count
    errors = [decode_reply(data).error for data in given]
    assert all(error is None or error[0] == "aborted" for error in errors)
    return engine_s, engine, given


def figure(values: list[float]) -> str:
    """The median and the range."""
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"
