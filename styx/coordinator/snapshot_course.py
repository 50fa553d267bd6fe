"""The course of a snapshot: it is wanted, an epoch closes with it, workers store their parts, then its manifest is
stored, and then a note in the log says so.

The orders that recoveries rest on are here, as effects that follow from events: a manifest after every part, a note
after the manifest, and nothing is deleted before the note. Paper section 7.1.
"""

from __future__ import annotations

from typing import Final

from styx.coordinator.barrier import SnapshotDue
from styx.coordinator.events import AppendNote, DeleteManifest, Effect, StoreManifest, SweepObjects
from styx.coordinator.snapshot_ledger import SnapshotLedger
from styx.coordinator.state_checks import StateChecks
from styx.protocol.manifest import Manifest, SlotPart

CHANGE_RETRY_S: Final = 2.0
"""A snapshot that a planned change waits for is tried again after so long at most, if it has failed."""
STOP_S_MAX: Final = 10.0
"""How long an orderly stop waits for its last snapshot."""


class SnapshotCourse:
    """`wanted`: one is to be taken as soon as can be. `hold_next`: no epoch begins behind the next one. `holding`: none
    begins behind the one under way. `stopping`: an orderly stop waits for the next one.
    """

    def __init__(self, n_slots: int, interval_s: float, stop_s_max: float, checks: StateChecks) -> None:
        self.ledger = SnapshotLedger(n_slots)
        self.clock = SnapshotClock(interval_s)
        self.wanted = self.hold_next = self.holding = self.stopping = False
        self.completed = 0
        self._checks = checks
        self._unjudged: Manifest | None = None
        self._storing: Manifest | None = None
        self._swept = False
        self._stop_s_max, self._stop_by_s = stop_s_max, 0.0

    def stop(self) -> None:
        """An orderly stop begins: the next snapshot is the last one, and no epoch begins behind it."""
        self.stopping = self.hold_next = True
        self._stop_by_s = self.clock.now_s + self._stop_s_max

    @property
    def late(self) -> bool:
        """An orderly stop has waited for its snapshot for too long."""
        return self.stopping and self.clock.now_s >= self._stop_by_s

    def generation_begins(self) -> None:
        """What was under way is no part of anything; a generation that stops holds its next one."""
        self._unjudged = self._storing = None
        self.holding = self._swept = False
        self.hold_next = self.stopping

    def due(self, changing: bool) -> SnapshotDue | None:
        """What the epoch that is about to close is told, if a snapshot is to be taken with it."""
        if self.ledger.under_way is not None or not (self.wanted or self.clock.due(changing)):
            return None
        # Nobody is served behind a held one until it has ended: it is to be short.
        return SnapshotDue(self.hold_next, [] if self.hold_next else self.ledger.worn())

    def begin(self, epoch: int, counter: int, app_version: int) -> None:
        """The epoch has closed with it."""
        self.clock.taken(epoch)
        self.wanted = False
        self.holding, self.hold_next = self.hold_next, False
        if self.holding and self._checks.passed:
            self._checks.hold(epoch)
        self.ledger.begin(epoch, counter, app_version)

    def takes_parts(self, epoch: int) -> bool:
        """Parts of this epoch's snapshot are still missing."""
        return self.ledger.under_way is not None and self.ledger.under_way[0] == epoch and self._storing is None

    def take_parts(self, generation: int, parts: list[SlotPart]) -> list[Effect]:
        """A worker has stored its part, and every reply before it is durable."""
        self._unjudged = self.ledger.take_parts(generation, parts)
        return self.go_on()

    def go_on(self) -> list[Effect]:
        """All parts are there, and what the change's snapshot has fits the version that it is for."""
        if self._unjudged is None or self._checks.awaited:
            return []
        self._storing, self._unjudged = self._unjudged, None
        return [StoreManifest(self._storing)]

    def manifest_stored(self, epoch: int) -> list[Effect]:
        """The snapshot is complete if this coordinator is still the one: the log knows."""
        manifest = self._storing
        if manifest is None or manifest.epoch != epoch:
            return []
        return [AppendNote(manifest.generation, epoch)]

    def manifest_failed(self, epoch: int) -> list[Effect] | None:
        """It may be there all the same; None if nobody waits for it."""
        manifest = self._storing
        if manifest is None or manifest.epoch != epoch:
            return None
        return [DeleteManifest(manifest.generation, manifest.epoch)]

    def noted(self, epoch: int, generation: int, effects: list[Effect]) -> Manifest | None:
        """No other coordinator had begun when its manifest was there: what older snapshots need may go."""
        manifest = self._storing
        if manifest is None or manifest.epoch != epoch:
            return None
        self._storing = None
        self.completed += 1
        effects.extend(self.ledger.complete(manifest))
        if not self._swept:
            # Not before: until a manifest of this generation is there, another coordinator may start from one that was
            # on its way when an older generation ended, and that nobody here has heard of.
            self._swept = True
            effects.append(SweepObjects(self.ledger.referenced(), generation))
        return manifest

    def fail(self) -> None:
        """It will not be one."""
        self.ledger.abandon()
        self._checks.release()
        self._unjudged = self._storing = None
        self.holding = False
        self.hold_next = self.stopping
        self.clock.failed()


class SnapshotClock:
    """When the last snapshot was taken, and whether the next one is due.

    `interval_s` lies between snapshots; `now_s` is the present, and `epoch` that of the last one.
    """

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self.now_s = 0.0
        self.epoch = -1
        self._at_s = 0.0

    def taken(self, epoch: int) -> None:
        """A snapshot begins behind this epoch, or what stands there is one."""
        self._at_s = self.now_s
        self.epoch = epoch

    def failed(self) -> None:
        """It has not become one: everything is to be stored yet."""
        self.epoch = -1

    def due(self, changing: bool) -> bool:
        """The interval is over; a planned change (`changing`) does not wait that long."""
        interval_s = min(self.interval_s, CHANGE_RETRY_S) if changing else self.interval_s
        return self.now_s - self._at_s >= interval_s

    def unstored(self, changing: bool, epoch: int) -> bool:
        """It is due, and there is something new at this epoch, or a planned change."""
        return self.due(changing) and (changing or epoch > self.epoch)
