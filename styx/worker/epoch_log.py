"""The records that a worker appends for the open epoch, and how many of them are not durable yet.

Paper section 7.2.
"""

from __future__ import annotations

from styx.model.execution import ErrorTriple
from styx.sequencer.epoch_record import EpochRecord, SlotBatch, Verdicts, encode
from styx.worker.events import AppendEpochRecord, AppendVerdicts


class EpochLog:
    """`undurable` records have been appended, and their end has not been told."""

    def __init__(self, generation: int, epoch: int) -> None:
        self.undurable = 0
        self._generation = generation
        self._epoch = epoch

    def composition(self, counter: int, batches: list[SlotBatch]) -> AppendEpochRecord:
        """The epoch's record."""
        self.undurable += 1
        record = EpochRecord(self._generation, self._epoch, counter, batches)
        return AppendEpochRecord(self._generation, self._epoch, encode(record))

    def verdicts(self, ended: list[tuple[int, ErrorTriple | None]], unlocked: list[int]) -> list[AppendVerdicts]:
        """What time has decided, if it has decided anything: in the log before anybody hears of it."""
        if not ended and not unlocked:
            return []
        self.undurable += 1
        record = Verdicts(self._generation, self._epoch, ended, unlocked)
        return [AppendVerdicts(self._generation, self._epoch, encode(record))]
