"""The coordinator's own decisions: when a generation begins and with whom, who counts as lost, whom it listens to.

Epochs and snapshots, with workers, are in the transcripts.
"""

from __future__ import annotations

import pytest

from styx.coordinator.coordinator import BREAKS_MAX, CHANGE_RETRY_S, Coordinator, Phase
from styx.coordinator.events import (
    AppendMarker,
    DeleteManifest,
    DeployWanted,
    Effect,
    Event,
    Expel,
    Heard,
    ManifestStored,
    MarkerAppended,
    Refuse,
    ReleaseWorker,
    SnapshotWanted,
    Started,
    StopWanted,
    SweepObjects,
    TellWorker,
    Tick,
    WorkerJoined,
    WorkerLeaving,
    WorkerLost,
    WorkerSaid,
)
from styx.coordinator.membership import SETTLE_S, SHUNNED_S
from styx.protocol import (
    Broken,
    Conflicts,
    Done,
    EpochStarted,
    Join,
    Loaded,
    LoadFailed,
    Manifest,
    Recover,
    Resume,
    SlotManifest,
    SlotPart,
    SlotsStored,
    ToCoordinator,
)


def manifest(epoch: int, n_slots: int = 2) -> Manifest:
    return Manifest(1, epoch, epoch, [SlotManifest(SlotPart(slot, 0, [], 0, {}, None), []) for slot in range(n_slots)])


class Office:
    """A coordinator of two slots, with the events that its host and workers usually send."""

    def __init__(
        self,
        workers: int | None = 2,
        silence_max_s: float | None = None,
        manifests: list[Manifest] | None = None,
        grace_s: float | None = None,
    ):
        self.core = Coordinator(2, workers, silence_max_s=silence_max_s, grace_s=grace_s)
        self.step(Started(0, manifests or []))

    def step(self, event: Event) -> list[Effect]:
        return self.core.step(event)

    def said(self, worker: int, message: ToCoordinator) -> list[Effect]:
        return self.step(WorkerSaid(worker, message))

    def marked(self) -> list[Effect]:
        return self.step(MarkerAppended(self.core.generation))

    def running(self) -> Office:
        """Every expected worker joins and loads."""
        for worker in range(self.core.workers_wanted):
            self.step(WorkerJoined(worker))
        return self.loaded()

    def loaded(self, replay_until: int = -1) -> Office:
        """The members load."""
        self.marked()
        for worker in sorted(self.core.membership.members):
            self.said(worker, Loaded(self.core.generation, replay_until))
        assert self.core.phase is Phase.RUNNING
        return self


# Generations ---------------------------------------------------------------------------------------------------


def test_the_first_generation_waits_for_the_expected_workers() -> None:
    office = Office()
    assert office.step(WorkerJoined(0)) == []
    assert office.step(WorkerJoined(1)) == [AppendMarker(1, -1)]
    assert office.core.phase is Phase.FENCING


def test_workers_that_come_before_the_metadata_is_read_are_not_forgotten() -> None:
    core = Coordinator(2, 1)
    assert core.step(WorkerJoined(0)) == []
    assert core.step(Started(6, [])) == [AppendMarker(7, -1)]


def test_nobody_loads_before_the_marker_is_durable() -> None:
    office = Office(workers=1)
    office.step(WorkerJoined(0))
    assert office.step(MarkerAppended(0)) == [], "another generation's"
    assert office.marked() == [TellWorker(0, Recover(1, {0: 0, 1: 0}, None, {0: ""}))]


def test_members_append_with_the_identities_that_the_fence_gave() -> None:
    office = Office(workers=1)
    office.step(WorkerJoined(0))
    identities = [(7, 3), (8, 0)]
    assert office.step(MarkerAppended(1, identities)) == [
        TellWorker(0, Recover(1, {0: 0, 1: 0}, None, {0: ""}, 0, identities))
    ]


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
    "message", [Loaded(1, -1), EpochStarted(1, 0), Done(1, 0, 0, [], [], [], []), LoadFailed(1, "damaged")]
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


