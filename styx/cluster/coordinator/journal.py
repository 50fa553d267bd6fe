"""The log as a cluster's coordinator writes it: fences, markers, notes, and the release of old records.

Its producer is transactional: once another coordinator has taken it over, every append of this one is refused, and this
one ends. Paper sections 7.1 and 7.2.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from styx.cluster.wire import events_producer, worker_producer
from styx.coordinator.events import ReleaseLog
from styx.host.ports import Identity
from styx.kafka.address import KafkaAddress
from styx.kafka.appender import Appender
from styx.kafka.offsets import LogEnds
from styx.kafka.topics import Topics
from styx.kafka.transaction import fence
from styx.sequencer.epoch_record import EPOCHS_PARTITION, GenerationMarker, LogEntry, SnapshotNote, encode

RETRY_SECONDS: Final = 0.2

_log = logging.getLogger("styx.coordinator")


class ClusterJournal:
    """The journal of an `app` with so many `members` at most. `failed` takes errors that no retry can mend.

    `log_away`: a generation waits for the log. With `keep_log` no record is ever released. `may_emit` says whether
    producers of events are to be fenced as well (`Rollout.may_emit`).
    """

    def __init__(
        self,
        app: str,
        members: int,
        address: KafkaAddress,
        topics: Topics,
        appender: Appender,
        keep_log: bool,
        failed: Callable[[BaseException], None],
    ) -> None:
        self.log_away = False
        self.may_emit: Callable[[], bool] = lambda: True
        self._app = app
        self._members = members
        self._address = address
        self._topics = topics
        self._appender = appender
        self._keep_log = keep_log
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()
        self._generation = 0
        self._stopped = False

    def stop(self) -> None:
        """What is under way is dropped, and its end not told."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()

    def _start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._stopped:
            self._failed(error)

    # Generations -------------------------------------------------------------------------------------------

    def fence(self, generation: int, fenced: Callable[[list[Identity]], None]) -> None:
        """As `CoordinatorJournal.fence`."""
        self._generation = generation
        self._start(self._fence(generation, fenced), f"styx-fence-{generation}")

    async def _fence(self, generation: int, fenced: Callable[[list[Identity]], None]) -> None:
        # Whoever was a member in an older generation had one of the first places then.
        places = range(self._members)
        producers = [worker_producer(self._app, place) for place in places]
        if self.may_emit():
            producers += [events_producer(self._app, place) for place in places]
        while generation == self._generation:
            try:
                identities: list[Identity] = [*await fence(self._address, producers)]
            except OSError as error:
                if not self.log_away:
                    _log.warning("generation %d waits for the log: %s", generation, error)
                self.log_away = True
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self.log_away = False
            if not self._stopped:
                fenced(identities)
            break

    def mark(self, marker: GenerationMarker, appended: Callable[[], None]) -> None:
        """As `CoordinatorJournal.mark`."""
        self._start(self._append(marker, appended), f"styx-marker-{marker.generation}")

    async def _append(self, entry: LogEntry, appended: Callable[[], None]) -> None:
        await self._appender.append(self._topics.epochs, EPOCHS_PARTITION, [(None, encode(entry), [])])
        if not self._stopped:
            appended()

    def note(self, note: SnapshotNote, appended: Callable[[], None]) -> None:
        """As `CoordinatorJournal.note`."""
        self._start(self._append(note, appended), f"styx-snapshot-{note.epoch}")

    # What no recovery reads any more -----------------------------------------------------------------------

    def release_records(self, wanted: ReleaseLog) -> None:
        """As `CoordinatorJournal.release_records`."""
        if self._keep_log:
            return
        offsets = {(self._topics.requests, slot): offset for slot, offset in wanted.requests.items() if offset}
        if wanted.epochs:
            offsets[self._topics.epochs, EPOCHS_PARTITION] = wanted.epochs
        # Replies stay as long as their topic keeps them: clients may not have read them yet.
        if offsets:
            self._start(self._release(offsets), "styx-release")

    async def _release(self, offsets: dict[tuple[str, int], int]) -> None:
        ends = LogEnds(self._address, self._topics)
        try:
            await ends.open()
            await ends.release(offsets)
        except OSError as error:
            _log.warning("records that no recovery needs stay until the next snapshot: %s", error)
        finally:
            await ends.close()
