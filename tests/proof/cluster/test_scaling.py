"""Changing the number of workers loses nothing and replays nothing, and whoever is killed meanwhile costs nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest, LoadOptions, scaling
from proof.cluster.audit import AuditFailed
from proof.cluster.halting_coordinator import DURING, MODULE, RESUMED, Told
from proof.cluster.planned_changes import KillPlan, parts_of
from proof.cluster.recorded import Begun, generations
from proof.cluster.scaling import check_generations, check_read
from styx.messages import Reply
from styx.sequencer.epoch_record import EpochRecord, GenerationMarker, LogEntry, SlotBatch, SnapshotNote
from styx.testing.serial import State

KEYS = 2_000
STEPS = (4, 2, 4, 2)
"""From two workers on."""
KILLED = ("both", "both", "none", "none")


@pytest.mark.slow
def test_scaling_under_load(options: ClusterOptions) -> None:
    async def run() -> None:
        async with ClusterUnderTest(replace(options, slots=16, coordinator_module=MODULE)) as cluster:
            rng, load = Random(options.name), LoadOptions(rate=60.0)
            found = await scaling.measure(cluster, STEPS, KILLED, KEYS, 100, rng, load, watched_s=1.0, tell=print)
            print(found.generations, found.planned)
            assert found.planned
            assert [len(change.after) for change in found.changes] == list(STEPS)
            assert [len(change.kills) for change in found.changes] == [2, 2, 0, 0]
            assert found.read == 2 * KEYS
            assert found.audit.history.committed > found.read
            assert found.audit.history.repetitions > 0
            # A worker knows who leads the topics of its appends before it appends: otherwise each generation begins
            # with a pause.
            logs = {child.name: child.log.read_text("utf-8", "replace") for child in cluster.children}
            assert not [name for name, text in logs.items() if "worker" in name and "without a leader" in text]

    asyncio.run(run())


def test_every_victim_at_every_moment_has_its_turn() -> None:
    plan = KillPlan(["both"], Random(1))
    for growing, victims in ((True, 3), (False, 2)):
        kills = [plan.of(growing) for _ in range(victims * len(DURING))]
        assert len({during for during, _ in kills}) == victims * len(DURING)
        assert {after.moment for _, after in kills} == {RESUMED}
    plan = KillPlan(["none", "after", "during"], Random(1))
    kinds = [[kill.moment == RESUMED for kill in plan.of(False)] for _ in range(4)]
    assert kinds == [[], [True], [False], []]


def epoch(generation: int, number: int, *slots: int) -> EpochRecord:
    return EpochRecord(generation, number, 0, [SlotBatch(slot, 0, 0, 0) for slot in slots])


LOG: list[LogEntry] = [
    GenerationMarker(1, -1),
    *(epoch(1, number, 0, 1) for number in range(3)),
    SnapshotNote(1, 1),
    GenerationMarker(2, 1),
    epoch(2, 3, 0),
    epoch(1, 3, 1),
    epoch(2, 3, 1),
    SnapshotNote(2, 3),
    GenerationMarker(3, 3),
    epoch(3, 4, 0),
    GenerationMarker(4, 3),
]


def test_what_each_generation_had_to_replay() -> None:
    """Not what a generation had left incomplete, nor what it appended behind the marker of the next one."""
    assert generations(LOG, 2) == [Begun(1, -1, 0), Begun(2, 1, 1), Begun(3, 3, 0), Begun(4, 3, 0)]


def test_a_planned_change_that_replays_is_found() -> None:
    begun = generations(LOG, 2)
    check_generations(begun, {3, 4})
    with pytest.raises(AuditFailed, match="generation 2 was planned, and had 1 epochs to replay"):
        check_generations(begun, {2, 3})


def test_an_entity_that_clients_read_differently_is_found() -> None:
    state: State = {("account", "a1"): b"\x05", ("text", "k1"): b"\x81\xa6number\x07"}
    right = {("account", "a1"): reply(5), ("text", "k1"): reply(7)}
    check_read(right, state)
    for entity in right:
        with pytest.raises(AuditFailed, match="was read as 6"):
            check_read({**right, entity: reply(6)}, state)


def reply(result: int) -> Reply:
    return Reply(result, None, 1, 1, 1, "r")


def test_the_parts_of_a_pause() -> None:
    moments = ["asked", "snapshot", "between", "held", "stored", "fencing", "loading", RESUMED, "served"]
    told = [Told(moment, 1, 2, float(at_s), False, False) for at_s, moment in enumerate(moments)]
    parts = parts_of(told, 0.0, [2.5, 8.25])
    assert list(parts.values()) == [3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.25]
    assert parts_of(told, 0.5, [8.25]) == {"asked to held": 2.5} | dict(list(parts.items())[1:])
    assert parts_of(told[:-1], 0.0, [8.25]) == {}
