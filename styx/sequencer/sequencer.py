"""One slot's sequencer: the requests that have arrived, in log order, those of them that were passed over, and the
transactions carried over from earlier epochs.

Takes each offset once, even if the log delivers a record twice. Every slot's sequencer owns one residue class of
transaction ids, without coordination: `tid = sid + lc * n_seq` with sid in 1..n_seq (Mencius). At each epoch's end
every counter moves to the highest one, so that every later TID is greater than every earlier one. Paper section 5.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from styx.messages import Entity, requested_entity
from styx.model.limits import TID_MAX
from styx.protocol.manifest import PassedOver
from styx.sequencer.epoch_record import Resumed, SlotBatch


def tid(slot: int, counter: int, n_slots: int) -> int:
    """The TID of a slot's request number `counter`; slots count from 0, TIDs from 1."""
    value = slot + 1 + counter * n_slots
    assert 0 < value <= TID_MAX, "transaction ids are exhausted"
    return value


def slot_of(tid: int, n_slots: int) -> int:
    """The slot whose sequencer gave `tid`."""
    return (tid - 1) % n_slots


Recorded = tuple[Any, ...]
"""An `Arrival` that was taken, in the type that compiled code does not take apart and put together again."""
PASSED_MAX: Final = 5_000
"""While so many of a slot's requests are passed over, no other is looked at. Few beside what may wait in a worker."""
LOOKS_MAX: Final = 64
"""Requests that were passed over, looked at in one epoch, and found no room; the search ends after so many."""


