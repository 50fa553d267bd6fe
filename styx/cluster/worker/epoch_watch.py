"""Watches a worker's epochs from outside: how long their parts take, how large they are, how their transactions end.

It counts over all registrations of the process. The core and the session report to it; the protocol never reads it. The
clock is read once for each part of an epoch, and never for a transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from styx.cluster.worker.time_breakdown import EPOCHS_PER_SAMPLE, TimeBreakdown, timed_invocation
from styx.messages import ReplyRecord
from styx.metrics.histogram import EPOCH_SIZES, REQUEST_SECONDS, ROUNDS, STEP_SECONDS, Histogram
from styx.protocol.messages import Commit, Conflicts, Done, LockDecision, LockReport, ToCoordinator, ToWorker
from styx.worker.epoch import Watch
from styx.worker.events import CheckFurther, CoordinatorSaid, Effect, Event, Proceed, Step
from styx.worker.executor import Executor
from styx.worker.invocation import Invocation
from styx.worker.range_counts import RangeCounts
from styx.worker.root import RootTransaction
from styx.worker.worker import Worker


class Span(IntEnum):
    """The parts of an epoch on one worker, in order."""

    SEQUENCING = 0
    """The batch is formed and its record encoded."""
    EXECUTION = 1
    """Until all transactions with their root here have been run, also on other workers."""
    BARRIER_1 = 2
    """Until all workers are done; functions that others call run meanwhile."""
    VALIDATION = 3
    """Conflicts are found."""
    RECORD = 4
    """The wait until the worker's epoch record is durable."""
    BARRIER_2 = 5
    """Until all workers have found their conflicts."""
    COMMIT = 6
    """Writes are applied, outcomes decided."""
    LOCK_PHASE = 7
    """Rounds, and waiting for their decisions."""
    REPLIES = 8
    """Replies are encoded and handed to the log's appender."""


_SPANS: Final = len(Span)