def snapshot(office: Office, epoch: int) -> list[Effect]:
    """An epoch ends with a snapshot, whose manifest is stored; what that has for effects."""
    generation = office.core.generation
    members = sorted(office.core.membership.members)
    for worker in members:
        office.said(worker, Done(generation, epoch, 0, [], [], [], []))
    for worker in members:
        office.said(worker, Conflicts(generation, epoch, []))
    for slot in (0, 1):
        part = SlotPart(slot, 0, [], 10 * epoch, {}, None)
        office.said(office.core.owners[slot], SlotsStored(generation, epoch, [part]))
    return office.step(ManifestStored(generation, epoch, True))


def test_uploads_are_swept_once_a_generation_behind_its_first_snapshot() -> None:
    office = Office().running()
    swept = []
    for epoch in (0, 1):
        office.step(SnapshotWanted())
        swept.append([effect for effect in snapshot(office, epoch) if isinstance(effect, SweepObjects)])
    assert swept == [[SweepObjects(frozenset(), 1)], []]


def test_a_version_takes_effect_with_the_generation_behind_the_held_snapshot() -> None:
    office = Office().running()
    office.step(DeployWanted(5))
    assert snapshot(office, 0)[-1] == TellWorker(1, Join(1, 1)), "the first one was an ordinary one"
    assert office.core.app_version == 0
    assert snapshot(office, 1)[-1] == AppendMarker(2, 1, 5)
    assert office.core.app_version == 5


def test_a_version_that_is_taken_back_in_time_is_not_switched_to() -> None:
    office = Office().running()
    office.step(DeployWanted(5))
    office.step(DeployWanted(0))
    snapshot(office, 0)
    assert not office.core.changing
    assert office.core.app_version == 0


def test_nothing_is_replayed_on_another_version() -> None:
    """The held snapshot is damaged: what was recorded behind the older one ran on the older version."""
    held, older = manifest(9), manifest(4)
    core = Coordinator(2, 1)
    core.step(Started(1, [held, older], app_version=5, app_since=9))
    assert core.step(WorkerJoined(0)) == [AppendMarker(2, 9, 5)]
    core.step(MarkerAppended(2))
    (refusal,) = core.step(WorkerSaid(0, LoadFailed(2, "damaged")))
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


# Workers that leave, with workers, are in the transcripts as well ------------------------------------------------


def released(effects: list[Effect]) -> list[int]:
    return [effect.worker for effect in effects if isinstance(effect, ReleaseWorker)]


def test_who_leaves_is_let_go_behind_the_next_generation_s_marker() -> None:
    office = Office().running()
    assert office.step(WorkerLeaving(1)) == [TellWorker(worker, Join(1, 0)) for worker in (0, 1)]
    assert released(snapshot(office, 0)) == []
    assert snapshot(office, 1)[-1] == AppendMarker(2, 1)
    assert office.marked()[1:] == [ReleaseWorker(1)]
    assert office.core.owners == {0: 0, 1: 0}
    assert not office.core.changing
    assert office.step(WorkerLost(1)) == [], "it had nothing"


def test_who_leaves_waits_for_nobody_who_joins() -> None:
    office = Office(workers=None)
    office.step(WorkerJoined(0))
    office.step(Tick(SETTLE_S))
    office.loaded()
    assert office.step(WorkerJoined(1)) == [], "others may join together with it"
    assert office.step(WorkerLeaving(0)) == [TellWorker(0, Join(1, 0))]


def test_a_number_that_is_given_again_can_leave_again() -> None:
    office = Office().running()
    office.step(WorkerJoined(2))
    for _ in range(2):
        assert released(office.step(WorkerLeaving(2))) == [2]
        office.step(WorkerJoined(2))


