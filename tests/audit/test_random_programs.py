"""Random programs with all faults, of the simulator: whatever its log and store have agrees with a replay on another
number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from proof.simulation import random_plan
from proof.simulation.ingests import unheard
from proof.simulation.run import Simulation
from proof.simulation.versions import version_for
from styx.audit import capture
from styx.audit.capture import plans
from styx.audit.verdict import AGREED
from styx.log.base import Stream
from styx.sequencer.epoch_record import EPOCHS_PARTITION, LogEntry, decode, replay_plan
from tests.audit.simulated import audit_of

SEEDS = 12


@pytest.mark.parametrize("first", range(0, SEEDS, 4))
def test_random_programs_under_faults_agree(first: int) -> None:
    judged = replies = 0
    for seed in range(first, first + 4):
        for verdict in audit_of(random_plan(seed), 2 + (seed + first // 4) % 3):
            assert verdict.outcome == AGREED, (seed, *verdict.lines())
            judged, replies = judged + 1, replies + verdict.replies
    assert judged >= 4
    assert replies > 100


@pytest.mark.parametrize("seed", [0, 1, 4, 5])
@pytest.mark.parametrize("at_once", [8, 60])
def test_epochs_put_together_in_pieces_are_those_of_a_recovery(
    seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with unheard():
        plan = random_plan(seed)
        simulation = Simulation(plan, version_for(plan, 0), f"world {seed} 0", keep_log=True)
        simulation.run(check=False)
    records = simulation.world.log.records.read(Stream.EPOCHS, EPOCHS_PARTITION, 0)
    entries = [decode(record.payload) for record in records]
    expected = [capture._settled(each) for each in replay_plan(entries, plan.slots, -1, -1, -1)]
    assert len(expected) > 10
    monkeypatch.setattr(capture, "PLANNED_RECORDS", at_once)
    read = 0

    def counted() -> Iterator[LogEntry]:
        nonlocal read
        for entry in entries:
            read += 1
            yield entry

    made = plans(counted(), plan.slots, -1, -1)
    assert list(islice(made, 3)) == expected[:3]
    assert at_once > 8 or read < len(entries), "the whole log was read for the first epochs"
    assert list(made) == expected[3:]
    middle = expected[len(expected) // 2]
    generation = next(each.generation for each in entries if getattr(each, "epoch", -1) == middle.epoch)
    begin = next(at for at, each in enumerate(entries) if getattr(each, "epoch", -1) == middle.epoch + 1)
    rest = list(plans(iter(entries[begin:]), plan.slots, middle.epoch, generation))
    assert rest == expected[len(expected) // 2 + 1 :]
