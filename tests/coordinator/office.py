"""A coordinator under test: its core, and what comes back when its effects are done as told. Judges no rule."""

from __future__ import annotations

from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import (
    AppendNote,
    Effect,
    Event,
    FenceMembers,
    ManifestStored,
    MarkerAppended,
    MembersFenced,
    NoteAppended,
    ReleaseWorker,
    Started,
    WorkerJoined,
    WorkerSaid,
)
from styx.coordinator.generation import Phase
from styx.protocol.manifest import Manifest, SlotManifest, SlotPart
from styx.protocol.messages import Conflicts, Done, Loaded, SlotsStored, StateChecked, ToCoordinator
from styx.schema.state_findings import StateFindings


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
        self.producers: list[tuple[int, int]] = []
        self.step(Started(0, manifests or []))

    def step(self, event: Event) -> list[Effect]:
        """What the event has for effects; members are fenced at once, and given `producers` to append with."""
        return fenced(self.core, self.core.step(event), self.producers)

    def said(self, worker: int, message: ToCoordinator) -> list[Effect]:
        return self.step(WorkerSaid(worker, message))

    def marked(self) -> list[Effect]:
        return self.step(MarkerAppended(self.core.generation))

    def running(self) -> Office:
        """Every expected worker joins and loads."""
        for worker in range(self.core.workers_wanted):
            self.step(WorkerJoined(worker))
        return self.loaded()

    def checked(self, version: int, findings: StateFindings | None = None, epoch: int = -1) -> list[Effect]:
        """Every member says what it found; what the last one's report has for effects."""
        effects: list[Effect] = []
        for worker in sorted(self.core.membership.members):
            found = StateChecked(self.core.generation, version, epoch, findings or StateFindings(10))
            effects = self.said(worker, found)
        return effects

    def loaded(self, replay_until: int = -1) -> Office:
        """The members load."""
        self.marked()
        for worker in sorted(self.core.membership.members):
            self.said(worker, Loaded(self.core.generation, replay_until))
        assert self.core.phase is Phase.RUNNING
        return self


def fenced(core: Coordinator, effects: list[Effect], producers: list[tuple[int, int]] | None = None) -> list[Effect]:
    """The effects, and what is done once the log refuses older members, in place of having it refuse them."""
    done: list[Effect] = []
    for effect in effects:
        if isinstance(effect, FenceMembers):
            done += core.step(MembersFenced(effect.generation, producers or []))
        else:
            done.append(effect)
    return done


def snapshot(office: Office, epoch: int) -> list[Effect]:
    """An epoch ends with a snapshot, whose manifest is stored; what that has for effects."""
    uploaded(office, epoch)
    return stored(office, epoch)


def stored(office: Office, epoch: int) -> list[Effect]:
    """The manifest of a snapshot is stored, and the log has taken the note; what that has for effects."""
    generation = office.core.generation
    assert office.step(ManifestStored(generation, epoch, True)) == [AppendNote(generation, epoch)]
    return office.step(NoteAppended(generation, epoch))


def uploaded(office: Office, epoch: int) -> list[Effect]:
    """An epoch ends with a snapshot, all parts of which are stored; what the last one has for effects."""
    effects: list[Effect] = []
    generation = office.core.generation
    members = sorted(office.core.membership.members)
    for worker in members:
        office.said(worker, Done(generation, epoch, 0, [], [], [], []))
    for worker in members:
        office.said(worker, Conflicts(generation, epoch, []))
    for slot in (0, 1):
        part = SlotPart(slot, 0, [], 10 * epoch, {}, None)
        effects = office.said(office.core.owners[slot], SlotsStored(generation, epoch, [part]))
    return effects


def released(effects: list[Effect]) -> list[int]:
    return [effect.worker for effect in effects if isinstance(effect, ReleaseWorker)]


def snapshot_fails(office: Office, epoch: int) -> None:
    """Two workers end an epoch with a snapshot that the store does not take."""
    for worker in (0, 1):
        office.said(worker, Done(1, epoch, 0, [], [], [], []))
    for worker in (0, 1):
        office.said(worker, Conflicts(1, epoch, []))
    office.said(0, SlotsStored(1, epoch, None))
