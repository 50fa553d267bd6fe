"""Two workers that cannot reach each other, for long: the service goes on without one of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from proof import chaos_app
from proof.simulation import random_plan
from proof.simulation.plan import Fault
from proof.simulation.run import Simulation

GENERATIONS_MAX = 6
"""The first, three that break, one without the worker; one more if the connection broke while slots were loaded."""


@pytest.mark.parametrize(("workers", "wanted"), [(2, 2), (3, 3), (4, 2)])
@pytest.mark.parametrize("seed", range(2))
def test_every_request_is_answered_while_two_workers_cannot_reach_each_other(
    seed: int, workers: int, wanted: int
) -> None:
    plan = replace(
        random_plan(seed, cluster=True),
        workers=workers,
        wanted=wanted,
        slots=4,
        requests=60,
        slow_messages=0.0,
        ingests=0.0,
        log_delay_s=0.0005,
        faults=(Fault("broken peer connection", 0.2, 60.0),),
    )
    simulation = Simulation(plan, chaos_app.app, f"partitioned {seed}", keep_log=False)
    world = simulation.world
    simulation.start()
    simulation.run_until(lambda: world.log.replies == simulation.clients.expected, 20.0)
    simulation.run_until(lambda: world.time.now_s > 30.0, 31.0)
    assert world.coordinator is not None
    assert world.coordinator.core.generation <= GENERATIONS_MAX
    simulation.verdict()
