"""The events that an epoch's transactions have emitted on a worker's slots: collected phase by phase, handed on at most
once.

An event that stands in its log already (found there after a recovery) is not handed on again. A replay that emits
something else there, or nothing, is reported, and what stands in the log stays. Paper section 7.4, as for replies.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from operator import attrgetter
from typing import Any, Final

from styx.messages import EventRecord
from styx.model.event import Event
from styx.model.event_record import epoch_of, event_record
from styx.worker.events import Effect, EmitEvents, EventDiffers, StandingEvent
from styx.worker.slot import Slot

_DIGEST_BYTES: Final = 16
_its_id = attrgetter("id")


def event_digest(json: bytes) -> bytes:
    """Of an event's JSON, by which a replay's is held against what stands in the log."""
    return blake2b(json, digest_size=_DIGEST_BYTES).digest()


class Emissions:
    """The events of the open epoch on `slots`. `standing` are those that the logs hold already, by id. `any`: there are
    some, whether they stand already or not.
    """

    def __init__(self, events: Mapping[str, Event[Any]], slots: Mapping[int, Slot]) -> None:
        self.standing: dict[str, StandingEvent] = {}
        self._events = events
        self._slots = slots
        self._epoch = -1
        self._by_slot: dict[int, list[EventRecord]] = {}
        self._differing: list[EventDiffers] = []
        self.any = False

    def load(self, emitted: Mapping[str, StandingEvent], epoch: int) -> None:
        """Takes what the logs hold, from somewhere before the end of `epoch` on. What is of that epoch or an earlier
        one is in the snapshot, and no replay emits it again.
        """
        self.standing = {its_id: stands for its_id, stands in emitted.items() if epoch_of(its_id) > epoch}

    def replayed(self, until: int) -> list[Effect]:
        """All recorded epochs, up to `until`, have closed: reports what stands of them and no replay has emitted. What
        stands of later ones is of a later generation, which this worker does not know of yet.
        """
        missing = [its_id for its_id in self.standing if epoch_of(its_id) <= until]
        lost = [(its_id, self.standing.pop(its_id)) for its_id in missing]
        return [EventDiffers(stands.slot, stands.event, its_id, None) for its_id, stands in lost]

    def begin(self, epoch: int) -> None:
        """The events that follow belong to `epoch`."""
        assert not self._by_slot, "an epoch began before the last one's events were taken"
        self._epoch = epoch
        self.any = False

    def collect(self, phase: int) -> None:
        """Takes what a phase has committed. Call it in serial order."""
        for index, slot in self._slots.items():
            emitted = slot.state.emitted
            if emitted:
                records = [event_record(*emission, index, self._epoch, phase) for emission in emitted]
                emitted.clear()
                self.any = True
                records.sort(key=_its_id)
                new = [record for record in records if not self._stands(record)]
                if new:
                    self._by_slot.setdefault(index, []).extend(new)

    def _stands(self, record: EventRecord) -> bool:
        stands = self.standing.pop(record.id, None) if self.standing else None
        if stands is None:
            return False
        json = self._events[record.event].to_json(record.payload)
        if (stands.event, stands.digest) != (record.event, event_digest(json)):
            self._differing.append(EventDiffers(stands.slot, stands.event, record.id, record))
        return True

    def take(self) -> list[Effect]:
        """The epoch's events so far, after the reports of differing ones."""
        taken: list[Effect] = [*self._differing]
        self._differing = []
        for slot, records in self._by_slot.items():
            taken.append(EmitEvents(slot, records))
        self._by_slot = {}
        return taken
