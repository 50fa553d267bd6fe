"""What outlives the processes of a transcript: log and store in memory, and the replies as clients saw them.

Can be told to misbehave; never delivers anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from styx.coordinator.events import ReleaseLog
from styx.host.ports import LogEnds
from styx.log.base import Stream
from styx.log.memory import MemoryLog
from styx.messages import ReplyRecord, Request, encode_reply, encode_request
from styx.sequencer.epoch_record import EPOCHS_PARTITION, decode_external
from styx.store import MemoryStore

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

    def outcomes(self) -> dict[bytes, bytes]:
        """Of external calls, by key."""
        streams = [self.log.read(Stream.EXTERNALS, slot, 0) for slot in range(self.n_slots)]
        records = [decode_external(record.payload) for stream in streams for record in stream]
        return {record.key: record.outcome for record in records if record.outcome is not None}

    def ends(self, slots: Iterable[int]) -> LogEnds:
        """Where the epochs stream and each slot's replies end now."""
        replies = {slot: {slot: self.log.bounds(Stream.REPLIES, slot)[1]} for slot in slots}
        return LogEnds(self.log.bounds(Stream.EPOCHS, EPOCHS_PARTITION)[1], replies)

    def try_store(self, operation: Callable[[], T]) -> tuple[bool, T | None]:
        """(whether it is known to be done, its result): the store may be down, or only its answer lost."""
        result = None if self.store_mode == "is down" else operation()
        works = self.store_mode == "works"
        return works, result if works else None

    def release_records(self, wanted: ReleaseLog) -> None:
        """Removes records that no recovery will read."""
        for slot in range(self.n_slots):
            self.log.truncate(Stream.REQUESTS, slot, wanted.requests[slot])
            self.log.truncate(Stream.REPLIES, slot, wanted.replies[slot])
        self.log.truncate(Stream.EPOCHS, EPOCHS_PARTITION, wanted.epochs)
