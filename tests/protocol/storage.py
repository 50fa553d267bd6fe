"""What outlives the processes of a transcript: log and store in memory, and the replies as clients saw them.

Can be told to misbehave; never delivers anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from styx.coordinator import metadata
from styx.coordinator.events import DeleteManifest, DeleteObjects, ReleaseLog, SweepObjects
from styx.log import Stream
from styx.log.memory import MemoryLog
from styx.messages import ReplyRecord, Request, encode_reply, encode_request
from styx.sequencer.epoch_record import EPOCHS_PARTITION
from styx.store import MemoryStore
from styx.worker.snapshot_object import SLOT_PREFIX, unneeded

T = TypeVar("T")


class Storage:
    """`store_mode` is one of `STORE_MODES`; `fence`: replies of older generations are refused."""

    STORE_MODES = ("works", "is down", "loses answers")

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self.log = MemoryLog()
        self.store = MemoryStore()
        self.store_mode = "works"
        self.fence = -1
        self.sent: dict[str, tuple[Request, int]] = {}
        self.replies: list[ReplyRecord] = []

    def append(self, stream: Stream, partition: int, payload: bytes) -> None:
        self.log.append(stream, partition, 0, payload)
        self.log.flush()

    def append_request(self, slot: int, request: Request) -> None:
        self.sent[request.request_id] = (request, 0)
        self.append(Stream.REQUESTS, slot, encode_request(request))

    def append_replies(self, slot: int, replies: list[ReplyRecord], generation: int) -> bool:
        """False: the generation is fenced off."""
        if generation < self.fence:
            return False
        for record in replies:
            self.replies.append(record)
            self.append(Stream.REPLIES, slot, encode_reply(record))
        return True

    def ends(self, slots: Iterable[int]) -> tuple[int, dict[int, dict[int, int]]]:
        """Where the epochs stream and each slot's replies end now."""
        replies = {slot: {slot: self.log.bounds(Stream.REPLIES, slot)[1]} for slot in slots}
        return self.log.bounds(Stream.EPOCHS, EPOCHS_PARTITION)[1], replies

    def try_store(self, operation: Callable[[], T]) -> T | None:
        """The operation's result, or None: the store is down, or only its answer was lost."""
        result = None if self.store_mode == "is down" else operation()
        return result if self.store_mode == "works" else None

    def clean(self, effect: DeleteManifest | DeleteObjects | SweepObjects | ReleaseLog) -> None:
        """Removes what the coordinator no longer needs."""
        if isinstance(effect, DeleteManifest):
            self.store.delete(metadata.manifest_name(effect.generation, effect.epoch))
        elif isinstance(effect, ReleaseLog):
            for slot in range(self.n_slots):
                self.log.truncate(Stream.REQUESTS, slot, effect.requests[slot])
                self.log.truncate(Stream.REPLIES, slot, effect.replies[slot])
            self.log.truncate(Stream.EPOCHS, EPOCHS_PARTITION, effect.epochs)
        else:
            for name in effect.names if isinstance(effect, DeleteObjects) else self._swept(effect):
                self.store.delete(name)

    def _swept(self, effect: SweepObjects) -> list[str]:
        return unneeded(self.store.list(SLOT_PREFIX), effect.keep, effect.before)
