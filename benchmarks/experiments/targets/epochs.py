"""How often epochs began in a window and how much was in them, as the workers counted. Pure."""

from __future__ import annotations

from typing import Final

from benchmarks.driver.result import Result

WORKER: Final = "worker"
"""The role."""


def epochs_per_second(result: Result) -> float:
    """Of each worker, on average; 0 in a run that was given up before its window."""
    if not result.window_s:
        return 0.0
    return _counted(result, "styx_epochs_total") / result.window_s / result.roles[WORKER].processes


def transactions_per_epoch(result: Result, clusters: int = 1) -> float:
    """Over all workers of a cluster; 0 if there was no epoch."""
    epochs = epochs_per_second(result)
    return result.throughput / clusters / epochs if epochs else 0.0


def in_conflict(result: Result) -> float:
    """The share of the transactions that were run again in a lock phase."""
    transactions = result.throughput * result.window_s
    return _counted(result, "styx_lock_phase_transactions_total") / transactions if transactions else 0.0


def _counted(result: Result, name: str) -> float:
    counters = result.counters.get(WORKER, {})
    return sum(value for counter, value in counters.items() if counter.partition("{")[0] == name)
