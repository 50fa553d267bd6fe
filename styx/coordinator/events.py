"""The coordinator's events (inputs) and effects (outputs). They are never encoded and never leave the process."""

from __future__ import annotations

from dataclasses import dataclass, field

from styx.protocol.manifest import Manifest
from styx.protocol.messages import ToCoordinator, ToWorker
from styx.schema.state_findings import StateFindings

# Events --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Started:
    """The last generation that has a marker (0: none), and the usable manifests in the store, newest first.

    `app_version` is the last generation's, and `app_since` the epoch of the snapshot on which that version began.
    `unusable` are the names of the other manifests: damaged, or void.

    Whoever reads them has fenced every older coordinator's appends, so that no marker can still be on its way.
    """

    generation: int
    manifests: list[Manifest]
    app_version: int = 0
    app_since: int = -1
    unusable: list[str] = field(default_factory=list)


@dataclass(slots=True)
class WorkerJoined:
    """A worker has connected; if it was known, it has lost its state and is new. Peers reach it at `address`."""

    worker: int
    address: str = ""


@dataclass(slots=True)
class WorkerLost:
    """A worker's connection is gone."""

    worker: int


@dataclass(slots=True)
class WorkerLeaving:
    """A worker is to have no slots any more; `ReleaseWorker` says when it has none."""

    worker: int


@dataclass(slots=True)
class Heard:
    """A worker's protocol made progress."""

    worker: int


@dataclass(slots=True)
class WorkerSaid:
    """A worker's message, in the order it was sent."""

    worker: int
    message: ToCoordinator


@dataclass(slots=True)
class Tick:
    """Time has passed; `now_s` is monotonic."""

    now_s: float


@dataclass(slots=True)
class MembersFenced:
    """The answer to `FenceMembers`: the log refuses what members of older generations append from here on.

    `producers`: the identities (id, epoch) that the generation's members append with, one a place. A worker that took
    one over by itself could do so when its generation has ended, and then its appends would be as good as a member's.
    """

    generation: int
    producers: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class MarkerAppended:
    """The generation's marker is durable in the epochs stream: what an older generation appends behind it is void."""

    generation: int


@dataclass(slots=True)
class ManifestStored:
    """The answer to `StoreManifest`."""

    generation: int
    epoch: int
    stored: bool


@dataclass(slots=True)
class NoteAppended:
    """The answer to `AppendNote`: it is durable, so that no other coordinator had begun before."""

    generation: int
    epoch: int


@dataclass(slots=True)
class DeployWanted:
    """This version of the app, which every worker has, shall run if all state fits it; or (`only_check`) whether it
    does is to be found out, and nothing else. `StateFound` tells.

    `at_once`: nobody is served, so that the snapshot on which it begins may be a long one; and the state was checked.
    """

    version: int
    only_check: bool = False
    at_once: bool = False


@dataclass(slots=True)
class WorkersWanted:
    """So many workers shall share the slots from now on."""

    workers: int


@dataclass(slots=True)
class SnapshotWanted:
    """An operator asks for a snapshot now."""


@dataclass(slots=True)
class StopWanted:
    """An orderly stop: a last snapshot, and no epoch behind it. `StopEnded` tells when the process may end."""


Event = (
    Started
    | WorkerJoined
    | WorkerLost
    | WorkerLeaving
    | Heard
    | WorkerSaid
    | Tick
    | MembersFenced
    | MarkerAppended
    | ManifestStored
    | NoteAppended
    | DeployWanted
    | WorkersWanted
    | SnapshotWanted
    | StopWanted
)

# Effects -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class TellWorker:
    """Send to a worker, in order."""

    worker: int
    message: ToWorker


@dataclass(slots=True)
class FenceMembers:
    """Have the log refuse whatever members of older generations append, and answer `MembersFenced`."""

    generation: int


@dataclass(slots=True)
class AppendMarker:
    """Append the generation's marker to the epochs stream and answer `MarkerAppended`."""

    generation: int
    snapshot_epoch: int
    app_version: int = 0


@dataclass(slots=True)
class Expel:
    """Cut the worker's connection: for the coordinator it is dead, and if it lives it must join anew."""

    worker: int
    reason: str


@dataclass(slots=True)
class ReleaseWorker:
    """A worker that leaves has no slots any more, and never will; it may end."""

    worker: int


@dataclass(slots=True)
class StoreManifest:
    """Write the manifest with one atomic put and answer `ManifestStored`."""

    manifest: Manifest


@dataclass(slots=True)
class AppendNote:
    """Append to the epochs stream that this epoch's snapshot is complete, and answer `NoteAppended`.

    The log refuses it, and everything after it, once another coordinator has begun.
    """

    generation: int
    epoch: int


@dataclass(slots=True)
class DeleteManifest:
    """No recovery will want it any more."""

    generation: int
    epoch: int


@dataclass(slots=True)
class DeleteObjects:
    """No retained manifest refers to these any more."""

    names: list[str]


@dataclass(slots=True)
class SweepObjects:
    """Delete every slot object of generations `before` this one that is not among `keep`: uploads of snapshots that
    never became complete.
    """

    keep: frozenset[str]
    before: int


@dataclass(slots=True)
class ReleaseLog:
    """No recovery will read records below these: by partition (requests, replies), and of the epochs stream.

    `epoch` is that of the oldest snapshot that a recovery may begin with.
    """

    epoch: int
    requests: dict[int, int]
    replies: dict[int, int]
    epochs: int


@dataclass(slots=True)
class StateFound:
    """The findings of the check of all state against a version; with offenders the version will not run.

    Once, or twice if it is an entity that was changed meanwhile which does not fit.
    """

    version: int
    findings: StateFindings


@dataclass(slots=True)
class StopEnded:
    """An orderly stop is over, once: nothing will run any more, and the process may end.

    `stored`: all that has run is in the last snapshot. Otherwise no snapshot could be taken, or not in time.
    """

    stored: bool


@dataclass(slots=True)
class Refuse:
    """The data cannot be served without losing something acknowledged: stop, and tell the operator."""

    reason: str


Effect = (
    TellWorker
    | FenceMembers
    | AppendMarker
    | Expel
    | ReleaseWorker
    | StoreManifest
    | AppendNote
    | DeleteManifest
    | DeleteObjects
    | SweepObjects
    | ReleaseLog
    | StateFound
    | StopEnded
    | Refuse
)
