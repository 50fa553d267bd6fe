"""The rollout of a version of the app: offered, checked, stored, handed out, switched to, active. One at a time.

A rollout rests on these orders. The store has the package before any worker gets it. Every registered worker can run
the version before the protocol is to switch to it. The version is active once a generation's marker in the log names
it. Before the first version is active no generation begins, and so no marker is written: the first version is active,
and its operator is told so, once the store has confirmed a note of it.

A rollout that is refused, or given up, has changed nothing. One case is uncertain: a store that reports an error may
have written the note of a first version all the same. This coordinator then runs nothing, says so, and takes another
version. But a coordinator that starts before any generation reads the notes: it runs the newest version that has one,
whether or not an operator was told that the version runs.

What a process was started with is offered once, and stays on offer until a version is active: nobody else may ever
offer one. It begins when no other rollout is under way. If it comes to nothing, it begins again a little later, and not
as long as a worker is there that cannot run it.

A check alone (`deploy --check`) takes the same way with a number below 0, stores nothing, never switches, and ends with
the command that waits for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from styx.coordinator.control_events import (
    A_WORKER,
    ITSELF,
    Announce,
    Answer,
    HandOut,
    NoteRunning,
    Package,
    PackageOffered,
    PackageStored,
    ReadVersionBefore,
    RollbackAsked,
    RolloutEnded,
    RunningNoted,
    Said,
    StorePackage,
    VersionFound,
    VersionRead,
)
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import DeployWanted, StateFound
from styx.coordinator.generation import Phase
from styx.coordinator.roster import Registration, Roster
from styx.schema.description import refusal, refusal_to_go_back
from styx.schema.event_description import Published, published_of, refusal_of_events

OFFER_AGAIN_S: Final = 1.0
"""The pause before another attempt to begin with what a process was started with."""


class Stage(Enum):
    """Where a rollout is."""

    READING = "the version before the present one is read from the store"
    CHECKING = "members have yet to say which operators have state"
    STORING = "the package is on its way to the store"
    HANDING_OUT = "workers have the code, and have yet to say that they can run it"
    NOTING = "the store is told which version is the first, since no marker in the log says so yet"
    SWITCHING = "all state is checked, and the version begins with a planned change"


@dataclass(slots=True)
class UnderWay:
    """A rollout that has not ended. `by` waits for its answer. `back`: the version is one that ran before this number.
    `notes` are what an operator should know of the state, a line each.
    """

    by: int
    only_check: bool
    stage: Stage
    package: Package | None = None
    back: int | None = None
    version: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class OnOffer:
    """What `by` was started with, a worker or the coordinator's process. When it last came to nothing, its number was
    `version`; it does not begin before `again_at_s`.
    """

    by: int
    package: Package
    version: int = 0
    again_at_s: float = -math.inf


class Rollout:
    """`active` is the version that runs with its package, None before the first. `under_way`: None if none is.
    `published`: the types of events that versions have had since the first; a type may go, but not change.

    Looks at the workers in `roster` and at the protocol's `core`; changes neither.
    """

    def __init__(self, app: str, core: Coordinator, roster: Roster) -> None:
        self.active: tuple[int, Package] | None = None
        self.under_way: UnderWay | None = None
        self.published: Published = {}
        self._on_offer: OnOffer | None = None
        self._app = app
        self._core = core
        self._roster = roster
        self._checks = 0

    @property
    def version(self) -> int:
        """The version that runs; 0 before the first."""
        return 0 if self.active is None else self.active[0]

    def may_emit(self) -> bool:
        """Whether members of an older generation may append events, or those of the one that begins will: the log has
        to refuse the one, and the other need producers. An app that never had an event has none to fence.
        """
        under_way = None if self.under_way is None else self.under_way.package
        return bool(self.published) or (under_way is not None and bool(under_way.description.events))

    # What is asked -----------------------------------------------------------------------------------------

    def offered(self, event: PackageOffered) -> list[Said]:
        """A package is to run, or might."""
        if event.by in (A_WORKER, ITSELF) and self.active is None:
            return self._started_with(event.by, event.package)
        if event.by == A_WORKER:
            return []  # what a worker was started with is a first version, and no other one
        if self.under_way is not None:
            return self._answer(event.by, False, "another deployment is under way; wait for its end")
        return self._begin(UnderWay(event.by, event.only_check, Stage.CHECKING), event.package)

    def back_asked(self, event: RollbackAsked) -> list[Said]:
        """The version before the present one is to run, or might."""
        if self.under_way is not None:
            return self._answer(event.by, False, "another deployment is under way; wait for its end")
        self.under_way = UnderWay(event.by, event.only_check, Stage.READING, back=self.version)
        return [ReadVersionBefore(self.version)]

    def version_read(self, event: VersionRead) -> list[Said]:
        """The version before the present one is there, if there is one."""
        under_way = self.under_way
        if under_way is None or under_way.stage is not Stage.READING or under_way.back != event.before:
            return []  # of a check that nobody waits for
        self.under_way = None
        if event.package is None:
            return self._answer(under_way.by, False, "there is no version before the present one")
        return self._begin(under_way, event.package)

    def _started_with(self, by: int, package: Package | str) -> list[Said]:
        """The last offer counts, but the coordinator's own before those of workers."""
        known = self._on_offer
        if isinstance(package, str) or package.description.name != self._app:
            return self._answer(by, False, self._unusable(package))
        if known is None or (known.by != ITSELF and known.package.fingerprint != package.fingerprint):
            self._on_offer = OnOffer(by, package)
        return []

    def _unusable(self, package: Package | str) -> str:
        """Why a package cannot be of this deployment; empty if it can."""
        if isinstance(package, str):
            return package
        name = package.description.name
        return "" if name == self._app else f"this deployment is of app {self._app!r}, and the package holds {name!r}"

    def _begin(self, under_way: UnderWay, package: Package | str) -> list[Said]:
        unusable = self._unusable(package)
        if isinstance(package, str) or unusable:
            return self._answer(under_way.by, False, unusable)
        if self.active is not None and self.active[1].fingerprint == package.fingerprint:
            return self._answer(under_way.by, True, f"version {self.version} runs already, and is this very code")
        under_way.package, under_way.stage = package, Stage.CHECKING
        self.under_way = under_way
        return []

    def operator_gone(self, by: int) -> list[Said]:
        """A check alone is for whoever waits for it; a rollout that was ordered goes on."""
        under_way = self.under_way
        if under_way is None or under_way.by != by or not under_way.only_check:
            return []
        self.under_way = None
        return [DeployWanted(self._core.app_version)] if under_way.stage is Stage.SWITCHING else []

    # Its stages --------------------------------------------------------------------------------------------

    def advance(self) -> list[Said] | None:
        """Goes one stage further if it can; None if it waits for something."""
        under_way = self.under_way
        if under_way is not None and self._core.ended:
            return self._given_up(under_way)
        if under_way is None:
            return self._begin_first()
        if under_way.package is None:
            return None
        if under_way.stage is Stage.CHECKING:
            return self._check(under_way, under_way.package)
        if under_way.stage is Stage.HANDING_OUT:
            return self._taken(under_way)
        if under_way.stage is Stage.SWITCHING:
            return self._switch(under_way, under_way.package)
        return None

    def _begin_first(self) -> list[Said] | None:
        """With what a process was started with, if nothing is in its way any more."""
        offer = self._on_offer
        if offer is None or self._core.ended or self._core.clock.now_s < offer.again_at_s:
            return None
        if any(offer.version in each.refused for each in self._roster.workers.values()):
            return None
        return self._begin(UnderWay(offer.by, False, Stage.CHECKING), offer.package)

    def _check(self, under_way: UnderWay, package: Package) -> list[Said] | None:
        """Refuses what operators alone show to be impossible, before anything is stored."""
        if self.active is not None:
            members = self._roster.members(self._core.membership.members)
            if not self._settled(members):
                return None
            reason = self._refusal(under_way, package, members)
            if reason is not None:
                return self._ended(under_way, False, reason)
        if not under_way.only_check:
            under_way.stage = Stage.STORING
            return [StorePackage(package)]
        self._checks += 1
        return self._hand_out(under_way, package, -self._checks)

    def _settled(self, members: list[Registration]) -> bool:
        """Every member has said which operators have state in this generation."""
        core = self._core
        beats = [member.beat for member in members]
        return core.phase is Phase.RUNNING and all(
            beat is not None and beat.generation == core.generation and beat.loaded for beat in beats
        )

    def _refusal(self, under_way: UnderWay, package: Package, members: list[Registration]) -> str | None:
        assert self.active is not None
        old, new = self.active[1].description, package.description
        with_state = {o for member in members if member.beat is not None for o in member.beat.operators}
        reason = refusal(old, new, with_state)
        if reason is None and under_way.back is not None:
            return refusal_to_go_back(old, new, with_state)
        return refusal_of_events(self.published, new.events) if reason is None else reason

    def stored(self, event: PackageStored) -> list[Said]:
        """The store has the package, or does not take it."""
        under_way = self.under_way
        if under_way is None or under_way.stage is not Stage.STORING or under_way.package is None:
            return []
        if event.problem:
            return self._ended(under_way, False, event.problem)
        return self._hand_out(under_way, under_way.package, event.version)

    def _hand_out(self, under_way: UnderWay, package: Package, version: int) -> list[Said]:
        under_way.version, under_way.stage = version, Stage.HANDING_OUT
        return [HandOut(worker, version, package) for worker in self._roster.workers]

    def registered(self, worker: int) -> list[Said]:
        """What a worker that has registered needs in order to take part, now or behind a switch."""
        said: list[Said] = [] if self.active is None else [HandOut(worker, *self.active)]
        under_way = self.under_way
        if under_way is not None and under_way.package is not None and under_way.version:
            said.append(HandOut(worker, under_way.version, under_way.package))
        return said

    def may_join(self, registration: Registration) -> bool:
        """It can run what runs, and what is about to."""
        if self.active is None or self.active[0] not in registration.taken:
            return False
        under_way = self.under_way
        switching = under_way is not None and under_way.stage is Stage.SWITCHING
        return not switching or (under_way is not None and under_way.version in registration.taken)

    def _taken(self, under_way: UnderWay) -> list[Said] | None:
        """Every worker that is there can run it, whether it takes part or not: any of them may have to."""
        problem = self._problem(under_way)
        if problem is not None:
            return self._ended(under_way, False, problem)
        if not all(under_way.version in each.taken for each in self._roster.workers.values()):
            return None
        if self.active is None and not under_way.only_check:
            under_way.stage = Stage.NOTING
            assert under_way.package is not None, "a version without its code is handed out"
            return [NoteRunning(under_way.version, published_of(under_way.package.description.events, self.published))]
        return self._wanted(under_way)

    def _problem(self, under_way: UnderWay) -> str | None:
        """What keeps a worker that is there from running it."""
        for each in self._roster.workers.values():
            if under_way.version in each.refused:
                return f"worker {each.name} cannot run it: {each.refused[under_way.version]}"
        return None

    def noted(self, event: RunningNoted) -> list[Said]:
        """The store says that this is a version that has run, or has no note of it."""
        under_way = self.under_way
        if under_way is None or under_way.stage is not Stage.NOTING or under_way.version != event.version:
            return []  # of a version that a marker speaks for
        if event.problem:
            # The store may have the note all the same, and a coordinator that starts would then run this version.
            unsure = f"{event.problem}; it may run all the same once the coordinator is started anew: deploy it again"
            return self._ended(under_way, False, unsure)
        return self._wanted(under_way)

    def _wanted(self, under_way: UnderWay) -> list[Said]:
        under_way.stage = Stage.SWITCHING
        return [DeployWanted(under_way.version, under_way.only_check)]

    def state_found(self, effect: StateFound) -> list[Said]:
        """What the check of all state has found."""
        under_way = self.under_way
        if under_way is None or under_way.version != effect.version:
            return []
        reason = effect.findings.refusal()
        if reason is not None:
            late = "state that was changed while it was deployed: " if under_way.notes else ""
            return self._ended(under_way, False, late + reason)
        under_way.notes = effect.findings.notes()
        if under_way.only_check:
            return self._ended(under_way, True, "it can be deployed")
        return []

    def _switch(self, under_way: UnderWay, package: Package) -> list[Said] | None:
        """It runs, and a coordinator that starts anew would find it."""
        core, first = self._core, self.active is None
        problem = self._problem(under_way)
        if problem is not None and core.app_version != under_way.version:
            # One has come that cannot run it, and might be the only one. Behind the held snapshot it is too late.
            return [DeployWanted(core.app_version), *self._ended(under_way, False, problem)]
        marked = core.phase in (Phase.LOADING, Phase.RUNNING)
        if core.app_version != under_way.version or not (marked or first):
            return None
        said = self._activate(under_way.version, package)
        said += [] if first else [NoteRunning(under_way.version, self.published)]
        before = "" if under_way.back is None else f", with the code from before version {under_way.back}"
        return said + self._ended(under_way, True, f"version {under_way.version} runs{before}")

    def _given_up(self, under_way: UnderWay) -> list[Said]:
        """The coordinator has stopped, or has refused to go on."""
        text = "the coordinator has stopped before the version ran"
        switched = under_way.stage is Stage.SWITCHING and self._core.app_version == under_way.version
        if under_way.only_check or not (switched or under_way.stage is Stage.NOTING):
            return self._ended(under_way, False, f"{text}: deploy it again once there is another one")
        # A note or a marker is on its way: the next coordinator goes by it, if it arrives.
        self.under_way = None
        return self._answer(under_way.by, False, f"{text}; it may run all the same once there is another one")

    def found(self, event: VersionFound) -> list[Said]:
        """A coordinator that starts finds the version that runs; the one before may have ended without its note."""
        self.published = event.published
        return [*self._activate(event.version, event.package), NoteRunning(event.version, self.published)]

    def _activate(self, version: int, package: Package) -> list[Said]:
        self.active, self._on_offer = (version, package), None
        self.published = published_of(package.description.events, self.published)
        return [Announce(version, package)]

    def _ended(self, under_way: UnderWay, done: bool, text: str) -> list[Said]:
        self.under_way = None
        offer, package = self._on_offer, under_way.package
        if offer is not None and package is not None and package.fingerprint == offer.package.fingerprint:
            offer.version, offer.again_at_s = under_way.version, self._core.clock.now_s + OFFER_AGAIN_S
        lines = "\n".join([text, *under_way.notes]) if done else text
        ended: list[Said] = [] if under_way.only_check else [RolloutEnded(under_way.version, done)]
        return ended + self._answer(under_way.by, done, lines)

    def _answer(self, to: int, done: bool, text: str) -> list[Said]:
        return [Answer(to, done, text)]
