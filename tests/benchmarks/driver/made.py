"""Results made up for tests: what a run at some rate might have measured."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from benchmarks.driver.accounting import Sample, Usage
from benchmarks.driver.calibration import Calibration
from benchmarks.driver.environment import Environment
from benchmarks.driver.latency import Cells, record
from benchmarks.driver.measure import Measurement
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.probe import Probe
from benchmarks.driver.reports import IntervalReport, RunReport
from benchmarks.driver.result import CALLS_COUNTER, Result, result_of
from benchmarks.driver.target import Outcome

ENVIRONMENT = Environment(
    interpreter="Snake 9.9",
    processor="abacus",
    processors=2,
    memory_bytes=2**30,
    kernel="Linux 0",
    load_average=0.5,
    versions={},
    commit="abc",
    taken_at="2025-06-22T12:34:56+00:00",
)

WINDOW_FROM = datetime(2025, 6, 22, 12, 35, 0, 250_000, UTC)


def report(rate: float = 100, latency_us: int = 5000, **changes: Any) -> RunReport:
    """Of a window of 10 s in which all was well, but for `changes`."""
    count = int(rate * 10)
    cells: Cells = {}
    record(cells, [latency_us] * count)
    made = RunReport(
        due=count,
        sent=count,
        replied={Outcome.COMMITTED: count},
        outcomes={Outcome.COMMITTED: count},
        latency={"add": {Outcome.COMMITTED: cells}},
        late={10: count},
        window_s=10.0,
        intervals={3: IntervalReport(sent=count, outcomes={Outcome.COMMITTED: count}, latency=cells)},
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def result(rate: float = 100, latency_us: int = 5000, **changes: Any) -> Result:
    """Of `report` with the same arguments: a worker had half a processor."""
    probe = Probe(lambda: {"worker": [1]}, lambda: {"worker": ["w"]})
    probe.samples = [
        Sample(0.0, {"worker": {1: Usage(1.0, 2**20)}}, 10.0, 0.0),
        Sample(10.0, {"worker": {1: Usage(6.0, 2**20)}}, 17.0, 0.0),
    ]
    transactions = "styx_transactions_total{outcome=committed}"
    messages = "styx_peer_messages_total{direction=sent}"
    probe._before = {"w": {transactions: 10.0, messages: 0.0, CALLS_COUNTER: 30.0}}
    probe._after = {"w": {transactions: 110.0, messages: 250.0, CALLS_COUNTER: 330.0}}
    calibration = Calibration(cpu_ms=40, wall_ms=41)
    measured = Measurement(
        LoadPlan(rate=rate),
        report(rate, latency_us, **changes),
        probe,
        ENVIRONMENT,
        (calibration, calibration),
        [],
        WINDOW_FROM,
    )
    return result_of(measured, "counting", {"keys": 20}, {"kind": "cluster", "workers": 1})
