"""Messages between workers and the coordinator. Plain msgpack arrays.

Every message carries its generation; one of another generation is void. Paper sections 5.3 (barriers), 6 (commit) and
7.1 (snapshots).
"""

from __future__ import annotations

from typing import Final

import msgspec

from styx.protocol.frames import Failure
from styx.protocol.manifest import Manifest, SlotPart
from styx.schema.state_findings import StateFindings

Reached = tuple[int, int]
"""(epoch, phase) of the last reply in the log: what is recorded up to there is decided."""
NOTHING: Final[Reached] = (-1, 0)
"""No reply is in the log."""

# Worker to coordinator -----------------------------------------------------------------------------------------


class Loaded(msgspec.Struct, array_like=True, tag=1, gc=False):
    """The worker has its slots' state and knows the epochs to replay, up to `replay_until` (-1: none).

    `converted`: some of it is not as the snapshot has it, since the app's version converts what it finds there.
    `answered`: (epoch, phase) of the last reply that it has found in the log.
    """

    generation: int
    replay_until: int
    converted: bool = False
    answered: Reached = NOTHING


class SnapshotUnusable(msgspec.Struct, array_like=True, tag=2, gc=False):
    """The snapshot cannot be used: an object is missing or damaged."""

    generation: int
    reason: str


class EpochStarted(msgspec.Struct, array_like=True, tag=3, gc=False):
    """The worker has work and has begun the epoch, without having been told to `Join` it."""

    generation: int
    epoch: int


class Done(msgspec.Struct, array_like=True, tag=4, gc=False):
    """Barrier 1: every own transaction has its full share.

    `new_max` is the largest number of new requests of one slot; the TID lists are of own transactions: logically
    aborted, with colliding branches, leaving the epoch, and too large to grow when run again.
    """

    generation: int
    epoch: int
    new_max: int
    aborted: list[int]
    collided: list[int]
    deferred: list[int]
    large: list[int]


class Conflicts(msgspec.Struct, array_like=True, tag=5, gc=False):
    """Barrier 2: the transactions in conflict on the worker's slots; and the own epoch record is durable.

    `unlocked` are those that take no part in the lock phase of a replayed epoch, as the log says.
    """

    generation: int
    epoch: int
    tids: list[int]
    unlocked: list[int] = []


class LockReport(msgspec.Struct, array_like=True, tag=6, gc=False):
    """A lock-phase round is over here: failures of transactions that other slots take part in.

    Of those in `cut` a function was ended by the watchdog, and it is recorded that they take no part. `patched` are the
    transactions that sent patches in this round, from one slot to another. `sent` counts the patches that went to other
    workers, by worker.
    """

    generation: int
    epoch: int
    round: int
    failures: list[tuple[int, Failure]]
    cut: list[int] = []
    patched: list[int] = []
    sent: dict[int, int] = {}


class SlotsStored(msgspec.Struct, array_like=True, tag=7, gc=False):
    """The parts of all the worker's slots of the snapshot are durable in the store, or (None) could not be stored."""

    generation: int
    epoch: int
    parts: list[SlotPart] | None


class Broken(msgspec.Struct, array_like=True, tag=8, gc=False):
    """The worker cannot go on in this generation: it has lost its connection to `peer`, or (-1) to the log."""

    generation: int
    peer: int
    reason: str


class StateChecked(msgspec.Struct, array_like=True, tag=9, gc=False):
    """What another version of the app makes of the worker's state: of all of it (`epoch` -1), or of what was changed
    since up to the held snapshot of `epoch`.
    """

    generation: int
    version: int
    epoch: int
    findings: StateFindings


class Emitted(msgspec.Struct, array_like=True, tag=10, gc=False):
    """Transactions up to `epoch` have emitted events on the worker's slots, and no mark behind them is in the logs.
    `partitions` are all that a mark goes to, on all workers.
    """

    generation: int
    epoch: int
    partitions: int = 0


ToCoordinator = (
    Loaded
    | SnapshotUnusable
    | EpochStarted
    | Done
    | Conflicts
    | LockReport
    | SlotsStored
    | Broken
    | StateChecked
    | Emitted
)


# Coordinator to worker -----------------------------------------------------------------------------------------


class Recover(msgspec.Struct, array_like=True, tag=1, gc=False):
    """A new generation: drop everything, load the snapshot (None: start from nothing) and report.

    `owners` maps slots to workers, `addresses` workers to where their peers reach them; `app_version` is what runs.
    `producers` are the identities to append with, by the worker's place among the members, where the log fences.
    """

    generation: int
    owners: dict[int, int]
    manifest: Manifest | None
    addresses: dict[int, str] = {}
    app_version: int = 0
    producers: list[tuple[int, int]] = []


class Resume(msgspec.Struct, array_like=True, tag=2, gc=False):
    """All workers are loaded: replay what is recorded, then go on.

    `answered` is the furthest of what they have found: what is recorded up to there is decided, on every worker.
    """

    generation: int
    answered: Reached = NOTHING


class Join(msgspec.Struct, array_like=True, tag=3, gc=False):
    """Another worker has begun this epoch: begin it with whatever there is."""

    generation: int
    epoch: int


class Validate(msgspec.Struct, array_like=True, tag=4, gc=False):
    """Barrier 1 passed: the union of what the workers reported.

    Not sent to a worker that is the only one: its own report is the union, and it has gone on.
    """

    generation: int
    epoch: int
    new_max: int
    aborted: list[int]
    collided: list[int]
    deferred: list[int]
    large: list[int]


class Commit(msgspec.Struct, array_like=True, tag=5, gc=False):
    """Barrier 2 passed: everything not in `locked` (conflicts and collisions) commits.

    An empty `locked` ends the epoch; `snapshot` then asks for one, for everything that the slots in `whole` have, and
    `hold` for no further epoch before its end.
    """

    generation: int
    epoch: int
    locked: list[int]
    snapshot: bool
    hold: bool = False
    whole: list[int] = []


class LockDecision(msgspec.Struct, array_like=True, tag=6, gc=False):
    """A lock-phase round is decided: these transactions are out, with their final exception or (None) carried.

    `final`: nothing failed and nothing was patched, everything else commits and the epoch ends; what is said of a
    snapshot is as in `Commit`.
    `anew`: the lock phase begins from its start without them; what earlier rounds decided is void. Otherwise each
    worker begins the next round once it has the patches of this one; `awaited` says how many of other workers it gets.
    """

    generation: int
    epoch: int
    round: int
    excluded: list[tuple[int, Failure | None]]
    final: bool
    snapshot: bool
    hold: bool = False
    whole: list[int] = []
    anew: bool = False
    awaited: dict[int, int] = {}


class SnapshotEnded(msgspec.Struct, array_like=True, tag=7, gc=False):
    """The snapshot of `epoch` is complete (its manifest is stored), or not part of anything."""

    generation: int
    epoch: int
    complete: bool


class CheckState(msgspec.Struct, array_like=True, tag=8, gc=False):
    """Look, beside what is served, whether this version of the app can use all state; None: no longer."""

    generation: int
    version: int | None


class Mark(msgspec.Struct, array_like=True, tag=9, gc=False):
    """Mark the logs of events, as soon as `epoch` has closed: all events up to it stand before the mark."""

    generation: int
    epoch: int


ToWorker = Recover | Resume | Join | Validate | Commit | LockDecision | SnapshotEnded | CheckState | Mark
