"""Samples of a run: the state in stored snapshots, taken while the load goes on, and judged afterwards against the log
and the record up to their epochs.

A state waits for its judgement in a file, because an hour's are large. Who judges removes the file, or leaves it for
whoever looks for what is wrong.
"""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.marketplace.audit.audit import audit
from benchmarks.marketplace.audit.driven import last_told
from benchmarks.marketplace.audit.reading import CannotRead, Stored, read_snapshot
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.state import State, state_of
from benchmarks.marketplace.audit.violation import Violation
from benchmarks.marketplace.record import Asked, Record
from styx.errors import StyxError
from styx.model.app import App
from styx.store.base import Store

ATTEMPTS_MAX: Final = 10
"""A snapshot may be replaced by newer ones while it is read."""
PAUSE_SECONDS: Final = 1.0


class Sample(NamedTuple):
    """A state that was read at `at_s` (`time.monotonic`), of the end of `epoch`; its entries and their bytes."""

    epoch: int
    at_s: float
    entries: int
    encoded: int
    file: Path

    def state(self) -> State:
        """Reads it again."""
        found: State = pickle.loads(self.file.read_bytes())  # noqa: S301 - this process has written it
        return found


class Sampler:
    """Takes a sample every `every_s` seconds at most, into files of `directory`."""

    def __init__(self, open_store: Callable[[], Store], app: App, directory: Path, every_s: float) -> None:
        self.taken: list[Sample] = []
        self._open_store = open_store
        self._app = app
        self._directory = directory
        self._every_s = every_s
        self._due_s = time.monotonic() + every_s

    async def look(self) -> Sample | None:
        """Takes one if it is due, and there is a newer snapshot. Raises `CannotRead`, or what the store raises."""
        if time.monotonic() < self._due_s:
            return None
        self._due_s = time.monotonic() + self._every_s
        sample = await asyncio.to_thread(self._take)
        if self.taken and self.taken[-1].epoch == sample.epoch:
            return None
        self.taken.append(sample)
        return sample

    def _take(self) -> Sample:
        stored, at_s = newest(self._open_store()), time.monotonic()
        file = self._directory / f"state-{stored.epoch}.pickle"
        file.write_bytes(pickle.dumps(state_of(self._app, stored.entries)))
        return Sample(stored.epoch, at_s, len(stored.entries), sum(len(data) for _, data in stored.entries), file)


def newest(store: Store) -> Stored:
    """The newest snapshot; blocks. Raises what the last attempt to read it raised."""
    for attempt in range(ATTEMPTS_MAX):
        try:
            return read_snapshot(store)
        except (CannotRead, StyxError, OSError):
            if attempt == ATTEMPTS_MAX - 1:
                raise
            time.sleep(PAUSE_SECONDS)
    raise AssertionError("there are attempts")


@dataclass(frozen=True)
class Until:
    """The requests of a record that have run by the end of an epoch, and those of which nobody knows."""

    record: Record
    epoch: int

    def __iter__(self) -> Iterator[Asked]:
        return (asked for asked in self.record if asked.place is None or asked.place.epoch <= self.epoch)


def judged(run: Run, samples: Sequence[Sample]) -> Iterator[tuple[Sample, list[Violation]]]:
    """Audits each sample with all criteria. `run` is the whole run, with its `Record`.

    Payments are under way at a sample, so the criteria do not demand that orders have ended; and what clients believe
    of products is known only for the end.
    """
    assert isinstance(run.record, Record)
    for sample in samples:
        history = run.history.until(sample.epoch)
        yield (
            sample,
            audit(
                replace(
                    run,
                    after=sample.state(),
                    history=history,
                    record=Until(run.record, sample.epoch),
                    mirror=(),
                    settled=False,
                    end=last_told(history),
                )
            ),
        )
