"""A simulated process that has crashed does nothing any more, whatever it had under way."""

from __future__ import annotations

import pytest

from proof import chaos_app
from proof.simulation import random_plan
from proof.simulation.world import World


def test_a_crashed_coordinator_that_could_not_read_its_metadata_fences_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(random_plan(0, faults=False), chaos_app.app, "crashed", keep_log=False)
    fenced: list[str] = []
    monkeypatch.setattr(world.log, "fence_writers", fenced.append)
    monkeypatch.setattr(world.store, "run", lambda operation, answer, failed: world.time.after(0.001, failed))
    world.start_coordinator()
    assert fenced == ["coordinator"]
    assert world.coordinator is not None
    world.coordinator.crash()
    while world.time.next():
        assert world.time.now_s < 10.0, "it still tries"
    assert fenced == ["coordinator"]
