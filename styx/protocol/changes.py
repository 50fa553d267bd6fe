"""Messages of the change feed between a gateway and the workers, over the connection that has the reads."""

from __future__ import annotations

import msgspec

from styx.model.changes import EpochChanges


class FollowAsked(msgspec.Struct, array_like=True, tag=3, frozen=True, gc=False):
    """Gateway to worker: give the changes of each epoch behind the end of `after`. `id` is the connection's, among
    those of reads. `operator` and `table` are as in `followed`. Only a worker in this `generation` does: the parts of
    all its workers make an epoch whole.
    """

    id: int
    generation: int
    operator: str
    table: str | None
    after: int


class FollowLeft(msgspec.Struct, array_like=True, tag=4, frozen=True, gc=False):
    """Gateway to worker: nobody follows any more."""

    id: int


class FollowTaken(msgspec.Struct, array_like=True, tag=5, frozen=True, gc=False):
    """Gateway to worker: so many further messages with changes were taken; some more may come."""

    id: int
    messages: int


class ChangesGiven(msgspec.Struct, array_like=True, tag=2, frozen=True):
    """Worker to gateway: its part of all changes up to the end of `through`. The first one has none, and says where it
    begins. `closed_us`: when that epoch closed, in microseconds since 1970 by the worker's clock; 0 if it is not known.
    """

    id: int
    through: int
    epochs: list[EpochChanges]
    closed_us: int = 0


class FollowOver(msgspec.Struct, array_like=True, tag=3, frozen=True, gc=False):
    """Worker to gateway: nothing more comes; `code` and `message` are as those of a reply."""

    id: int
    code: str
    message: str
