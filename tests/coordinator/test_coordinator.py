"""The coordinator's own decisions: when a generation begins and with whom, who counts as lost, whom it listens to.

Epochs and snapshots, with workers, are in the transcripts.
"""

from __future__ import annotations

import pytest

from styx.coordinator.coordinator import BREAKS_MAX, Coordinator
from styx.coordinator.events import (
    AppendMarker,
    DeleteManifest,
    Event,
    Expel,
    FenceMembers,
    Heard,
    ManifestStored,
    MarkerAppended,
    MembersFenced,
    Refuse,
    SnapshotWanted,
    Started,
    SweepObjects,
    TellWorker,
    Tick,
    WorkerJoined,
    WorkerLeaving,
    WorkerLost,
    WorkerSaid,
)
from styx.coordinator.generation import Phase
from styx.coordinator.membership import SHUNNED_S
from styx.coordinator.snapshot_course import CHANGE_RETRY_S
from styx.protocol.messages import (
    Broken,
    Done,
    EpochStarted,
    Join,
    Loaded,
    Recover,
    Resume,
    SnapshotUnusable,
    ToCoordinator,
)
from tests.coordinator.office import Office, fenced, manifest, snapshot, snapshot_fails

# Generations ---------------------------------------------------------------------------------------------------


def test_the_first_generation_waits_for_the_expected_workers() -> None:
    office = Office()
    assert office.step(WorkerJoined(0)) == []
    assert office.step(WorkerJoined(1)) == [AppendMarker(1, -1)]
    assert office.core.phase is Phase.FENCING


def test_workers_that_come_before_the_metadata_is_read_are_not_forgotten() -> None:
    core = Coordinator(2, 1)
    assert core.step(WorkerJoined(0)) == []
    assert fenced(core, core.step(Started(6, []))) == [AppendMarker(7, -1)]


def test_the_marker_is_appended_once_nobody_of_an_older_generation_can_append() -> None:
    core = Coordinator(2, 1)
    core.step(Started(0, []))
    assert core.step(WorkerJoined(0)) == [FenceMembers(1)]
    assert core.step(MembersFenced(0)) == [], "another generation's"
    assert core.step(MembersFenced(1)) == [AppendMarker(1, -1)]


def test_a_loss_while_members_are_fenced_is_another_generation() -> None:
    core = Coordinator(2, 1)
    core.step(Started(0, []))
    core.step(WorkerJoined(0))
    assert core.step(WorkerLost(0)) == []
    assert core.step(MembersFenced(1)) == []
    assert core.step(WorkerJoined(0)) == [FenceMembers(2)]


def test_nobody_loads_before_the_marker_is_durable() -> None:
    office = Office(workers=1)
    office.step(WorkerJoined(0))
    assert office.step(MarkerAppended(0)) == [], "another generation's"
    assert office.marked() == [TellWorker(0, Recover(1, {0: 0, 1: 0}, None, {0: ""}))]


def test_members_append_with_the_identities_that_the_fence_gave() -> None:
    office = Office(workers=1)
    identities = office.producers = [(7, 3), (8, 0)]
    office.step(WorkerJoined(0))
    assert office.marked() == [TellWorker(0, Recover(1, {0: 0, 1: 0}, None, {0: ""}, 0, identities))]


def test_slots_are_spread_over_the_workers() -> None:
    office = Office()
    for worker in (5, 3):
        office.step(WorkerJoined(worker))
    office.marked()
    assert office.core.owners == {0: 3, 1: 5}


def test_work_begins_when_all_are_loaded() -> None:
    office = Office()
    for worker in (0, 1):
        office.step(WorkerJoined(worker))
    office.marked()
    assert office.said(0, Loaded(1, -1)) == []
    resume = [TellWorker(worker, Resume(1)) for worker in (0, 1)]
    assert office.said(1, Loaded(1, -1)) == resume


@pytest.mark.parametrize("event", [WorkerLost(1), WorkerJoined(1)])
def test_the_loss_of_a_member_is_a_new_generation(event: Event) -> None:
    assert Office().running().step(event) == [AppendMarker(2, -1)]


def test_more_workers_than_wanted_stand_by() -> None:
    office = Office().running()
    assert office.step(WorkerJoined(2)) == []
    assert office.step(WorkerLost(2)) == []
    office.step(WorkerJoined(3))
    assert office.step(WorkerLost(0)) == [AppendMarker(2, -1)]
    assert office.marked()[0] == TellWorker(1, Recover(2, {0: 3, 1: 1}, None, {1: "", 3: ""}))


def test_one_that_stands_by_does_not_hold_up_a_generation_that_is_loading() -> None:
    office = Office()
    for worker in (0, 1):
        office.step(WorkerJoined(worker))
    assert office.step(WorkerJoined(2)) == []
    office.marked()
    assert office.step(WorkerJoined(3)) == []
    for worker in (0, 1):
        office.said(worker, Loaded(1, -1))
    assert office.core.phase is Phase.RUNNING
    assert office.core.generation == 1


