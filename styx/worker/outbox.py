"""The outbox: messages to peers, held until the worker has nothing more to run or holds enough.

Messages are grouped into one frame a peer, or several if they are large; acks of one transaction to one root are
summed. The functions below the class convert between calls as an invocation makes them and calls as messages carry
them, and weigh messages. Paper section 5.2.
"""

from __future__ import annotations

from typing import Final

from styx.model.app import App
from styx.model.function_spec import MadeCall
from styx.protocol.frames import Ack, Call, CallSpec, ExternalDone, Frame, Patch, Result, WorkerMessage
from styx.worker.ack_share import add
from styx.worker.footprint import Footprint

MESSAGES_HELD_MAX: Final = 256
"""While a worker has functions to run, it holds back up to this number of messages, for fewer and larger frames."""
BYTES_HELD_MAX: Final = 1024 * 1024
"""The same limit in bytes of arguments and results, the large parts of messages."""
FRAME_BYTES: Final = 4 * 1024 * 1024
"""A frame with this number of bytes of arguments and results takes no further message."""


class Outbox:
    """The held messages by peer; `take` empties the outbox."""

    __slots__ = ("_acks", "_bytes", "_count", "_full", "_in_frame", "_messages")

    def __init__(self) -> None:
        self.clear()

    @property
    def full(self) -> bool:
        """Whether the held messages should be sent now, without waiting for more."""
        return self._count + len(self._acks) >= MESSAGES_HELD_MAX or self._bytes >= BYTES_HELD_MAX

    def send(self, peer: int, message: WorkerMessage) -> None:
        """Queues a message for `peer`."""
        messages = self._messages.get(peer)
        if messages is None:
            messages = self._messages[peer] = []
        messages.append(message)
        self._count += 1
        size = weight(message)
        if size:
            self._bytes += size
            in_frame = self._in_frame.get(peer, 0) + size
            if in_frame >= FRAME_BYTES:
                self._full.append((peer, messages))
                del self._messages[peer]
                in_frame = 0
            self._in_frame[peer] = in_frame

    def acknowledge(self, peer: int, ack: Ack) -> None:
        """Queues an ack, adding it to one already queued for the same transaction."""
        before = self._acks.get((peer, ack.tid))
        if before is None:
            self._acks[peer, ack.tid] = ack
            return
        before.share, before.scale = add((before.share, before.scale), (ack.share, ack.scale))
        before.count += ack.count
        before.collided |= ack.collided
        before.overflow |= ack.overflow
        before.external |= ack.external
        before.cut |= ack.cut
        if ack.failure is not None and (before.failure is None or ack.failure.place < before.failure.place):
            before.failure = ack.failure
        assert not ack.calls, "a transaction in sequential mode has one chain at a time"
        assert not before.calls, "a transaction in sequential mode has one chain at a time"

    def take(self, generation: int, epoch: int, sender: int) -> list[tuple[int, Frame]]:
        """Empties the outbox. Returns (peer, frame) pairs, in the order in which each peer must get its frames."""
        if not self._count and not self._acks:
            return []
        for (peer, _), ack in self._acks.items():
            self.send(peer, ack)
        frames = [
            (peer, Frame(generation, epoch, sender, messages))
            for peer, messages in (*self._full, *self._messages.items())
        ]
        self.clear()
        return frames

    def clear(self) -> None:
        """Drops all messages."""
        self._messages: dict[int, list[WorkerMessage]] = {}
        self._acks: dict[tuple[int, int], Ack] = {}
        self._count = 0
        self._bytes = 0
        self._in_frame: dict[int, int] = {}
        self._full: list[tuple[int, list[WorkerMessage]]] = []


def weight(message: WorkerMessage) -> int:
    """The bytes of arguments and results in a message."""
    if isinstance(message, Call):
        return len(message.params)
    if isinstance(message, Result):
        size = 0 if message.value is None else len(message.value)
        for _, spec in message.calls:
            size += len(spec.params)
        return size
    if isinstance(message, Ack):
        size = 0
        for _, spec in message.calls:
            size += len(spec.params)
        return size
    if isinstance(message, Patch):
        return len(message.result or b"") + (0 if message.call is None else len(message.call.params))
    return len(message.outcome) if isinstance(message, ExternalDone) else 0


def outgoing_call(footprint: Footprint, path: bytes, made: MadeCall, share: int, count: int, chain: bytes) -> Call:
    """Makes the message of a call. `footprint` is that of the calling transaction on the caller's slot."""
    return Call(
        footprint.tid,
        footprint.root_slot,
        footprint.slot,
        made.slot,
        made.function.operator,
        made.function.called_as,
        made.key,
        made.params,
        path,
        chain,
        share,
        count,
        footprint.timestamp_us,
        footprint.sequential,
        footprint.externals,
        footprint.collided,
        footprint.read_only,
    )


def reported(calls: list[tuple[bytes, MadeCall]]) -> list[tuple[bytes, CallSpec]]:
    """Converts calls with their paths to the form in which a result or an ack carries them to another worker."""
    return [(path, named(made)) for path, made in calls]


def named(made: MadeCall) -> CallSpec:
    """Makes the form of a call in which messages carry it."""
    return CallSpec(made.synchronous, made.slot, made.function.operator, made.function.called_as, made.key, made.params)


def made_call(app: App, spec: CallSpec) -> MadeCall:
    """Makes a call from the form in which a message carried it here."""
    function = app.resolve_call(spec.operator, spec.function)
    key = tuple(spec.key) if isinstance(spec.key, list) else spec.key  # msgpack has arrays only
    return MadeCall(spec.synchronous, spec.slot, function, key, spec.params)
