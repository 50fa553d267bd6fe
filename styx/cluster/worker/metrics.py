"""A worker's counters, and its metrics, which are computed from the counters when they are read.

The counters are plain integers, so the hot path pays for an addition at most. They count since the process started,
over all registrations, and the protocol never reads them. docs/metrics.md describes the metrics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from styx.cluster.worker.epoch_watch import Span
from styx.host.alarm import wall_clock_us
from styx.metrics import families
from styx.metrics.exposition import Exposition, counter, counters, gauge, gauges, histogram, histograms
from styx.metrics.histogram import STORE_SECONDS, Histogram
from styx.model.freshness import AT, LEVELS
from styx.protocol.manifest import SlotPart
from styx.state.slot_state import dead_held

if TYPE_CHECKING:
    from styx.cluster.worker.process import WorkerProcess
    from styx.worker.worker import Worker


@dataclass(slots=True)
class WorkerCounters:
    """Counts replies by outcome, frames to and from peers with the messages in them, and parts of snapshots.

    `replay_differences` counts replies of a replay that differ from the log's. `operators_lost` counts operators with
    loaded entities that requests would look for on another slot. `recovery_s` is the duration of the last load in
    seconds. `fenced` counts how often the log refused this worker as outdated. `events` and `event_bytes` count what
    was appended to the logs of events, by name, and `event_differences` those that a replay emitted otherwise. `reads`
    counts those outside the log that gateways have asked for, by freshness, and `reads_too_old` those whose epoch was
    not kept any more; `followers_dropped` followers of changes for which these were not kept.
    """

    committed: int = 0
    aborted: int = 0
    rejected: int = 0
    poison: int = 0
    replay_differences: int = 0
    operators_lost: int = 0
    frames_sent: int = 0
    frames_received: int = 0
    messages_sent: int = 0
    messages_received: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    snapshot_parts: int = 0
    snapshot_failures: int = 0
    snapshot_bytes: int = 0
    snapshot_seconds: Histogram = field(default_factory=lambda: Histogram(STORE_SECONDS))
    recoveries: int = 0
    recovery_s: float = 0.0
    fenced: int = 0
    events: dict[str, int] = field(default_factory=dict)
    event_bytes: dict[str, int] = field(default_factory=dict)
    event_differences: int = 0
    reads: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*LEVELS, AT), 0))
    reads_too_old: int = 0
    followers_dropped: int = 0

    def stored(self, parts: list[SlotPart] | None, seconds: float) -> None:
        """Counts the worker's parts of a snapshot, which were stored in `seconds`, or (None) abandoned."""
        if parts is None:
            self.snapshot_failures += 1
            return
        self.snapshot_parts += 1
        self.snapshot_seconds.observe(seconds)
        self.snapshot_bytes += sum(part.stored.size for part in parts if part.stored is not None)


def exposition(process: WorkerProcess) -> Exposition:
    """All metrics of a worker process. Counters live as long as the process, over all its registrations."""

    def collect() -> Iterator[Metric]:
        yield from _transactions(process)
        yield from _epochs(process)
        yield from _peers(process)
        yield from _reads(process)
        yield from _storage(process)
        yield from _place(process)

    return Exposition(collect, with_process=True)


def _transactions(process: WorkerProcess) -> Iterator[Metric]:
    counts, watch = process.node.counters, process.node.watch
    outcomes = {"committed": counts.committed, "aborted": counts.aborted, "rejected": counts.rejected}
    yield counters(*families.TRANSACTIONS, "outcome", outcomes)
    yield counter(*families.CALLS, watch.calls)
    yield counter(*families.LOCKED, watch.locked)
    yield counter(*families.CARRIED, watch.left)
    yield counters(*families.CARRIED_AGAIN, "function", process.node.reports.carried.again)
    yield counters(*families.LEFT, "function", process.node.reports.left.by_function)
    yield counters(*families.DEAD_CALLS, "function", process.node.reports.dead_calls.by_function)
    yield counters(*families.ROWS_READ, "table", watch.range_counts.rows_read)
    yield counters(*families.RANGE_CONFLICTS, "table", watch.range_counts.conflicts)
    yield counters(*families.EVENTS, "event", counts.events)
    yield counters(*families.EVENT_BYTES, "event", counts.event_bytes)
    yield counter(*families.EVENT_DIFFERENCES, counts.event_differences)
    yield counter(*families.POISON, counts.poison)
    yield counter(
        "styx_replay_differences_total", "Replies that a replay gave otherwise than before.", counts.replay_differences
    )
    lost = counts.operators_lost
    yield counter("styx_lost_operators_total", "Operators of which entities were loaded that cannot be found.", lost)
    strangers = process.node.strangers
    yield counter("styx_stranger_records_total", "Other records of the log passed over as not the engine's.", strangers)
    yield histogram(
        "styx_transaction_seconds", "From a request's entry into the log to its reply's durability.", watch.latency
    )
    breakdown = watch.breakdown
    yield counters(
        "styx_sampled_seconds_total", "What the time of sampled epochs went into.", "part", breakdown.seconds
    )
    yield counter("styx_sampled_transactions_total", "Transactions of sampled epochs.", breakdown.transactions)