def test_one_that_was_expelled_is_there_when_the_others_leave() -> None:
    office = Office()
    office.step(WorkerJoined(0, "a"))
    office.step(WorkerJoined(1, "b"))
    office.loaded().core.membership.shun(1, 0.0)
    office.step(WorkerLost(1))
    office.loaded()
    office.step(WorkerJoined(2, "b"))
    assert not office.core.changing
    office.step(WorkerLeaving(0))
    assert office.core.membership.eligible == [2]
    snapshot(office, 0)
    assert snapshot(office, 1)[-1] == AppendMarker(3, 1)
    assert office.core.membership.members == {2}


def test_the_longest_wait_begins_anew_when_all_had_gone() -> None:
    office = Office(workers=None, grace_s=10.0)
    office.step(WorkerJoined(0))
    office.step(WorkerLeaving(0))
    office.step(Tick(100.0))
    assert office.step(WorkerJoined(1)) == [], "others may join together with it"
    assert office.step(Tick(100.0 + SETTLE_S)) == [AppendMarker(1, -1)]


def test_who_has_left_never_takes_part_again() -> None:
    office = Office().running()
    office.step(WorkerLeaving(1))
    for epoch in (0, 1):
        snapshot(office, epoch)
    office.loaded()
    assert office.step(WorkerLeaving(1)) == [], "it was let go already"
    office.step(WorkerLost(0))
    assert office.core.phase is Phase.WAITING
    assert office.step(WorkerJoined(2)) == [AppendMarker(3, 1)]
    assert office.core.membership.members == {2}


def test_a_worker_without_slots_is_let_go_at_once() -> None:
    office = Office()
    office.step(WorkerJoined(0))
    assert office.step(WorkerLeaving(0)) == [ReleaseWorker(0)], "nothing runs yet"
    assert office.step(WorkerJoined(1)) == [], "two are wanted, and one does not count"
    assert office.step(WorkerJoined(2)) == [AppendMarker(1, -1)]
    office.loaded()
    office.step(WorkerJoined(3))
    assert office.step(WorkerLeaving(3)) == [ReleaseWorker(3)], "it stands by"
    assert office.step(WorkerLeaving(9)) == [], "nobody knows it"


def test_when_all_leave_they_are_let_go_behind_the_held_snapshot_and_nothing_begins() -> None:
    office = Office().running()
    for worker in (0, 1):
        office.step(WorkerLeaving(worker))
    snapshot(office, 0)
    effects = snapshot(office, 1)
    assert released(effects) == [0, 1]
    assert office.core.all_stored
    assert not [effect for effect in effects if isinstance(effect, AppendMarker)]
    assert office.core.phase is Phase.WAITING
    assert office.step(Tick(1.0)) == []
    assert office.step(WorkerJoined(2)) == [AppendMarker(2, 1)]
    assert office.loaded().core.all_stored is False


def test_one_that_leaves_while_it_is_fenced_in_loads_first() -> None:
    office = Office()
    for worker in (0, 1):
        office.step(WorkerJoined(worker))
    assert office.step(WorkerLeaving(1)) == []
    office.marked()
    office.said(0, Loaded(1, -1))
    assert office.said(1, Loaded(1, -1))[-1] == TellWorker(1, Join(1, 0)), "a snapshot is begun at once"


def test_until_the_marker_is_written_one_that_leaves_can_still_be_the_only_one() -> None:
    office = Office().running()
    office.step(WorkerLeaving(1))
    for epoch in (0, 1):
        snapshot(office, epoch)
    assert office.core.phase is Phase.FENCING
    assert office.step(WorkerLost(0)) == [AppendMarker(3, 1)]
    assert office.core.membership.members == {1}


def test_a_recovery_is_without_who_leaves_if_others_are_there() -> None:
    office = Office(workers=3).running()
    office.step(WorkerLeaving(1))
    assert office.step(WorkerLost(2)) == [AppendMarker(2, -1)]
    assert released(office.marked()) == [1]
    assert office.core.membership.members == {0}


