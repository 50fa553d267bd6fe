"""An hour in which nothing happens changes nothing: no epoch, generation or record, and snapshots go on afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from proof import chaos_app
from proof.later_steps import give
from proof.simulation import random_plan
from proof.simulation.plan import Fault, SimulationPlan
from proof.simulation.run import Simulation
from styx.log.base import Stream
from styx.model.context import Context
from tests.plain_form import plain_form

HOUR_S = 3600.0


def two_bursts(seed: int) -> SimulationPlan:
    """Requests before and after an hour; no other fault, two workers."""
    plan = random_plan(seed, workers=2, faults=False)
    return replace(
        plan,
        slots=4,
        bursts=30,
        duration_s=2.0,
        externals=0.0,
        lives=0.0,
        ingests=0.0,
        faults=(Fault("idle hour", 1.0, 0.0),),
    )


def lengths(simulation: Simulation) -> list[int]:
    records = simulation.world.log.records
    slots = range(simulation.plan.slots)
    return [
        records.bounds(Stream.EPOCHS, 0)[1],
        *(records.bounds(stream, slot)[1] for stream in (Stream.REQUESTS, Stream.REPLIES) for slot in slots),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_an_idle_hour_between_two_bursts(seed: int) -> None:
    nothing_happens(Simulation(replace(two_bursts(seed), emits=0.0), chaos_app.app, f"idle {seed}", keep_log=True))


@pytest.mark.parametrize("seed", range(2))
def test_so_is_one_in_which_events_are_kept_whose_end_has_come_before(seed: int) -> None:
    simulation = Simulation(replace(two_bursts(seed), emits=1.0), chaos_app.emitting, f"kept {seed}", keep_log=True)
    nothing_happens(simulation)
    tables = {table.full_name for tables in chaos_app.emitting.kept.values() for table in tables.values()}
    assert any(name in tables for name, _ in simulation.state())


def nothing_happens(simulation: Simulation) -> None:
    """In the hour."""
    world = simulation.world
    simulation.start()
    simulation.run_until(lambda: world.time.now_s > 20.0, 30.0)
    assert simulation.quiet()
    coordinator = world.coordinator
    assert coordinator is not None
    before = (coordinator.core.generation, coordinator.core.epoch, lengths(simulation), simulation.state())
    answered, snapshots = world.log.replies, world.snapshots
    assert answered > 0
    simulation.run_until(lambda: world.time.now_s > HOUR_S - 100.0, HOUR_S)
    after = (coordinator.core.generation, coordinator.core.epoch, lengths(simulation), simulation.state())
    assert before == after
    assert world.snapshots == snapshots, "there was nothing to take a snapshot of"
    simulation.run_until(lambda: world.log.replies == simulation.clients.expected, HOUR_S + 60.0)
    assert world.log.replies > answered
    assert coordinator.core.generation == before[0], "nobody was taken for dead"
    assert world.snapshots > snapshots
    simulation.run_until(lambda: world.time.now_s > HOUR_S + 65.0, HOUR_S + 70.0)  # what lives for a second has ended
    simulation.verdict()


@plain_form
@pytest.mark.parametrize("seed", [0])
def test_an_hour_in_which_calls_wait_for_a_later_time(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the first burst are due an hour and ten minutes later: until the second one nothing happens."""
    simulation = Simulation(replace(two_bursts(seed), laters=1.0), chaos_app.app, f"waiting {seed}", keep_log=True)

    def late(ctx: Context, ms: int, *rest: Any) -> None:
        give(ctx, 4_200_000 + ms if ms >= 0 and simulation.world.time.now_s < 100.0 else ms, *rest)

    monkeypatch.setattr(chaos_app, "give", late)
    world = simulation.world
    simulation.start()
    simulation.run_until(lambda: world.time.now_s > 100.0, 130.0)
    coordinator = world.coordinator
    assert coordinator is not None
    waiting = [host.core.given_for_later for host in world.workers.values()]
    assert sum(waiting) > 0
    before = (coordinator.core.epoch, lengths(simulation), simulation.state())
    simulation.run_until(lambda: world.time.now_s > HOUR_S - 100.0, HOUR_S)
    assert (coordinator.core.epoch, lengths(simulation), simulation.state()) == before
    simulation.run_until(lambda: world.log.replies == simulation.clients.expected, HOUR_S + 60.0)
    simulation.run_until(simulation.quiet, 2 * HOUR_S)
