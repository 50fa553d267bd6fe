"""The state of a cluster as its coordinator knows it, for people and programs: plain data.

Beside it stand its two parts that need a memory: the rates of the last few seconds, and whether snapshots succeed and
the store is within reach.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from styx.cluster.coordinator.links import WorkerLink
from styx.cluster.wire import Heartbeat
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.roster import Registration
from styx.deployment.claim import NAME
from styx.host.background import Background
from styx.store.base import Store

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
    carried: dict[str, int] = {}
    left: dict[str, int] = {}
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
    `refused` counts the connections that it refused, `patch_rounds` the rounds of lock phases in which calls between
    slots changed, `given_up` the transactions carried because that did not end. `workers_auto`: as many are wanted as
    are there.
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
    patch_rounds: int = 0
    given_up: int = 0


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
        gateways=session.links.gateway_names,
        refused=process.refused,
        patch_rounds=process.counters.patch_rounds,
        given_up=process.counters.given_up,
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


SAMPLE_SECONDS: Final = 0.5
WINDOW_SAMPLES: Final = 10
"""So many samples back the rates reach."""


class _Sample(NamedTuple):
    at_s: float
    epoch: int
    ended: int


class Rates:
    """`sample` is called often; most calls cost a comparison."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque(maxlen=WINDOW_SAMPLES + 1)

    def sample(self, now_s: float, epoch: int, ended: int) -> None:
        """The counts at this time; neither of them ever goes back."""
        if not self._samples or now_s - self._samples[-1].at_s >= SAMPLE_SECONDS:
            self._samples.append(_Sample(now_s, epoch, ended))

    def per_second(self) -> tuple[float, float]:
        """Epochs and transactions."""
        if len(self._samples) < 2:
            return 0.0, 0.0
        first, last = self._samples[0], self._samples[-1]
        seconds = last.at_s - first.at_s
        # A recovery begins from an older epoch and replays from there.
        return max(0, last.epoch - first.epoch) / seconds, (last.ended - first.ended) / seconds


PROBE_SECONDS: Final = 5.0
"""Between two looks at a store while snapshots fail."""

_log = logging.getLogger("styx.coordinator")


class SnapshotWatch:
    """Times are the event loop's, in seconds. `store_problem` says what is wrong with the store, None if nothing."""

    def __init__(self, store: Store, background: Background) -> None:
        self.stored_at_s: float | None = None
        self.failing_since_s: float | None = None
        self.failures = 0
        self.store_problem: str | None = None
        self._store = store
        self._background = background
        self._epoch_failed = -1
        self._probing: asyncio.Task[None] | None = None

    def completed(self, now_s: float) -> None:
        """A snapshot is stored."""
        if self.failing_since_s is not None:
            _log.info("snapshots succeed again")
        self.stored_at_s = now_s
        self.failing_since_s = self.store_problem = None
        self.stop()

    def failed(self, now_s: float, epoch: int) -> None:
        """The snapshot of an epoch failed; hearing of it again changes nothing."""
        if epoch == self._epoch_failed:
            return
        self._epoch_failed = epoch
        self.failures += 1
        if self.failing_since_s is None:
            self.failing_since_s = now_s
            _log.warning("the snapshot of epoch %d failed; requests are served, and the log grows meanwhile", epoch)
        if self._probing is None:
            self._probing = asyncio.get_running_loop().create_task(self._probe(), name="styx-store-probe")

    def stop(self) -> None:
        """Looks no more."""
        if self._probing is not None:
            self._probing.cancel()
            self._probing = None

    async def _probe(self) -> None:
        while True:
            try:
                await self._background.run(lambda: self._store.get(NAME))
            except OSError as error:
                self.store_problem = f"the store is out of reach: {error}"
            except Exception as error:  # noqa: BLE001 - told to a person, who can do something about it
                self.store_problem = f"{type(error).__name__}: {error}"
            else:
                self.store_problem = None
            await asyncio.sleep(PROBE_SECONDS)
