"""Watches a worker's epochs from outside: how long their parts take, how large they are, how their transactions end.

It counts over all registrations of the process. The core and the session report to it; the protocol never reads it. The
clock is read once for each part of an epoch, and never for a transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from styx.cluster.worker.epoch_spans import EpochSpans, Span
from styx.cluster.worker.time_breakdown import EPOCHS_PER_SAMPLE, TimeBreakdown
from styx.cluster.worker.timed_invocation import timed_invocation
from styx.messages import ReplyRecord
from styx.metrics.histogram import EPOCH_SIZES, REQUEST_SECONDS, ROUNDS, Histogram
from styx.protocol.messages import Commit, Conflicts, Done, LockDecision, LockReport, ToCoordinator, ToWorker
from styx.worker.epoch import Watch
from styx.worker.executor import Executor
from styx.worker.invocation import Invocation
from styx.worker.root import RootTransaction


class EpochWatch(Watch):
    """`sampling`: this epoch is timed in detail. `clock` gives seconds, `wall_clock` those since 1970."""

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self.spans = EpochSpans(clock)
        self.breakdown = TimeBreakdown()
        self.sizes = Histogram(EPOCH_SIZES)
        self.rounds = Histogram(ROUNDS)
        self.latency = Histogram(REQUEST_SECONDS)
        self.calls = 0
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
        """The epoch's transactions are there, to be run."""
        # Replies of the epoch before may still be on their way out of the step that began this one.
        self._roots_before, self._roots = self._roots, executor.roots
        self.spans.enter(Span.EXECUTION)

    def validates(self) -> None:
        """Barrier 1 is passed."""
        self.spans.enter(Span.VALIDATION)

    def locks(self, locked: int) -> None:
        """The lock phase begins, with so many own transactions."""
        self.spans.enter(Span.LOCK_PHASE)
        self.locked += locked

    def slice_begins(self) -> None:
        """Its functions count like others."""
        if self.sampling:
            self._slice_began_s = self.clock()

    def slice_ends(self) -> None:
        """They have been run."""
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
            if self.spans.span is Span.EXECUTION:  # a worker alone is behind the barrier already
                self.spans.enter(Span.BARRIER_1)
        elif isinstance(message, Conflicts):
            self.spans.enter(Span.BARRIER_2)
        elif isinstance(message, LockReport):
            self._rounds += 1

    def replied(self, replies: list[ReplyRecord], seconds: float) -> None:
        """Replies were handed to the log, which took so long; `pass_ended` says which of them it was."""
        self.spans.replied(seconds)
        roots = self._roots
        if not any(reply.sequence in roots for reply in replies):  # the first one, as a rule
            roots = self._roots_before
        found = map(roots.get, [reply.sequence for reply in replies])
        self._sent_us += [root.timestamp_us for root in found if root is not None]

    def pass_ended(self, executor: Executor, runnable: bool) -> list[int]:
        """The worker has nothing more to do for now. Returns when the requests that were answered entered the log,
        in microseconds; for `durable`.
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
        """The replies to requests of these times are durable."""
        self.latency.observe_since(sent_us, self._wall_clock() * 1e6)
