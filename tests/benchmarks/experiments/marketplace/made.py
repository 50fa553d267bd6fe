"""Runs of the marketplace's command that did not happen."""

from __future__ import annotations

import msgspec

from benchmarks.driver.latency import Cells, record
from benchmarks.driver.result import Result
from benchmarks.driver.target import Outcome
from tests.benchmarks.driver.made import result

CPU_US = 4000.0


def run_of(rate: float = 100, **counts: int) -> Result:
    """Of 10 s in which so many requests of each kind were sent, and committed after 5 ms; the worker took `CPU_US` for
    each of `rate` transactions a second, of epochs of four.
    """
    made = result(rate, latency={kind: {Outcome.COMMITTED: _cells(count)} for kind, count in counts.items()})
    return msgspec.structs.replace(
        made,
        cpu_us={"worker": CPU_US, "broker": 1.0},
        counters={
            "worker": {
                "styx_transactions_total{outcome=committed}": 90.0,
                "styx_transactions_total{outcome=aborted}": 10.0,
                "styx_epochs_total": 25.0,
                "styx_lock_phase_transactions_total": 20.0,
            }
        },
        machine=msgspec.structs.replace(made.machine, others_s=0.0),
    )


def _cells(count: int) -> Cells:
    cells: Cells = {}
    record(cells, [5000] * count)
    return cells
