"""Messages between processes and the coordinator besides the protocol's: identities, running code, signs of life.

One payload is one message, msgpack arrays with a tag, over an authenticated connection. Code travels as a signed
package that is opaque here. Also the names under which processes append to the log, and fence each other.
"""

from __future__ import annotations

from typing import Final

import msgspec

from styx.model.limits import Limits
from styx.protocol.changes import ChangesGiven, FollowAsked, FollowLeft, FollowOver, FollowTaken
from styx.protocol.frames import Frame
from styx.protocol.messages import ToCoordinator, ToWorker
from styx.protocol.reads import BetweenWorkers, ReadAnswered, ReadAsked, ReadDropped

WORKER: Final = "worker"
COORDINATOR: Final = "coordinator"
GATEWAY: Final = "gateway"
INGEST_FACT: Final = "ingest"
REPLICA_FACT: Final = "replica"
"""Say of a peer that it hears what a gateway hears, and takes no requests."""
OPERATOR: Final = "operator"
"""Roles in a `Hello`. An operator is a command of a person's: deploy, scale, drain, set aside."""

BUSY_FACT: Final = "busy"
"""In the `Hello` of a worker's second connection: the number of the registration that it tells of."""

HEARTBEATS_PER_SILENCE: Final = 6
"""So often a worker gives a sign of life in the time after which its silence means death."""


class Deployment(msgspec.Struct, array_like=True, frozen=True):
    """What all processes of a deployment have in common."""

    app: str
    n_slots: int
    reply_partitions: int
    limits: Limits


class Welcome(msgspec.Struct, array_like=True, tag=101):
    """Coordinator to worker: its number, unique for each registration, and how often to give a sign of life."""

    worker: int
    deployment: Deployment
    heartbeat_s: float


class Code(msgspec.Struct, array_like=True, tag=102):
    """Coordinator to worker or gateway: a version of the app, as a signed package. Comes before what needs it.

    Below 0: one that is only to be checked, and has no number.
    """

    version: int
    package: bytes


class Heartbeat(msgspec.Struct, array_like=True, tag=103):
    """Worker to coordinator, from within its protocol's pass: it makes progress, and this is where it stands.

    `operators` are those that have state here; `lag` is the number of request records not yet fetched; `memory` is
    resident bytes; `ended` counts transactions since the registration. `poison`, `strangers` and `refused` are counted
    since the process started: undecodable request records, others' records elsewhere in the log, connections. `carried`
    counts since then, by the few functions with most of them, how often transactions were carried after the second
    time; `left`, by the full names of local functions, transactions that left the function's slot.
    """

    generation: int
    epoch: int
    step: str
    backlog: int
    unfinished: int
    ended: int
    poison: int
    lag: int
    memory: int
    keys: int
    operators: list[str]
    strangers: int = 0
    refused: int = 0
    carried: dict[str, int] = {}
    left: dict[str, int] = {}


class Offer(msgspec.Struct, array_like=True, tag=104):
    """Worker to coordinator: the app it was started with, which may become the first version."""

    package: bytes


class Deploy(msgspec.Struct, array_like=True, tag=105):
    """Operator to coordinator: run this package from now on, or (`only_check`) say whether it could be."""

    package: bytes
    only_check: bool = False


class Rollback(msgspec.Struct, array_like=True, tag=106):
    """Operator to coordinator: run the version before the present one again, or (`only_check`) say whether it could
    be.
    """

    only_check: bool = False


class Scale(msgspec.Struct, array_like=True, tag=107):
    """Operator to coordinator: so many workers shall share the slots."""

    workers: int


class Answer(msgspec.Struct, array_like=True, tag=108):
    """Coordinator to operator: whether the order is done, and why not. `version` is the version that runs now.
    `failed`: the log or the store failed, so that the same order may succeed later.
    """

    done: bool
    text: str
    version: int = 0
    failed: bool = False


class CodeTaken(msgspec.Struct, array_like=True, tag=110):
    """Worker to coordinator: it can run this version, or why it cannot."""

    version: int
    problem: str


