"""The embedded engine's counters, and its metrics in Prometheus' text format, which are computed from the counters when
they are read.

EngineCounters are plain integers, so the hot path pays for an addition at most. They count since the process started.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from styx.log.base import Stream
from styx.metrics import families
from styx.sequencer.epoch_record import EPOCHS_PARTITION
from styx.state.slot_state import dead_held
from styx.worker.events import ReportPoison

if TYPE_CHECKING:
    from styx.embedded_engine.engine import EmbeddedEngine


POISON_KEPT: Final = 100
"""Reports of records that cannot be decoded; the oldest are forgotten first, all of them are counted."""


@dataclass(slots=True)
class EngineCounters:
    """Transactions by outcome as their replies are given; `locked` are those that went through the lock phase."""

    committed: int = 0
    aborted: int = 0
    rejected: int = 0
    locked: int = 0
    carried: int = 0
    epochs: int = 0
    epoch_size: int = 0
    snapshots_failed: int = 0
    poison: int = 0
    recent_poison: deque[ReportPoison] = field(default_factory=lambda: deque(maxlen=POISON_KEPT))
    load_failures: list[str] = field(default_factory=list)
    """Why snapshots could not be used at this start."""
    recovery_s: float = 0.0
    recovered_from: int | None = None
    """The epoch of the snapshot that this start began on."""
    replayed: int | None = None
    """Recorded epochs that it ran again; None until it has."""
    snapshot_at_s: float | None = None
    """When the last snapshot became complete, in seconds since 1970; None if none has since the start."""


NOTHING_YET = "# HELP styx_ready 1 if requests are served.\n# TYPE styx_ready gauge\nstyx_ready 0\n"
"""The metrics of an engine that has not been started."""


def render(engine: EmbeddedEngine) -> str:
    """All of them, ending with a newline."""
    lines: list[str] = []
    for name, kind, text, samples in (*_transactions(engine), *_reads(engine), *_durability(engine)):
        lines += (f"# HELP {name} {text}", f"# TYPE {name} {kind}")
        lines += (f"{name}{label} {value:.16g}" for label, value in samples)
    return "\n".join(lines) + "\n"


_Metric = tuple[str, str, str, list[tuple[str, float]]]


def _counter(name: str, text: str, value: float) -> _Metric:
    return (name, "counter", text, [("", value)])


def _gauge(name: str, text: str, value: float) -> _Metric:
    return (name, "gauge", text, [("", value)])


def _transactions(engine: EmbeddedEngine) -> Iterator[_Metric]:
    counters, worker = engine.counters, engine.worker
    outcomes = ("committed", counters.committed), ("aborted", counters.aborted), ("rejected", counters.rejected)
    yield (
        families.TRANSACTIONS.name,
        "counter",
        families.TRANSACTIONS.text,
        [(f'{{outcome="{outcome}"}}', number) for outcome, number in outcomes],
    )
    yield _counter(*families.CALLS, worker.executor.calls)
    yield _counter(*families.LOCKED, counters.locked)
    yield _counter(*families.CARRIED, counters.carried)
    yield _counter(*families.PATCH_ROUNDS, engine.coordinator.rounds.rounds)
    yield _counter(*families.GIVEN_UP, engine.coordinator.rounds.given_up)
    again = [(f'{{function="{function}"}}', float(n)) for function, n in engine.reports.carried.again.items()]
    yield (families.CARRIED_AGAIN.name, "counter", families.CARRIED_AGAIN.text, again)
    left = engine.reports.left.by_function
    yield (families.LEFT.name, "counter", families.LEFT.text, [(f'{{function="{n}"}}', c) for n, c in left.items()])
    dead = engine.reports.dead_calls.by_function
    yield (
        families.DEAD_CALLS.name,
        "counter",
        families.DEAD_CALLS.text,
        [(f'{{function="{n}"}}', c) for n, c in dead.items()],
    )
    kept = dead_held(slot.state for slot in worker.slots.values())
    for family, kind, by_operator in (
        (families.DEAD_DROPPED, "counter", engine.reports.dead_calls.dropped_of(kept)),
        (families.DEAD_KEPT, "gauge", kept),
    ):
        yield (family.name, kind, family.text, [(f'{{operator="{n}"}}', float(c)) for n, c in by_operator.items()])
    yield _gauge(*families.GIVEN_FOR_LATER, worker.given_for_later)
    yield _gauge(*families.OVERDUE, worker.deliveries.overdue_us(engine.now_us()) / 1e6)
    yield _counter(*families.EPOCHS, counters.epochs)
    yield _counter(*families.POISON, counters.poison)
    yield _gauge("styx_epoch_size", "Transactions in the last epoch.", counters.epoch_size)
    yield _gauge(*families.IN_FLIGHT, engine.in_flight)
    yield _gauge("styx_requests_held", "Requests of embedded clients that wait for a place.", engine.held)
    yield _gauge("styx_backlog", "Requests in the log that no epoch has taken yet.", worker.backlog)
    yield _gauge(*families.UNFINISHED, worker.unfinished)
    counted = worker.executor.range_counts
    for family, by_table in ((families.ROWS_READ, counted.rows_read), (families.RANGE_CONFLICTS, counted.conflicts)):
        yield (family.name, "counter", family.text, [(f'{{table="{n}"}}', float(c)) for n, c in by_table.items()])
    held = worker.rows_held()
    for family, at in ((families.ROWS, 0), (families.INDEXES, 1)):
        yield (family.name, "gauge", family.text, [(f'{{table="{name}"}}', float(n[at])) for name, n in held.items()])


def _reads(engine: EmbeddedEngine) -> Iterator[_Metric]:
    reads, versions = engine.reads, engine.worker.generation_data.versions
    asked = [(f'{{freshness="{level}"}}', float(number)) for level, number in reads.asked.items()]
    yield (families.READS.name, "counter", families.READS.text, asked)
    yield _counter(*families.READS_TOO_OLD, reads.too_old)
    yield _counter(*families.READS_STALE, reads.stale)
    yield _gauge(*families.VERSION_EPOCHS, versions.epochs)
    yield _gauge(*families.VERSION_STATES, versions.n_images)
    yield _gauge(*families.VERSION_BYTES, versions.n_bytes)
    followers = engine.changes.followers
    yield _gauge(*families.FOLLOWERS, len(followers))
    yield _gauge(*families.CHANGE_LOG_BYTES, followers.backlog_bytes)
    yield _counter(*families.FOLLOWERS_DROPPED, followers.dropped)


def _durability(engine: EmbeddedEngine) -> Iterator[_Metric]:
    counters, coordinator, log = engine.counters, engine.coordinator, engine.log
    yield _gauge("styx_ready", "1 if requests are served.", engine.ready)
    yield _gauge("styx_generation", "Generation; each start is one.", coordinator.generation)
    yield _counter(*families.SNAPSHOTS, coordinator.snapshots_completed)
    yield _counter(*families.SNAPSHOTS_FAILED, counters.snapshots_failed)
    age_s = time.time() - counters.snapshot_at_s if counters.snapshot_at_s is not None else float("nan")
    yield _gauge(*families.SNAPSHOT_AGE, age_s)
    yield _gauge("styx_recovery_seconds", "How long the start took.", counters.recovery_s)
    yield _gauge("styx_log_undurable_bytes", "Bytes that wait for the disk.", log.backlog_bytes)
    streams = [(stream, range(engine.n_slots)) for stream in Stream if stream is not Stream.EPOCHS]
    samples = []
    for stream, partitions in [*streams, (Stream.EPOCHS, range(EPOCHS_PARTITION, EPOCHS_PARTITION + 1))]:
        bounds = [log.bounds(stream, partition) for partition in partitions]
        samples.append((f'{{stream="{stream.name.lower()}"}}', float(sum(end - first for first, end in bounds))))
    yield ("styx_log_records", "gauge", "Records retained in the log.", samples)