def test_one_that_leaves_and_joins_anew_is_another_worker() -> None:
    office = Office().running()
    office.step(WorkerLeaving(1))
    office.step(WorkerJoined(1))
    office.loaded()
    assert office.core.membership.members == {0, 1}
    assert not office.core.changing


def snapshot_fails(office: Office, epoch: int) -> None:
    """Two workers end an epoch with a snapshot that the store does not take."""
    for worker in (0, 1):
        office.said(worker, Done(1, epoch, 0, [], [], [], []))
    for worker in (0, 1):
        office.said(worker, Conflicts(1, epoch, []))
    office.said(0, SlotsStored(1, epoch, None))


def test_a_snapshot_that_failed_is_tried_again_soon_if_a_change_waits_for_it() -> None:
    office = Office().running()
    office.step(Tick(100.0))
    office.step(WorkerLeaving(1))
    snapshot_fails(office, 0)
    assert office.step(Tick(100.0 + 0.9 * CHANGE_RETRY_S)) == []
    assert office.step(Tick(100.0 + CHANGE_RETRY_S)) == [TellWorker(worker, Join(1, 1)) for worker in (0, 1)]


# As many as are there ------------------------------------------------------------------------------------------


def test_a_start_waits_until_nobody_joins_any_more() -> None:
    office = Office(workers=None)
    office.step(Tick(10.0))
    office.step(WorkerJoined(0))
    assert office.step(Tick(10.0 + 0.9 * SETTLE_S)) == []
    assert office.step(WorkerJoined(1)) == [AppendMarker(1, -1)], "there are no more slots"
    office = Office(workers=None, grace_s=5.0)
    office.step(WorkerJoined(0))
    assert office.step(Tick(SETTLE_S)) == [AppendMarker(1, -1)]


def test_workers_that_join_near_each_other_are_one_change() -> None:
    office = Office(workers=None)
    office.core = Coordinator(4, None)
    office.step(Started(0, []))
    office.step(WorkerJoined(0))
    office.step(Tick(SETTLE_S))
    office.loaded()
    assert office.step(WorkerJoined(1)) == []
    office.step(Tick(1.9 * SETTLE_S))
    assert office.step(WorkerJoined(2)) == []
    assert not office.core.changing
    assert office.step(Tick(2 * SETTLE_S)) == [TellWorker(0, Join(1, 0))], "so long after the first of them"
    assert office.core.changing
    office.step(WorkerJoined(3))
    assert office.core.changing, "others that join do not put it off"
    assert office.core.workers_wanted == 4


def test_one_that_joins_while_slots_are_loaded_does_not_begin_that_anew() -> None:
    office = Office(workers=None)
    office.step(WorkerJoined(0))
    office.step(Tick(SETTLE_S))
    office.marked()
    assert office.step(WorkerJoined(1)) == []
    office.said(0, Loaded(1, -1))
    assert office.core.phase is Phase.RUNNING


def test_survivors_go_on_at_once_and_strangers_wait_for_each_other() -> None:
    office = Office(workers=None)
    for worker in (0, 1):
        office.step(WorkerJoined(worker))
    office.loaded()
    assert office.step(WorkerLost(0)) == [AppendMarker(2, -1)]
    office.loaded()
    office.step(WorkerLost(1))
    assert office.step(WorkerJoined(2)) == []
    assert office.step(Tick(SETTLE_S)) == [AppendMarker(3, -1)]


def test_more_than_there_are_slots_stand_by() -> None:
    office = Office(workers=None)
    for worker in (0, 1):
        office.step(WorkerJoined(worker))
    office.loaded()
    office.step(WorkerJoined(2))
    assert office.step(Tick(SETTLE_S)) == []
    assert not office.core.changing


# An orderly stop -----------------------------------------------------------------------------------------------