class SlotSequencer:
    """`next_offset` is where the next batch starts; `expected` is the lowest offset not yet taken from the log.

    `passed`, by offset, stand before `next_offset` and are in no epoch yet: for want of room, or because an older one
    to the same entity is not, so that the requests to one entity keep their order. `entities` counts them. A snapshot
    knew of `missing` ones: those from `expected` on have not come again.
    """

    __slots__ = (
        "entities",
        "expected",
        "missing",
        "next_offset",
        "passed",
        "ready",
        "slot",
        "waiting",
        "waiting_bytes",
    )

    def __init__(self, slot: int, next_offset: int = 0, passed_over: PassedOver | None = None) -> None:
        self.slot = slot
        self.expected = next_offset
        self.next_offset = next_offset if passed_over is None else passed_over.sequenced
        self.missing = frozenset(() if passed_over is None else passed_over.offsets)
        self.passed: dict[int, Recorded] = {}
        self.entities: dict[Entity, int] = {}
        self.waiting: deque[Recorded] = deque()
        self.waiting_bytes = 0
        self.ready: dict[int, dict[bytes, bytes]] = {}

    def arrive(self, arrivals: Iterable[Recorded]) -> None:
        """Takes records in log order; those taken before are ignored, gaps (log control records) are fine."""
        append, n_bytes = self.waiting.append, 0
        for recorded in arrivals:
            offset: int = recorded[0]
            if offset >= self.expected:
                self.expected = offset + 1
                if offset >= self.next_offset:
                    append(recorded)
                elif offset in self.missing:
                    self._pass_over(offset, recorded)
                else:
                    continue
                payload: bytes = recorded[2]
                n_bytes += len(payload)
        self.waiting_bytes += n_bytes

    @property
    def count(self) -> int:
        """Requests that have arrived and are in no epoch yet."""
        return len(self.waiting) + len(self.passed)

    @property
    def oldest(self) -> Recorded:
        """Of those passed over, the one that has waited longest; there must be some."""
        return next(iter(self.passed.values()))

    def batch(
        self, limit: int, outcome_bytes_max: int, has_room: Callable[[Recorded], bool] | None = None
    ) -> tuple[SlotBatch, list[Recorded]]:
        """The next batch of at most `limit` requests, and resumed transactions whose outcomes fit, the others later.

        A request for which there is no room is passed over. None: there is room for each.
        """
        first = self.next_offset
        taken = self._late(-(-limit // 2), has_room) if self.passed else []
        late: list[int] = [recorded[0] for recorded in taken]
        passed: list[int] = []
        count = min(limit - len(taken), len(self.waiting)) if len(self.passed) < PASSED_MAX else 0
        popleft = self.waiting.popleft
        for recorded in [popleft() for _ in range(count)]:
            offset: int = recorded[0]
            self.next_offset = offset + 1
            if not (self.entities and self._is_behind(recorded)) and (has_room is None or has_room(recorded)):
                taken.append(recorded)
            else:
                passed.append(offset)
                self._pass_over(offset, recorded)
        if taken:
            self.waiting_bytes -= _bytes_of(taken)
        resumed = []
        for tid, outcomes in list(self.ready.items()):
            outcome_bytes_max -= sum(map(len, outcomes.values()))
            if outcome_bytes_max < 0:
                break
            resumed.append(Resumed(tid, outcomes))
            del self.ready[tid]
        return SlotBatch(self.slot, first, self.next_offset, len(taken), resumed, late, passed), taken

    def _late(self, limit: int, has_room: Callable[[Recorded], bool] | None) -> list[Recorded]:
        """Requests that were passed over and have room now, at most `limit`, the oldest first."""
        taken: list[Recorded] = []
        staying: set[Entity] = set()
        looks = LOOKS_MAX
        for recorded in self.passed.values():
            if len(taken) == limit or not looks:
                break
            entity = requested_entity(recorded[2])
            if entity not in staying and (has_room is None or has_room(recorded)):
                taken.append(recorded)
            else:
                looks -= 1
                if entity is not None:
                    staying.add(entity)
        for recorded in taken:
            self._no_longer_passed(recorded[0])
        return taken

    def _is_behind(self, recorded: Recorded) -> bool:
        entity = requested_entity(recorded[2])
        return entity is not None and entity in self.entities

    def _pass_over(self, offset: int, recorded: Recorded) -> None:
        self.passed[offset] = recorded
        entity = requested_entity(recorded[2])
        if entity is not None:
            self.entities[entity] = self.entities.get(entity, 0) + 1

    def _no_longer_passed(self, offset: int) -> Recorded:
        recorded = self.passed.pop(offset)
        entity = requested_entity(recorded[2])
        if entity is not None:
            left = self.entities.pop(entity) - 1
            if left:
                self.entities[entity] = left
        return recorded

    def nothing(self) -> SlotBatch:
        """The batch of an epoch that nothing of the slot takes part in, not even what is carried."""
        return SlotBatch(self.slot, self.next_offset, self.next_offset, 0, idle=True)

    def rest(self) -> tuple[int, PassedOver | None]:
        """(offset before which every request is sequenced, those behind it), for a snapshot."""
        # Some may not have come yet, since the snapshot that this generation began on.
        offsets = sorted({*self.passed, *(offset for offset in self.missing if offset >= self.expected)})
        if not offsets:
            return self.next_offset, None
        return offsets[0], PassedOver(self.next_offset, offsets)

    def has_recorded(self, batch: SlotBatch) -> bool:
        """Everything that `batch` names has arrived."""
        return self.expected >= batch.next

    def replay(self, batch: SlotBatch) -> list[Recorded]:
        """The requests of a recorded batch."""
        assert batch.first == self.next_offset, "a replayed batch does not start where the last one ended"
        taken = [self._no_longer_passed(offset) for offset in batch.late if offset in self.passed]
        passed = frozenset(batch.passed)
        while self.waiting and self.waiting[0][0] < batch.next:
            recorded = self.waiting.popleft()
            offset: int = recorded[0]
            if offset in passed:
                self._pass_over(offset, recorded)
            else:
                taken.append(recorded)
        self.waiting_bytes -= _bytes_of(taken)
        assert len(taken) == batch.count, "the log gave other requests than the epoch record counts"
        self.next_offset = batch.next
        for resumed in batch.resumed:
            self.ready.pop(resumed.tid, None)
        return taken


def _bytes_of(taken: list[Recorded]) -> int:
    n_bytes = 0  # compiled, this costs less than the `sum` of a list
    for recorded in taken:
        payload: bytes = recorded[2]
        n_bytes += len(payload)
    return n_bytes