def test_a_member_that_is_missing_is_waited_for_no_longer_than_the_loading() -> None:
    office = Office().running()
    office.step(WorkerLost(0))
    office.marked()
    assert office.step(WorkerJoined(2)) == [AppendMarker(3, -1)], "nothing has run yet: it takes part at once"


def test_the_wait_for_all_workers_has_an_end() -> None:
    office = Office(grace_s=5.0)
    office.step(Tick(100.0))
    assert office.step(WorkerJoined(0)) == []
    assert office.step(Tick(104.9)) == []
    assert office.step(Tick(105.0)) == [AppendMarker(1, -1)]


def test_a_stranger_that_is_lost_is_no_loss() -> None:
    assert Office().running().step(WorkerLost(7)) == []


def test_once_placed_the_survivors_do_not_wait_for_the_expected_number() -> None:
    office = Office().running()
    office.step(WorkerLost(0))
    assert office.marked() == [TellWorker(1, Recover(2, {0: 1, 1: 1}, None, {1: ""}))]


def test_a_loss_while_the_marker_is_written_is_another_generation() -> None:
    office = Office()
    for worker in (0, 1):
        office.step(WorkerJoined(worker))
    assert office.step(WorkerLost(0)) == []
    assert office.core.phase is Phase.WAITING
    assert office.step(MarkerAppended(1)) == []
    assert office.step(WorkerJoined(0)) == [AppendMarker(2, -1)]


@pytest.mark.parametrize(
    "message", [Loaded(1, -1), EpochStarted(1, 0), Done(1, 0, 0, [], [], [], []), SnapshotUnusable(1, "damaged")]
)
def test_other_generations_and_strangers_are_void(message: ToCoordinator) -> None:
    office = Office().running()
    office.step(WorkerJoined(1))
    assert office.said(0, message) == [], "generation 1 has ended"
    message.generation = 2
    assert office.said(9, message) == [], "not a member"


# Silence -------------------------------------------------------------------------------------------------------


def test_a_silent_worker_is_lost() -> None:
    office = Office(silence_max_s=1.0).running()
    office.step(Tick(1.0))
    office.step(Heard(0))
    assert office.step(Tick(2.0)) == [], "1.0 s of silence is not more than 1.0 s"
    office.step(Heard(0))
    assert office.step(Tick(2.5)) == [Expel(1, "it has not been heard of for too long"), AppendMarker(2, -1)]
    assert office.core.live == {0}


def test_messages_are_signs_of_life() -> None:
    office = Office(workers=1, silence_max_s=1.0).running()
    for now_s in (1.0, 2.0, 3.0):
        office.said(0, EpochStarted(1, 0))
        assert office.step(Tick(now_s)) == []


def test_a_coordinator_that_was_asleep_has_heard_nobody_and_blames_nobody() -> None:
    office = Office(workers=1, silence_max_s=1.0).running()
    office.step(Tick(1.0))
    office.step(Heard(0))
    assert office.step(Tick(500.0)) == []


def test_without_a_limit_only_the_connection_tells() -> None:
    assert Office(workers=1).running().step(Tick(1e9)) == []


# Epochs --------------------------------------------------------------------------------------------------------


def test_the_first_start_of_an_epoch_calls_the_others() -> None:
    office = Office().running()
    assert office.said(1, EpochStarted(1, 0)) == [TellWorker(0, Join(1, 0))]
    assert office.said(0, EpochStarted(1, 0)) == []


def test_a_snapshot_that_is_wanted_before_the_start_is_taken_after_it() -> None:
    office = Office(workers=1)
    assert office.step(SnapshotWanted()) == []
    office.step(WorkerJoined(0))
    office.marked()
    assert TellWorker(0, Join(1, 0)) in office.said(0, Loaded(1, -1))


# Planned changes, with workers, are in the transcripts ----------------------------------------------------------


def test_uploads_are_not_swept_before_there_is_a_snapshot() -> None:
    """Until then a coordinator before this one may still store what belongs to its own."""
    office = Office(workers=1)
    office.step(WorkerJoined(0))
    office.marked()
    begins = office.said(0, Loaded(1, -1))
    assert [effect for effect in begins if isinstance(effect, SweepObjects)] == []


def test_uploads_are_swept_once_a_generation_behind_its_first_snapshot() -> None:
    office = Office().running()
    swept = []
    for epoch in (0, 1):
        office.step(SnapshotWanted())
        swept.append([effect for effect in snapshot(office, epoch) if isinstance(effect, SweepObjects)])
    assert swept == [[SweepObjects(frozenset(), 1)], []]


def test_nothing_is_replayed_on_another_version() -> None:
    """The held snapshot is damaged: what was recorded behind the older one ran on the older version."""
    held, older = manifest(9), manifest(4)
    core = Coordinator(2, 1)
    core.step(Started(1, [held, older], app_version=5, app_since=9))
    assert fenced(core, core.step(WorkerJoined(0))) == [AppendMarker(2, 9, 5)]
    core.step(MarkerAppended(2))
    (refusal,) = core.step(WorkerSaid(0, SnapshotUnusable(2, "damaged")))
    assert isinstance(refusal, Refuse)
    assert core.phase is Phase.REFUSED