def test_a_stop_is_one_held_snapshot_and_then_nothing_happens() -> None:
    office = Office().running()
    assert office.step(StopWanted()) == [TellWorker(worker, Join(1, 0)) for worker in (0, 1)]
    effects = snapshot(office, 0)
    assert not [effect for effect in effects if isinstance(effect, AppendMarker | TellWorker)]
    assert office.core.phase is Phase.STOPPED
    for event in (WorkerLost(0), WorkerJoined(5), Tick(99.0), SnapshotWanted()):
        assert office.step(event) == []


def test_a_stop_holds_behind_a_loss_too_and_lets_go_who_leaves() -> None:
    office = Office().running()
    office.step(StopWanted())
    office.step(WorkerLost(1))
    office.loaded()
    office.step(WorkerLeaving(0))
    effects = snapshot(office, 0)
    assert office.core.phase is Phase.STOPPED
    assert released(effects) == [0]


def test_a_stop_behind_a_planned_change_lets_nothing_begin() -> None:
    office = Office().running()
    office.step(WorkerLeaving(1))
    snapshot(office, 0)
    assert AppendMarker(2, 1) in snapshot(office, 1), "the marker is being written"
    assert released(office.step(StopWanted())) == [1]
    assert office.core.phase is Phase.STOPPED
    assert office.core.all_stored
    assert office.marked() == []


def test_behind_a_planned_change_whose_snapshot_is_damaged_not_everything_is_stored() -> None:
    office = Office().running()
    office.step(WorkerLeaving(1))
    snapshot(office, 0)
    snapshot(office, 1)
    office.marked()
    assert office.core.all_stored
    office.said(0, LoadFailed(2, "an object is damaged"))
    assert not office.core.all_stored
    office.step(StopWanted())
    assert office.core.phase is Phase.FENCING


def test_a_stop_whose_snapshot_failed_holds_again_soon() -> None:
    office = Office().running()
    office.step(StopWanted())
    snapshot_fails(office, 0)
    assert office.step(Tick(0.9 * CHANGE_RETRY_S)) == []
    assert office.step(Tick(CHANGE_RETRY_S)) == [TellWorker(worker, Join(1, 1)) for worker in (0, 1)]
    snapshot(office, 1)
    assert office.core.phase is Phase.STOPPED


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


def test_a_stop_does_not_switch_the_version() -> None:
    office = Office().running()
    office.step(DeployWanted(5))
    office.step(StopWanted())
    snapshot(office, 0)
    assert office.core.phase is Phase.STOPPED
    assert office.core.app_version == 0


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
    assert office.said(0, LoadFailed(1, "damaged")) == [AppendMarker(2, 4)]
    assert office.marked() == [TellWorker(0, Recover(2, {0: 0, 1: 0}, manifest(4), {0: ""}))]
    # Not before: a start that is refused in the end must have changed nothing.
    assert office.said(0, Loaded(2, -1))[0] == DeleteManifest(1, 9)


def test_two_workers_that_find_one_snapshot_damaged_drop_one_snapshot() -> None:
    office = Office(manifests=[manifest(9), manifest(4)])
    for worker in (0, 1):
        office.step(WorkerJoined(worker))
    office.marked()
    office.said(0, LoadFailed(1, "damaged"))
    assert office.said(1, LoadFailed(1, "damaged")) == []
    assert [m.epoch for m in office.core.ledger.manifests] == [4]


def test_without_a_usable_snapshot_nothing_is_served_ever() -> None:
    office = Office(workers=1)
    office.step(WorkerJoined(0))
    office.marked()
    assert office.said(0, LoadFailed(1, "the log is cut off")) == [Refuse("the log is cut off")]
    for event in (WorkerJoined(1), Tick(1.0), SnapshotWanted(), MarkerAppended(1)):
        assert office.step(event) == []
    assert office.core.phase is Phase.REFUSED


def test_an_answer_about_a_manifest_nobody_waits_for_changes_nothing() -> None:
    office = Office().running()
    assert office.step(ManifestStored(1, 0, True)) == []
    assert office.core.snapshots_completed == 0
