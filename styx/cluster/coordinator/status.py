"""The state of a cluster as its coordinator knows it: plain data for people and programs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from styx.cluster.coordinator.links import WorkerLink
from styx.cluster.wire import Heartbeat
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.roster import Registration

if TYPE_CHECKING:
    from styx.cluster.coordinator.process import CoordinatorProcess
    from styx.cluster.coordinator.session import CoordinatorSession


class WorkerStatus(msgspec.Struct, kw_only=True):
    """A registered worker. `member` if it shares the slots, else it stands by, or has left; `leaving`: it is to have
    none; `memory` in bytes.

    What follows `heard_s`, the age of its last sign of life in seconds, is as of that; None: there was none yet.
    """

    number: int
    name: str
    address: str
    member: bool
    slots: list[int]
    leaving: bool = False
    heard_s: float | None = None
    generation: int = -1
    epoch: int = -1
    step: str = ""
    backlog: int = 0
    unfinished: int = 0
    ended: int = 0
    poison: int = 0
    lag: int = 0
    memory: int = 0
    keys: int = 0
    operators: list[str] = []
    strangers: int = 0
    refused: int = 0
    problems: dict[int, str] = {}


class SnapshotStatus(msgspec.Struct, kw_only=True):
    """`epoch` of the newest one, None if there is none; `age_s` None if it is older than this coordinator.

    `failing_s` is for how many seconds they have been failing, None if the last one did not.
    """

    epoch: int | None
    age_s: float | None
    completed: int
    failures: int
    failing_s: float | None
    store_problem: str | None


class Status(msgspec.Struct, kw_only=True):
    """`waiting` is what the coordinator itself waits for, None if it is at work; `deploying` what is under way;
    `refused` counts the connections that it refused. `workers_auto`: as many are wanted as are there.
    """

    app: str
    waiting: str | None
    phase: str = "away"
    phase_text: str = ""
    generation: int = -1
    epoch: int = -1
    epochs_per_second: float = 0.0
    transactions_per_second: float = 0.0
    transactions: int = 0
    n_slots: int = 0
    workers_wanted: int = 0
    workers_auto: bool = False
    app_version: int = 0
    deploying: str | None = None
    snapshot: SnapshotStatus | None = None
    workers: list[WorkerStatus] = []
    gateways: list[str] = []
    refused: int = 0


def status_of(process: CoordinatorProcess) -> Status:
    """What is known now."""
    session = process.session
    if session is None:
        return Status(app=process.app_name, waiting=process.away, refused=process.refused)
    core, now_s = session.core, time.monotonic()
    epochs, transactions = session.rates.per_second()
    rollout, workers = session.plane.rollout.under_way, session.plane.roster.workers
    return Status(
        app=process.app_name,
        waiting=None,
        phase=core.phase.name.lower(),
        phase_text=core.phase.value,
        generation=core.generation,
        epoch=core.epoch,
        epochs_per_second=round(epochs, 1),
        transactions_per_second=round(transactions, 1),
        transactions=session.transactions,
        n_slots=core.n_slots,
        workers_wanted=core.workers_wanted,
        workers_auto=core.membership.wanted is None,
        app_version=core.app_version,
        deploying=None if rollout is None else rollout.stage.name.lower().replace("_", " "),
        snapshot=_snapshot(session, now_s),
        workers=[
            _worker(link, workers[link.number], core, now_s)
            for link in session.links.workers.values()
            if link.number in workers
        ],
        gateways=sorted(connection.peer.name for connection in session.links.gateways.values()),
        refused=process.refused,
    )


def _snapshot(session: CoordinatorSession, now_s: float) -> SnapshotStatus:
    watch, manifests = session.snapshots, session.core.ledger.manifests
    return SnapshotStatus(
        epoch=manifests[0].epoch if manifests else None,
        age_s=None if watch.stored_at_s is None else round(now_s - watch.stored_at_s, 1),
        completed=session.core.snapshots_completed,
        failures=watch.failures,
        failing_s=None if watch.failing_since_s is None else round(now_s - watch.failing_since_s, 1),
        store_problem=watch.store_problem,
    )


def _worker(link: WorkerLink, worker: Registration, core: Coordinator, now_s: float) -> WorkerStatus:
    peer, beat = link.connection.peer, link.heartbeat
    status = WorkerStatus(
        number=link.number,
        name=peer.name,
        address=peer.address,
        member=link.number in core.membership.members,
        slots=sorted(slot for slot, owner in core.owners.items() if owner == link.number),
        leaving=worker.leaving,
        problems={version: problem for version, problem in worker.refused.items() if version >= core.app_version},
    )
    if beat is not None:
        status.heard_s = round(now_s - link.heard_at_s, 2)
        for name in Heartbeat.__struct_fields__:
            setattr(status, name, getattr(beat, name))
    return status
