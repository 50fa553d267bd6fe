"""A snapshot's manifest, each slot's part in it, and the pieces of stored objects. Plain msgpack arrays.

Paper section 7.1.
"""

from __future__ import annotations

import msgspec


class ObjectRef(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """`size` bytes of a stored object from `start` on, and their BLAKE2b digest: what one slot has in it."""

    name: str
    size: int
    digest: bytes
    start: int = 0


class PendingTransaction(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A transaction that a snapshot finds sequenced but not ended: the input offset has moved past it.

    `parked`: it waits for an external function, and takes part in no epoch until a record resumes it.
    """

    tid: int
    offset: int
    timestamp_us: int
    payload: bytes
    sequential: bool
    parked: bool
    externals: dict[bytes, bytes] | None
    repeats: list[tuple[str, int, int]]


class PassedOver(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Requests of these offsets wait for an epoch with room; the others of their slot before `sequenced` do not."""

    sequenced: int
    offsets: list[int]


class SlotPart(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A slot's part of a snapshot: where its input goes on, what is pending, and where the logs must be read from.

    `replies` has, for each partition of the replies stream that later replies of the slot may stand in, an offset
    before all of them. `stored` holds its changes since the last snapshot, or (`whole`) everything; None if that is
    nothing. Requests before `next_offset` are sequenced, and of those behind it what `passed_over` says. `events` has,
    by name, an offset in the slot's partition of that event's log before all later events. Those of an event that is
    not in it begin at 0: the snapshot is older than the event, or than events.
    """

    slot: int
    next_offset: int
    pending: list[PendingTransaction]
    epochs_offset: int
    replies: dict[int, int]
    stored: ObjectRef | None
    whole: bool = False
    passed_over: PassedOver | None = None
    events: dict[str, int] = {}

    @property
    def sequenced(self) -> int:
        """The last request that is sequenced stands before this offset."""
        return self.next_offset if self.passed_over is None else self.passed_over.sequenced

    def has_taken(self, offset: int) -> bool:
        """The request that stands there is sequenced."""
        return offset < self.sequenced and (self.passed_over is None or offset not in self.passed_over.offsets)


class SlotManifest(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A slot in a manifest: its part, and all the objects that make its state, oldest first."""

    part: SlotPart
    objects: list[ObjectRef]


class Manifest(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A complete snapshot: the state after `epoch`; `counter` is where every slot's TID counter stood then.

    `app_version` is the version of the app that made it.
    """

    generation: int
    epoch: int
    counter: int
    slots: list[SlotManifest]
    app_version: int = 0
