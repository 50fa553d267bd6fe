"""One slot's sequencer: the requests that have arrived, in log order, and the transactions carried over from
earlier epochs.

Takes each offset once, whatever the log delivers twice. Decides nothing about outcomes. Paper section 5.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from msgspec.structs import astuple

from styx.sequencer.arrival import Arrival, Recorded
from styx.sequencer.epoch_record import Resumed, SlotBatch


class SlotSequencer:
    """`next_offset` is where the next batch starts; `expected` is the lowest offset not yet taken from the log."""

    __slots__ = ("expected", "next_offset", "ready", "slot", "waiting", "waiting_bytes")

    def __init__(self, slot: int, next_offset: int = 0) -> None:
        self.slot = slot
        self.next_offset = next_offset
        self.expected = next_offset
        self.waiting: deque[Recorded] = deque()
        self.waiting_bytes = 0
        self.ready: dict[int, dict[bytes, bytes]] = {}

    def arrive(self, arrivals: Iterable[Arrival]) -> None:
        """Takes records in log order; those taken before are ignored, gaps (log control records) are fine."""
        append, n_bytes = self.waiting.append, 0
        for arrival in arrivals:
            recorded: Recorded = astuple(arrival)
            offset: int = recorded[0]
            if offset >= self.expected:
                self.expected = offset + 1
                payload: bytes = recorded[2]
                n_bytes += len(payload)
                append(recorded)
        self.waiting_bytes += n_bytes

    def batch(self, limit: int, outcome_bytes_max: int) -> tuple[SlotBatch, list[Recorded]]:
        """The next batch of at most `limit` requests, and resumed transactions whose outcomes fit, the others later."""
        first = self.next_offset
        count = min(limit, len(self.waiting))
        popleft = self.waiting.popleft
        taken = [popleft() for _ in range(count)]
        if taken:
            self.waiting_bytes -= _bytes_of(taken)
            self.next_offset = taken[-1][0] + 1
        resumed = []
        for tid, outcomes in list(self.ready.items()):
            outcome_bytes_max -= sum(map(len, outcomes.values()))
            if outcome_bytes_max < 0:
                break
            resumed.append(Resumed(tid, outcomes))
            del self.ready[tid]
        return SlotBatch(self.slot, first, self.next_offset, count, resumed), taken

    def has_recorded(self, batch: SlotBatch) -> bool:
        """Everything that `batch` names has arrived."""
        return self.expected >= batch.next

    def replay(self, batch: SlotBatch) -> list[Recorded]:
        """The requests of a recorded batch."""
        assert batch.first == self.next_offset, "a replayed batch does not start where the last one ended"
        taken = []
        while self.waiting and self.waiting[0][0] < batch.next:
            taken.append(self.waiting.popleft())
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