class Leave(msgspec.Struct, array_like=True, tag=111):
    """Worker to coordinator: it is to end; others are to have its slots."""


class Released(msgspec.Struct, array_like=True, tag=112):
    """Coordinator to worker: it has no slots, and gets none under this registration."""


class Drain(msgspec.Struct, array_like=True, tag=113):
    """Operator to coordinator: others are to have the slots of the workers of this name."""

    name: str


class SetAside(msgspec.Struct, array_like=True, tag=120):
    """Operator to coordinator: refuse the request at SLOT:OFFSET, or (`dry_run`) say whether that could be. Without a
    place: say which are refused.
    """

    place: str
    dry_run: bool = False


class StandBy(msgspec.Struct, array_like=True, tag=114):
    """Coordinator to worker: it has no slots; `spare`: and none are kept from it, since enough others take part."""

    spare: bool


class TurnedAway(msgspec.Struct, array_like=True, tag=118):
    """Coordinator to worker, in place of a welcome: why it cannot register now."""

    reason: str


class Busy(msgspec.Struct, array_like=True, tag=119):
    """Worker to coordinator, over a connection of its own: a function has held up the worker for so long."""

    worker: int
    what: str
    seconds: float


class Serve(msgspec.Struct, array_like=True, tag=109):
    """Coordinator to gateway: what it is to serve."""

    deployment: Deployment


class Owners(msgspec.Struct, array_like=True, tag=121):
    """Coordinator to gateway: the workers of the generation that runs now. `owners` maps slots to workers, `addresses`
    workers to where they listen, as peers reach them.

    `version` is that of the app. What the generation began with: `loaded`, its snapshot, as the generation that stored
    it and its epoch, (-1, -1) for none; and `recorded`, the last epoch that was whole in the log or in the snapshot.
    """

    generation: int
    owners: dict[int, int]
    addresses: dict[int, str]
    version: int = 0
    loaded: tuple[int, int] = (-1, -1)
    recorded: int = -1


WorkerHears = ToWorker | Welcome | Code | Released | StandBy | TurnedAway
CoordinatorHears = (
    ToCoordinator | Heartbeat | Offer | CodeTaken | Deploy | Rollback | Scale | Leave | Drain | SetAside | Busy
)
GatewayHears = Serve | Code | Owners
OperatorHears = Answer
PeerHears = Frame | BetweenWorkers
FromGateway = ReadAsked | ReadDropped | FollowAsked | FollowLeft | FollowTaken
FromWorker = ReadAnswered | ChangesGiven | FollowOver

encode = msgspec.msgpack.Encoder().encode
worker_hears: msgspec.msgpack.Decoder[WorkerHears] = msgspec.msgpack.Decoder(WorkerHears)
coordinator_hears: msgspec.msgpack.Decoder[CoordinatorHears] = msgspec.msgpack.Decoder(CoordinatorHears)
gateway_hears: msgspec.msgpack.Decoder[GatewayHears] = msgspec.msgpack.Decoder(GatewayHears)
peer_hears: msgspec.msgpack.Decoder[PeerHears] = msgspec.msgpack.Decoder(PeerHears)
"""A worker of another one, over their connection."""
reads_hears: msgspec.msgpack.Decoder[FromGateway] = msgspec.msgpack.Decoder(FromGateway)
"""A worker of a gateway, over a connection that takes nothing but reads, and followers of changes."""
answers_hears: msgspec.msgpack.Decoder[FromWorker] = msgspec.msgpack.Decoder(FromWorker)
"""A gateway of a worker, over the same connection."""
operator_hears: msgspec.msgpack.Decoder[OperatorHears] = msgspec.msgpack.Decoder(OperatorHears)


def coordinator_producer(app: str) -> str:
    """The transactional id of whoever coordinates: starting one ends every older coordinator's appends."""
    return f"styx.{app}.coordinator"


def events_producer(app: str, place: int) -> str:
    """The transactional id with which the same member appends events."""
    return f"styx.{app}.events.{place}"


def worker_producer(app: str, place: int) -> str:
    """The transactional id of the member at this place among a generation's members, in ascending order."""
    return f"styx.{app}.worker.{place}"
