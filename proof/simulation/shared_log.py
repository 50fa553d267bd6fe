"""The log as a deployment shares it: appends arrive late, in order for each writer and partition, or never.

A writer that crashes may or may not have its last appends in the log. Appends with a producer's identity are refused
once somebody else has taken the producer over, as Kafka refuses them; without one, replies and events of an older
generation are refused once a newer one's marker stands in the log. Reading sees what has arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from proof.simulation.virtual_time import VirtualTime
from styx.log.base import Stream
from styx.log.memory import MemoryLog
from styx.messages import ReplyRecord, decode_reply
from styx.model.delivery import delivery_name

Identity = tuple[int, int]
"""A producer, and how often it was taken over before."""


class SharedLog:
    """`records` is the durable content; `fence` the newest generation whose marker has arrived;
    `replies` counts the records of the replies stream, and `answered` is the last epoch that one is of."""

    def __init__(self, time: VirtualTime, rng: Random, delay_s: float) -> None:
        self.records = MemoryLog()
        self.fence = -1
        self.replies = 0
        self.answered = -1
        self.listener: Callable[[ReplyRecord], None] = lambda reply: None
        """Is told every reply that arrives."""
        self._time = time
        self._rng = rng
        self._delay_s = delay_s
        self._arrival_s: dict[tuple[str, Stream, int], float] = {}
        self._cut_s: dict[str, float] = {}
        self._takeovers: dict[int, int] = {}

    def append_now(self, stream: Stream, partition: int, payload: bytes) -> int:
        """A durable append by a client; returns the offset."""
        offset = self.records.append(stream, partition, self.timestamp_us, payload)
        self.records.flush()
        return offset

    def fence_writers(self, role: str) -> None:
        """A new process of this role begins: what older ones have under way is refused (a transactional producer's
        fence).
        """
        for writer in {writer for writer, _, _ in self._arrival_s}:
            if writer.startswith(role):
                self._cut_s[writer] = min(self._cut_s.get(writer, self._time.now_s), self._time.now_s)

    def take_over(self, producer: int) -> Identity:
        """A new identity of a producer: whatever arrives with an older one is refused."""
        self._takeovers[producer] = self._takeovers.get(producer, 0) + 1
        return producer, self._takeovers[producer]

    def writer_crashed(self, writer: str) -> None:
        """Of what it has under way, some may still arrive."""
        self._cut_s[writer] = self._time.now_s + self._rng.choice([0.0, self._rng.random(), 1.0]) * self._delay_s

    @property
    def timestamp_us(self) -> int:
        """Virtual time as a record's timestamp."""
        return int(self._time.now_s * 1e6)

    def append(
        self,
        writer: str,
        generation: int,
        stream: Stream,
        partition: int,
        payloads: list[bytes],
        arrived: Callable[[], None],
        identity: Identity | None = None,
        refused: Callable[[], None] | None = None,
    ) -> None:
        """Appends later, all together, then calls `arrived`; `refused` if `identity` is an old one by then."""
        place = (writer, stream, partition)
        due_s = max(self._arrival_s.get(place, 0.0), self._time.now_s + self._rng.random() * self._delay_s)
        self._arrival_s[place] = due_s
        record = (writer, generation, stream, partition, payloads, arrived, identity, refused)
        self._time.at(due_s, self._arrive, *record)

    def _arrive(
        self,
        writer: str,
        generation: int,
        stream: Stream,
        partition: int,
        payloads: list[bytes],
        arrived: Callable[[], None],
        identity: Identity | None,
        refused: Callable[[], None] | None,
    ) -> None:
        if self._time.now_s > self._cut_s.get(writer, self._time.now_s):
            if refused is not None:  # who is fenced lives, and is told; who has crashed hears nothing
                refused()
            return
        if identity is not None:
            producer, takeover = identity
            if self._takeovers[producer] != takeover:
                if refused is not None:
                    refused()
                return
        elif stream in (Stream.REPLIES, Stream.EVENTS) and generation < self.fence:
            return
        for payload in payloads:
            self.records.append(stream, partition, self.timestamp_us, payload)
        self.records.flush()
        if stream is Stream.REPLIES:
            replies = [decode_reply(payload) for payload in payloads]
            self.replies += sum(delivery_name(reply.request_id) is None for reply in replies)
            self.answered = max(self.answered, *(reply.epoch for reply in replies))
            for reply in replies:
                self.listener(reply)
        arrived()
