"""Deployments under load in the simulator: what may become of them does, and all of it is a serial history."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from proof.simulation import random_plan, simulate
from proof.simulation.plan import Fault

FIRST, SEEDS = 8, 8
"""One of five seeds has a version that is refused late; some of these do."""
DEPLOYMENTS = tuple(Fault("deployment", 0.08 * i, 0.0) for i in range(30))


def test_versions_are_checked_refused_early_and_late_and_begin() -> None:
    found: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + SEEDS):
        plan = replace(
            random_plan(seed, cluster=True),
            duration_s=2.5,
            bursts=50,
            requests=150,
            snapshot_interval_s=2.0,
            log_delay_s=0.0005,
            faults=DEPLOYMENTS,
        )
        found.update(simulate(plan).deployments)
    assert found["began"] > SEEDS, found
    assert found["refused"] > found["refused late"] > 0, found
    assert found["checked"] >= found["began"] + found["refused"] - found["refused late"], found
