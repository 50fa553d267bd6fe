"""Messages of reads outside the log: a part of a read for the worker of another slot, and its end.

A read runs on the worker that it was asked of, as one serial execution at the end of one epoch. A call of an entity on
another worker is a *part*: that worker runs the function, with all that it calls synchronously, at the end of the same
epoch. Asynchronous calls go back to who asked, who runs them behind the chain. Nothing is sequenced or logged; a part
whose answer is lost is asked again.
"""

from __future__ import annotations

from typing import Final

import msgspec

from styx.model.partitioning import Key
from styx.protocol.frames import CallSpec

READ_NUMBERS: Final = 1 << 62
"""The least number of a read, and how many there are. It stands in place of a TID, and is no transaction's: TIDs do not
get so far.
"""

READ_PHASE: Final = 4
"""In the place of a phase in the reply to a read: the end of an epoch is behind all its phases."""


class ReadPart(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Run `function` (as calls between workers name it) on `key`, at the end of `epoch`.

    `number` is the read's, in place of a TID, and `timestamp_us` what `ctx.now()` gives. `path` is the call path, empty
    for the whole read. `called` is how many functions the read has called so far, this one included. `synchronous`: the
    result is wanted.
    """

    number: int
    timestamp_us: int
    epoch: int
    slot: int
    operator: str
    function: str
    key: Key
    params: bytes
    path: bytes = b""
    called: int = 1
    synchronous: bool = True


class PartReturned(msgspec.Struct, array_like=True, tag=1, frozen=True, gc=False):
    """The part has ended well. `value` is the encoded result of a synchronous one, `called` the count by now, `calls`
    are the asynchronous calls of the chain, by path. The end of a whole read has none: they have run.
    """

    value: bytes | None
    called: int
    calls: list[tuple[bytes, CallSpec]] = []


class PartFailed(msgspec.Struct, array_like=True, tag=2, frozen=True, gc=False):
    """The read ends here: `code`, `kind` (the error's type) and `message` are the reply's. Nothing that comes later in
    the serial order counts.
    """

    code: str
    kind: str
    message: str


PartEnded = PartReturned | PartFailed


# Between workers, over the connections that have the protocol's frames ------------------------------------------


class PartAsked(msgspec.Struct, array_like=True, tag=2, frozen=True, gc=False):
    """Worker to worker: run `part` in this generation. `id` is the asker's, and never used again."""

    generation: int
    id: int
    part: ReadPart


class PartAnswered(msgspec.Struct, array_like=True, tag=3, frozen=True, gc=False):
    """Worker to worker: how the part has ended."""

    generation: int
    id: int
    end: PartEnded


class PartDropped(msgspec.Struct, array_like=True, tag=4, frozen=True, gc=False):
    """Worker to worker: nobody waits for the part any more."""

    generation: int
    id: int


BetweenWorkers = PartAsked | PartAnswered | PartDropped


# Between gateway and worker -------------------------------------------------------------------------------------


class ReadAsked(msgspec.Struct, array_like=True, tag=1, frozen=True, gc=False):
    """Gateway to worker: run the encoded `request`, which is for a read-only function. `id` is the connection's.

    `generation` is the newest one that the gateway knows of: a worker that has not come to it has perhaps lost its
    slots. `at_least`: the read waits for this epoch. `at`: it reads at the end of this one. `fenced`: it sees all that
    was answered before. `staleness_s`: it sees all that was answered longer ago than that.
    """

    id: int
    generation: int
    request: bytes
    at_least: int = -1
    at: int | None = None
    fenced: bool = False
    staleness_s: float | None = None


class ReadDropped(msgspec.Struct, array_like=True, tag=2, frozen=True, gc=False):
    """Gateway to worker: nobody waits for the read any more."""

    id: int


class ReadAnswered(msgspec.Struct, array_like=True, tag=1, frozen=True, gc=False):
    """Worker to gateway: how the read has ended, at the end of which epoch; -1 if it has read nothing."""

    id: int
    epoch: int
    end: PartEnded