class EpochSpans:
    """The times of one epoch's spans; `clock` gives seconds. An epoch's replies leave when the next one has begun
    already, so an epoch is counted by `flush`.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.by_span = [Histogram(STEP_SECONDS) for _ in Span]
        self.whole = Histogram(STEP_SECONDS)
        self.span: Span | None = None
        self._clock = clock
        self._since_s = 0.0
        self._spent = [0.0] * _SPANS
        self._ended: list[float] | None = None

    def begin(self) -> None:
        """An epoch begins with its first span."""
        self.span = Span.SEQUENCING
        self._since_s = self._clock()

    def enter(self, span: Span) -> None:
        """Begins another span of the open epoch. Does nothing if no epoch is open."""
        if self.span is not None:
            now_s = self._clock()
            self._spent[self.span] += now_s - self._since_s
            self.span, self._since_s = span, now_s

    def end(self) -> None:
        """The open epoch closes."""
        if self.span is not None:
            self.enter(self.span)
            self.span = None
            self._ended, self._spent = self._spent, [0.0] * _SPANS

    def replied(self, seconds: float) -> None:
        """Takes the time for giving replies: of the epoch that has ended, otherwise early ones of the open epoch."""
        (self._spent if self._ended is None else self._ended)[Span.REPLIES] += seconds
        self._since_s += seconds

    def flush(self) -> float | None:
        """Counts the epoch that has ended, if there is one. Returns its duration in seconds."""
        ended, self._ended = self._ended, None
        if ended is None:
            return None
        for histogram, seconds in zip(self.by_span, ended, strict=True):
            histogram.observe(seconds)
        whole_s = sum(ended)
        self.whole.observe(whole_s)
        return whole_s

    def abandon(self) -> None:
        """Forgets the open epoch, because its generation has ended."""
        self.span = self._ended = None
        self._spent = [0.0] * _SPANS


class EpochWatch(Watch):
    """Observes the epochs of a worker process. `sampling`: this epoch is timed in detail. `clock` gives seconds,
    `wall_clock` seconds since 1970.
    """

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self.spans = EpochSpans(clock)
        self.breakdown = TimeBreakdown()
        self.sizes = Histogram(EPOCH_SIZES)
        self.rounds = Histogram(ROUNDS)
        self.latency = Histogram(REQUEST_SECONDS)
        self.calls = 0
        self.range_counts = RangeCounts()
        self.locked = 0
        self.left = 0
        self.sampling = False
        self.last_epoch_s = 0.0
        self.clock = clock
        self._wall_clock = wall_clock
        self._timed_invocation = timed_invocation(self.breakdown)
        self._epochs = 0
        self._roots: dict[int, RootTransaction] = {}
        self._roots_before: dict[int, RootTransaction] = {}
        self._ended_before = 0
        self._calls_before = 0
        self._rounds = 0
        self._slice_began_s = 0.0
        self._sent_us: list[int] = []

    # The core ----------------------------------------------------------------------------------------------

    def begins(self, executor: Executor, transactions_ended: int) -> None:
        """An epoch begins; `transactions_ended` so far."""
        self.spans.begin()
        self._rounds = 0
        self._ended_before = transactions_ended
        self._calls_before = executor.calls
        self._epochs += 1
        self.sampling = self._epochs % EPOCHS_PER_SAMPLE == 0
        if self.sampling:
            self.breakdown.begin()
        executor.invocation = self._timed_invocation if self.sampling else Invocation

    def sequenced(self, executor: Executor) -> None:
        """The epoch's transactions have been made, and will be run next."""
        # Replies of the epoch before may still be on their way out of the step that began this one.
        self._roots_before, self._roots = self._roots, executor.roots
        self.spans.enter(Span.EXECUTION)

    def validates(self) -> None:
        """Barrier 1 is passed."""
        self.spans.enter(Span.VALIDATION)

    def locks(self, locked: int) -> None:
        """The lock phase begins; `locked` counts its transactions with their root on this worker."""
        self.spans.enter(Span.LOCK_PHASE)
        self.locked += locked

    def slice_begins(self) -> None:
        """A slice of the lock phase begins. Its functions count like those of the execution step."""
        if self.sampling:
            self._slice_began_s = self.clock()

    def slice_ends(self) -> None:
        """A slice of the lock phase has ended."""
        if self.sampling:
            self.breakdown.running_s += self.clock() - self._slice_began_s

    def closes(self, executor: Executor, transactions_ended: int) -> None:
        """The open epoch, if there is one, closes."""
        if self.spans.span is None:
            return
        self.spans.end()
        size = len(self._roots)
        self.sizes.observe(size)
        self.calls += executor.calls - self._calls_before
        self.range_counts.take(executor.range_counts)
        self.left += size - (transactions_ended - self._ended_before)
        if self._rounds:
            self.rounds.observe(self._rounds)
        if self.sampling:
            self.sampling = False
            self.breakdown.end(size)

    def abandons(self) -> None:
        """The generation, or the registration, is over."""
        self.spans.abandon()
        self.sampling = False
        self.breakdown.abandon()
        self._roots = self._roots_before = {}
        self._sent_us = []

    def told(self, message: ToWorker) -> None:
        """The coordinator's message is about to be taken."""
        if isinstance(message, Commit) or (isinstance(message, LockDecision) and message.final):
            self.spans.enter(Span.COMMIT)

    # The session -------------------------------------------------------------------------------------------

    def said(self, message: ToCoordinator) -> None:
        """The coordinator was sent a message."""
        if isinstance(message, Done):
            if self.spans.span is Span.EXECUTION:  # a single worker has passed the barrier already
                self.spans.enter(Span.BARRIER_1)
        elif isinstance(message, Conflicts):
            self.spans.enter(Span.BARRIER_2)
        elif isinstance(message, LockReport):
            self._rounds += 1

    def replied(self, replies: list[ReplyRecord], seconds: float) -> None:
        """The worker handed replies to the log, which took `seconds`. `pass_ended` counts them."""
        self.spans.replied(seconds)
        roots = self._roots
        if not any(reply.sequence in roots for reply in replies):  # the first one, as a rule
            roots = self._roots_before
        found = map(roots.get, [reply.sequence for reply in replies])
        self._sent_us += [root.timestamp_us for root in found if root is not None]

    def pass_ended(self, executor: Executor, runnable: bool) -> list[int]:
        """Ends a pass. Returns the times at which the answered requests entered the log, in microseconds, for
        `durable`.
        """
        if self.spans.span is Span.VALIDATION:
            self.spans.enter(Span.RECORD)
        if self.sampling and not runnable:
            self.breakdown.wait(self.clock(), executor.open_roots > 0)
        whole_s = self.spans.flush()
        if whole_s is not None:
            self.last_epoch_s = whole_s
            self.breakdown.count(whole_s)
        sent_us, self._sent_us = self._sent_us, []
        return sent_us

    def durable(self, sent_us: list[int]) -> None:
        """The replies to the requests that entered the log at `sent_us` are durable."""
        self.latency.observe_since(sent_us, self._wall_clock() * 1e6)


class TimedSteps:
    """Times the steps of `core` for `watch`. `checked` gets the duration of each slice of a check of the state, by the
    clock and by the processor, in seconds.
    """

    def __init__(self, core: Worker, watch: EpochWatch, checked: Callable[[float, float], None]) -> None:
        self._core = core
        self._watch = watch
        self._checked = checked

    def step(self, event: Event) -> list[Effect]:
        """As `Worker.step`."""
        core, watch = self._core, self._watch
        if isinstance(event, CheckFurther):
            started_s, processor_s = time.perf_counter(), time.thread_time()
            effects = core.step(event)
            self._checked(time.perf_counter() - started_s, time.thread_time() - processor_s)
            return effects
        if watch.sampling:
            watch.breakdown.go_on(watch.clock())
            if isinstance(event, Proceed) and core.reached is Step.EXECUTING:
                started_s = watch.clock()
                effects = core.step(event)
                watch.breakdown.running_s += watch.clock() - started_s
                return effects
        if isinstance(event, CoordinatorSaid) and event.message.generation == core.generation:
            watch.told(event.message)
        return core.step(event)
