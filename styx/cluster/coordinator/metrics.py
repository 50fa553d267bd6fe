"""A coordinator's metrics, computed when they are read. Described in docs/metrics.md."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client.core import Metric

from styx.cluster.coordinator.counters import whole_bytes
from styx.coordinator.coordinator import Phase
from styx.metrics import families
from styx.metrics.exposition import Exposition, counter, counters, gauge, gauges, histogram

if TYPE_CHECKING:
    from styx.cluster.coordinator.process import CoordinatorProcess
    from styx.cluster.coordinator.session import CoordinatorSession

_AWAY: Final = "away"
_UNKNOWN: Final = float("nan")


def exposition(process: CoordinatorProcess) -> Exposition:
    """All metrics of a coordinator process. Counters live as long as the process."""

    def collect() -> Iterator[Metric]:
        session = process.session
        yield from _counted(process)
        yield from _deployment(session)
        yield from _workers(session)
        yield from _snapshots(session)

    return Exposition(collect, with_process=True)


def _counted(process: CoordinatorProcess) -> Iterator[Metric]:
    counts = process.counters
    yield counters("styx_recoveries_total", "Recoveries, by cause.", "cause", counts.recoveries)
    yield gauge("styx_recovery_seconds", "How long the last recovery took, from its cause on.", counts.recovery_s)
    yield counter(*families.EPOCHS, counts.epochs)
    yield counter("styx_replayed_epochs_total", "Recorded epochs that recoveries had to run again.", counts.replayed)
    yield counter("styx_expelled_workers_total", "Workers given up for silence or lost connections.", counts.expelled)
    yield counter(*families.SNAPSHOTS, counts.snapshots_completed)
    yield counter(*families.SNAPSHOTS_FAILED, counts.snapshots_failed)
    yield histogram(
        "styx_snapshot_seconds", "From the end of a snapshot's epoch to its completion.", counts.snapshot_seconds
    )
    yield counter(*families.SNAPSHOT_BYTES, counts.snapshot_bytes)
    yield counter(*families.REFUSED, process.refused)
    outcomes = {"done": counts.deployed, "refused": counts.refused}
    yield counters("styx_deployments_total", "Deployments, by outcome.", "outcome", outcomes)


def _deployment(session: CoordinatorSession | None) -> Iterator[Metric]:
    core = None if session is None else session.core
    now = _AWAY if core is None else core.phase.name.lower()
    phases = [_AWAY, *(phase.name.lower() for phase in Phase)]
    yield gauges("styx_phase", "1 for where the deployment is.", "phase", {phase: phase == now for phase in phases})
    yield gauge("styx_generation", "Generation.", -1 if core is None else core.generation)
    yield gauge("styx_epoch", "The last epoch that has ended.", -1 if core is None else core.epoch)
    yield gauge("styx_app_version", "Version of the app that runs.", 0 if core is None else core.app_version)
    deploying = session is not None and session.plane.rollout.under_way is not None
    yield gauge("styx_deploying", "1 while a deployment is under way.", deploying)
    fenced = _UNKNOWN if session is None else not session.journal.log_away
    yield gauge(
        "styx_kafka_reachable", "0 while a generation waits for Kafka; NaN: the coordinator itself does.", fenced
    )


def _workers(session: CoordinatorSession | None) -> Iterator[Metric]:
    registered = 0 if session is None else len(session.plane.roster.workers)
    members = frozenset() if session is None else session.core.membership.members
    live = frozenset() if session is None else session.core.live
    leaving = () if session is None else [each.number for each in session.plane.roster.workers.values() if each.leaving]
    states = {
        "registered": registered,
        "live": len(live),
        "member": len(members),
        "standby": len(live - members - {*leaving}),
        "leaving": len(leaving),
    }
    yield gauges("styx_workers", "Workers, by state.", "state", states)
    wanted = 0 if session is None else session.core.workers_wanted
    yield gauge("styx_workers_wanted", "Workers that are to share the slots.", wanted)
    yield gauge("styx_gateways", "Gateways connected.", 0 if session is None else len(session.links.gateways))


def _snapshots(session: CoordinatorSession | None) -> Iterator[Metric]:
    age_s, failing_s, store, size = _UNKNOWN, 0.0, _UNKNOWN, 0
    if session is not None:
        watch, now_s = session.snapshots, time.monotonic()
        manifests = session.core.ledger.manifests
        age_s = _UNKNOWN if watch.stored_at_s is None else now_s - watch.stored_at_s
        failing_s = 0.0 if watch.failing_since_s is None else now_s - watch.failing_since_s
        store = float(watch.store_problem is None)
        size = whole_bytes(manifests[0]) if manifests else 0
    yield gauge(*families.SNAPSHOT_AGE, age_s)
    yield gauge("styx_snapshots_failing_seconds", "Since when snapshots fail; 0 if the last one did not.", failing_s)
    yield gauge("styx_snapshot_bytes", "Size of the newest snapshot, all its objects.", size)
    yield gauge("styx_store_reachable", "0 while the store refuses; NaN: the coordinator is away.", store)
