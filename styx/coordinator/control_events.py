"""Events and effects of the control plane: registrations, versions of the app, commands of operators.

Never encoded, never leaves the process. What else happens, and is wanted, is in `events`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from styx.coordinator import events
from styx.schema.description import AppDescription
from styx.schema.event_description import Published

ITSELF: Final = 0
"""Who asks, where it is the coordinator's own process; operators have numbers above 0."""
A_WORKER: Final = -1
"""Who asks, where a worker offers the app that it was started with."""


class Package(NamedTuple):
    """Code of the app: a package whose signature is right, and what its header says of it. `fingerprint` is the same
    whenever the same sources are packed.
    """

    content: bytes
    description: AppDescription
    fingerprint: str


# Events --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class VersionFound:
    """The version that the log, or before the first generation the store, says was running. Comes before `Started`; not
    if none ever ran. `published`: the types of events that it and all versions before it have published, as far as the
    store says.
    """

    version: int
    package: Package
    published: Published = field(default_factory=dict)


@dataclass(slots=True)
class WorkerArrived:
    """A worker has connected. `name` is what operators call it, `incarnation` names its process, `runtime` what it
    runs on; peers reach it at `address`.
    """

    worker: int
    name: str
    incarnation: str
    address: str
    runtime: str


@dataclass(slots=True)
class WorkerBeat:
    """A sign of life from within a worker's protocol. `loaded`: it has its slots in this generation, and `operators`
    are those that have state there.
    """

    worker: int
    generation: int
    loaded: bool
    operators: list[str] = field(default_factory=list)


@dataclass(slots=True)
class WorkerBusy:
    """A function holds up a worker, which lives."""

    worker: int


@dataclass(slots=True)
class LeaveAsked:
    """A worker is to end, and asks that others have its slots."""

    worker: int


@dataclass(slots=True)
class CodeTaken:
    """A worker can run this version, or (`problem`) cannot."""

    worker: int
    version: int
    problem: str = ""


@dataclass(slots=True)
class GatewayArrived:
    """A gateway has connected."""

    gateway: int


@dataclass(slots=True)
class RuntimeStored:
    """The answer to `StoreRuntime`; `problem` if it is not in the store."""

    problem: str = ""


@dataclass(slots=True)
class PackageOffered:
    """`by` wants this package to run from now on, or (`only_check`) to know whether it could. A text in place of the
    package says why it cannot be used.
    """

    by: int
    package: Package | str
    only_check: bool = False


@dataclass(slots=True)
class RollbackAsked:
    """`by` wants the version before the present one back, or (`only_check`) to know whether it could be."""

    by: int
    only_check: bool = False


@dataclass(slots=True)
class VersionRead:
    """The answer to `ReadVersionBefore`: that version; None if there is none; a text says why it cannot be used."""

    before: int
    package: Package | str | None


@dataclass(slots=True)
class PackageStored:
    """The answer to `StorePackage`: the number under which the store has it, or why it has not."""

    version: int
    problem: str = ""


@dataclass(slots=True)
class RunningNoted:
    """The answer to `NoteRunning`; `problem` if the store has no note."""

    version: int
    problem: str = ""


@dataclass(slots=True)
class ScaleAsked:
    """`by` wants so many workers to share the slots."""

    by: int
    workers: int


@dataclass(slots=True)
class DrainAsked:
    """`by` wants others to have the slots of the workers of this name."""

    by: int
    name: str


@dataclass(slots=True)
class SetAsideAsked:
    """`by` wants the request at `place`, SLOT:OFFSET, set aside, or (`dry_run`) to know whether it could be; without a
    place, all places that were set aside.
    """

    by: int
    place: str
    dry_run: bool


@dataclass(slots=True)
class AsidePut:
    """The answer to `effect`: it is done, or why not. `failed`: the log or the store failed."""

    effect: PutAside
    done: bool
    text: str
    failed: bool = False


@dataclass(slots=True)
class OperatorGone:
    """An operator's command has ended; nobody waits for its answer."""

    by: int


ControlEvent = (
    VersionFound
    | WorkerArrived
    | WorkerBeat
    | WorkerBusy
    | LeaveAsked
    | CodeTaken
    | GatewayArrived
    | RuntimeStored
    | PackageOffered
    | RollbackAsked
    | VersionRead
    | PackageStored
    | RunningNoted
    | ScaleAsked
    | DrainAsked
    | SetAsideAsked
    | AsidePut
    | OperatorGone
)

# Effects -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class StoreRuntime:
    """Write what the workers run on to the store, and answer `RuntimeStored`."""

    runtime: str


@dataclass(slots=True)
class Admit:
    """The worker is registered: welcome it."""

    worker: int


@dataclass(slots=True)
class TurnAway:
    """The worker may not register now: tell it why, and end the connection."""

    worker: int
    reason: str


@dataclass(slots=True)
class HandOut:
    """Send a version to a worker, which answers `CodeTaken`. Comes before anything that needs it."""

    worker: int
    version: int
    package: Package


@dataclass(slots=True)
class Serve:
    """Tell a gateway what it is to serve, and the version that runs, if one does."""

    gateway: int
    version: int
    package: Package | None


@dataclass(slots=True)
class Announce:
    """This version runs: tell all gateways, and publish how clients route requests."""

    version: int
    package: Package


@dataclass(slots=True)
class NoteRunning:
    """Write to the store that this version has run, so that a rollback finds it, and what is `published` since the
    first version; and answer `RunningNoted`.
    """

    version: int
    published: Published = field(default_factory=dict)


@dataclass(slots=True)
class StorePackage:
    """Write a package to the store under the next number, and answer `PackageStored`."""

    package: Package


@dataclass(slots=True)
class ReadVersionBefore:
    """Read the last version that ran before this one, and answer `VersionRead`."""

    version: int


@dataclass(slots=True)
class PutAside:
    """Write to the store that the request at `place` is set aside, and answer `AsidePut`. The next generation refuses
    it. `dry_run`: only look whether it could be; without a place: list all.
    """

    by: int
    place: str
    dry_run: bool


@dataclass(slots=True)
class StandBy:
    """Tell a worker that it has no slots; `spare`: and none are kept from it, since enough others take part."""

    worker: int
    spare: bool


@dataclass(slots=True)
class Disconnect:
    """End the worker's connection; it is lost when `WorkerLost` says so."""

    worker: int
    reason: str


@dataclass(slots=True)
class RolloutEnded:
    """The rollout of this version has taken effect (`done`), or never will."""

    version: int
    done: bool


@dataclass(slots=True)
class Answer:
    """Tell the operator, if it is still there. `failed`: the log or the store failed, the order was right."""

    to: int
    done: bool
    text: str
    failed: bool = False


ControlEffect = (
    StoreRuntime
    | Admit
    | TurnAway
    | HandOut
    | Serve
    | Announce
    | NoteRunning
    | StorePackage
    | ReadVersionBefore
    | PutAside
    | StandBy
    | Disconnect
    | RolloutEnded
    | Answer
)

Event = events.Event | ControlEvent
"""What happens to the control plane, and to the protocol behind it."""
Effect = events.Effect | ControlEffect
"""What the two want done."""
ToCore = events.WorkerJoined | events.WorkerLeaving | events.WorkersWanted | events.DeployWanted
"""What the control plane makes happen to the protocol."""
Said = ControlEffect | events.ReleaseWorker | ToCore