def _epochs(process: WorkerProcess) -> Iterator[Metric]:
    watch = process.node.watch
    spans = watch.spans
    yield counter(*families.EPOCHS, spans.whole.count)
    yield histogram("styx_epoch_transactions", "Transactions of this worker in an epoch.", watch.sizes)
    yield histogram("styx_epoch_seconds", "How long an epoch took.", spans.whole)
    by_step = {span.name.lower(): spans.by_span[span] for span in Span}
    yield histograms("styx_epoch_step_seconds", "How long an epoch's steps took; they add up to it.", "step", by_step)
    yield histogram("styx_lock_phase_rounds", "Rounds of a lock phase.", watch.rounds)


def _peers(process: WorkerProcess) -> Iterator[Metric]:
    counts = process.node.counters
    yield counter(*families.REFUSED, process.node.refused())
    for what, sent, received in (
        ("messages", counts.messages_sent, counts.messages_received),
        ("frames", counts.frames_sent, counts.frames_received),
        ("bytes", counts.bytes_sent, counts.bytes_received),
    ):
        values = {"sent": sent, "received": received}
        yield counters(f"styx_peer_{what}_total", f"Other workers: {what}, by direction.", "direction", values)


def _reads(process: WorkerProcess) -> Iterator[Metric]:
    counts, core = process.node.counters, None if process.session is None else process.session.serving
    yield counters(*families.READS, "freshness", counts.reads)
    yield counter(*families.READS_TOO_OLD, counts.reads_too_old)
    versions = None if core is None else core.generation_data.versions
    yield gauge(*families.VERSION_EPOCHS, 0 if versions is None else versions.epochs)
    yield gauge(*families.VERSION_STATES, 0 if versions is None else versions.n_images)
    yield gauge(*families.VERSION_BYTES, 0 if versions is None else versions.n_bytes)
    followers = None if process.session is None else process.session.reads.following.followers
    yield gauge(*families.FOLLOWERS, 0 if followers is None else len(followers))
    yield gauge(*families.CHANGE_LOG_BYTES, 0 if followers is None else followers.backlog_bytes)
    yield counter(*families.FOLLOWERS_DROPPED, counts.followers_dropped)


def _storage(process: WorkerProcess) -> Iterator[Metric]:
    counts = process.node.counters
    parts = {"stored": counts.snapshot_parts, "failed": counts.snapshot_failures}
    yield counters("styx_snapshot_parts_total", "Own parts of snapshots, by outcome.", "outcome", parts)
    yield counter(*families.SNAPSHOT_BYTES, counts.snapshot_bytes)
    yield histogram(
        "styx_snapshot_part_seconds", "From the end of a snapshot's epoch to a part's storage.", counts.snapshot_seconds
    )
    yield counter("styx_loads_total", "Loads of slots, one for each generation.", counts.recoveries)
    yield gauge("styx_load_seconds", "How long the last load took.", counts.recovery_s)
    yield counter("styx_fenced_total", "Times that the log refused this worker as outdated.", counts.fenced)


def _place(process: WorkerProcess) -> Iterator[Metric]:
    """The worker's present position: all zero while it is not registered, or stands by."""
    session = process.session
    core = None if session is None else session.core
    yield gauge("styx_registered", "1 if it is registered with the coordinator.", session is not None)
    yield gauge("styx_generation", "Generation it takes part in.", -1 if core is None else core.generation)
    yield gauge("styx_epoch", "The open epoch, or the last one.", -1 if core is None else core.epoch)
    yield from _held(process, None if session is None else session.serving)
    generation = None if session is None else session.generation
    feed = None if generation is None else generation.feed
    yield gauge(*families.KAFKA_REACHABLE, feed is not None and not feed.away)


def _held(process: WorkerProcess, core: Worker | None) -> Iterator[Metric]:
    """What the worker has of slots, of what stands there, and of what waits; nothing without a core that takes part."""
    yield gauge("styx_slots", "Slots it owns.", 0 if core is None else len(core.slots))
    yield gauge("styx_entities", "Entities that have state here.", 0 if core is None else core.holdings()[0])
    rows = {} if core is None else core.rows_held()
    yield gauges(*families.ROWS, "table", {table: number for table, (number, _) in rows.items()})
    yield gauges(*families.INDEXES, "table", {table: made for table, (_, made) in rows.items()})
    yield gauge("styx_backlog", "Requests fetched that no epoch has taken yet.", 0 if core is None else core.backlog)
    yield gauge(*families.GIVEN_FOR_LATER, 0 if core is None else core.given_for_later)
    yield gauge(*families.OVERDUE, 0 if core is None else core.deliveries.overdue_us(wall_clock_us()) / 1e6)
    kept = {} if core is None else dead_held(slot.state for slot in core.slots.values())
    yield gauges(*families.DEAD_KEPT, "operator", kept)
    yield counters(*families.DEAD_DROPPED, "operator", process.node.reports.dead_calls.dropped_of(kept))
    yield gauge(
        *families.UNFINISHED,
        0 if core is None else core.unfinished,
    )
    generation = None if core is None or process.session is None else process.session.generation
    feed = None if generation is None else generation.feed
    lag = 0 if feed is None else sum(feed.lag().values())
    yield gauge("styx_request_lag", "Request records in the log that are not yet fetched.", lag)
    undurable = 0 if generation is None else generation.appender.queued_bytes
    yield gauge("styx_log_undurable_bytes", "Bytes that wait for the log.", undurable)
    events = None if generation is None else generation.events
    yield gauge(*families.EVENTS_WAITING, 0 if events is None else events.waiting_bytes)