def test_a_worker_that_others_cannot_reach_is_expelled_in_the_end() -> None:
    office = Office().running()
    for generation in range(1, BREAKS_MAX):
        assert office.said(0, Broken(generation, 1, "gone")) == [AppendMarker(generation + 1, -1)]
        office.marked()
    assert office.said(0, Broken(BREAKS_MAX, 1, "gone")) == [
        Expel(1, "other workers cannot reach it"),
        AppendMarker(BREAKS_MAX + 1, -1),
    ]
    assert office.core.live == {0}


def test_one_that_was_expelled_stands_by_unless_nobody_else_is_there() -> None:
    office = Office()
    for worker in (0, 1):
        office.step(WorkerJoined(worker, f"process {worker}"))
    office.marked()
    for generation in range(1, BREAKS_MAX + 1):
        office.said(0, Broken(generation, 1, "gone"))
        office.marked()
    assert office.step(WorkerJoined(2, "process 1")) == [], "the same process under another number"
    office.said(0, Loaded(office.core.generation, -1))
    assert office.core.phase is Phase.RUNNING
    assert not office.core.changing
    office.step(Tick(SHUNNED_S))
    assert office.core.changing
    office.step(WorkerLost(0))
    assert office.core.membership.members == {2}


def test_an_epoch_that_ends_forgives_earlier_breaks() -> None:
    office = Office().running()
    for _ in range(BREAKS_MAX - 1):
        office.said(0, Broken(office.core.generation, 1, "gone"))
        office.marked()
    for worker in (0, 1):
        office.said(worker, Loaded(office.core.generation, -1))
    office.step(SnapshotWanted())
    snapshot(office, 0)
    assert office.said(0, Broken(office.core.generation, 1, "gone"))[0] == AppendMarker(BREAKS_MAX + 1, 0)


def test_a_snapshot_that_failed_is_tried_again_soon_if_a_change_waits_for_it() -> None:
    office = Office().running()
    office.step(Tick(100.0))
    office.step(WorkerLeaving(1))
    snapshot_fails(office, 0)
    assert office.step(Tick(100.0 + 0.9 * CHANGE_RETRY_S)) == []
    assert office.step(Tick(100.0 + CHANGE_RETRY_S)) == [TellWorker(worker, Join(1, 1)) for worker in (0, 1)]


def test_who_was_shunned_takes_part_again_in_time_though_nothing_is_asked() -> None:
    office = Office()
    office.step(WorkerJoined(0, "a"))
    office.step(WorkerJoined(1, "b"))
    office.loaded().core.membership.shun(1, 0.0)
    office.step(WorkerLost(1))
    office.loaded()
    office.step(WorkerJoined(2, "b"))
    assert not office.core.changing
    assert office.step(Tick(SHUNNED_S + 1)) == [TellWorker(0, Join(2, 0))]


def test_what_is_replayed_is_counted() -> None:
    office = Office(workers=1, manifests=[manifest(4)])
    office.step(WorkerJoined(0))
    office.loaded(replay_until=9)
    assert office.core.replayed == 5
    office.step(WorkerJoined(0))
    office.loaded()
    assert office.core.replayed == 5


# Damaged snapshots ---------------------------------------------------------------------------------------------


def test_an_unusable_snapshot_is_dropped_for_the_older_one() -> None:
    office = Office(workers=1, manifests=[manifest(9), manifest(4)])
    assert office.step(WorkerJoined(0)) == [AppendMarker(1, 9)]
    assert office.marked() == [TellWorker(0, Recover(1, {0: 0, 1: 0}, manifest(9), {0: ""}))]
    assert office.said(0, SnapshotUnusable(1, "damaged")) == [AppendMarker(2, 4)]
    assert office.marked() == [TellWorker(0, Recover(2, {0: 0, 1: 0}, manifest(4), {0: ""}))]
    # Not before: a start that is refused in the end must have changed nothing.
    assert office.said(0, Loaded(2, -1))[0] == DeleteManifest(1, 9)


def test_two_workers_that_find_one_snapshot_damaged_drop_one_snapshot() -> None:
    office = Office(manifests=[manifest(9), manifest(4)])
    for worker in (0, 1):
        office.step(WorkerJoined(worker))
    office.marked()
    office.said(0, SnapshotUnusable(1, "damaged"))
    assert office.said(1, SnapshotUnusable(1, "damaged")) == []
    assert [m.epoch for m in office.core.ledger.manifests] == [4]


def test_without_a_usable_snapshot_nothing_is_served_ever() -> None:
    office = Office(workers=1)
    office.step(WorkerJoined(0))
    office.marked()
    assert office.said(0, SnapshotUnusable(1, "the log is cut off")) == [Refuse("the log is cut off")]
    for event in (WorkerJoined(1), Tick(1.0), SnapshotWanted(), MarkerAppended(1)):
        assert office.step(event) == []
    assert office.core.phase is Phase.REFUSED


def test_an_answer_about_a_manifest_nobody_waits_for_changes_nothing() -> None:
    office = Office().running()
    assert office.step(ManifestStored(1, 0, True)) == []
    assert office.core.snapshots_completed == 0
