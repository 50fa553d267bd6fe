"""The barriers of one epoch: collects the reports of all workers and decides their next step.

There is one epoch at a time, because no worker begins the next epoch before the last decision of this one. Paper
sections 5.3 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from styx.model.limits import PATCH_ROUNDS_MAX, PATCH_ROUNDS_MORE, PATCH_ROUNDS_TIMES
from styx.protocol.frames import Failure
from styx.protocol.messages import Commit, Conflicts, Done, LockDecision, LockReport, ToWorker, Validate


class SnapshotDue(NamedTuple):
    """A snapshot to ask for. `hold`: and no epoch before its end; the slots in `whole` store everything."""

    hold: bool
    whole: list[int]


class PatchRounds:
    """How many rounds with patches a lock phase may have: `first` with all its transactions; as many again, up to
    `times` as many, while most of these have not come to rest, or one does for each two rounds; then `more` without
    those that have not.

    `rounds` counts these rounds of all epochs, `given_up` the transactions that were carried because there were too
    many.
    """

    def __init__(
        self, first: int = PATCH_ROUNDS_MAX, more: int = PATCH_ROUNDS_MORE, times: int = PATCH_ROUNDS_TIMES
    ) -> None:
        self.first = first
        self.more = more
        self.times = times
        self.rounds = 0
        self.given_up = 0


class EpochBarriers:
    """Barriers of `epoch` over `workers`. `ended` after the decision that closes it; `new_max` is known from
    barrier 1.
    """

    def __init__(
        self,
        generation: int,
        epoch: int,
        workers: Iterable[int],
        patch_rounds: PatchRounds | None = None,
    ) -> None:
        self.generation = generation
        self.epoch = epoch
        self.new_max = 0
        self.ended = False
        self._workers = frozenset(workers)
        self._done: dict[int, Done] = {}
        self._conflicts: dict[int, Conflicts] = {}
        self._reports: dict[int, LockReport] = {}
        self._round = 0
        self._patch_rounds = 0
        self._more_until = 0
        self._patched: set[int] = set()
        self._moving_halfway = 0
        self._limits = patch_rounds or PatchRounds()
        self._collided: set[int] = set()
        self._locked: set[int] = set()
        self._excluded: set[int] = set()

    def take(
        self, worker: int, message: Done | Conflicts | LockReport, due: Callable[[], SnapshotDue | None]
    ) -> ToWorker | None:
        """The message for all workers if this report was the last one missing; what snapshot is `due` is asked when the
        epoch ends with it.
        """
        assert worker in self._workers
        assert not self.ended
        if isinstance(message, Done):
            self._done[worker] = message
            return self._barrier_1() if self._complete(self._done) else None
        if isinstance(message, Conflicts):
            self._conflicts[worker] = message
            return self._barrier_2(due) if self._complete(self._conflicts) else None
        assert message.round == self._round
        self._reports[worker] = message
        return self._lock_round(due) if self._complete(self._reports) else None

    def _complete(self, reports: dict[int, Done] | dict[int, Conflicts] | dict[int, LockReport]) -> bool:
        return reports.keys() == self._workers

    def _barrier_1(self) -> Validate | None:
        validate = _union(list(self._done.values()))
        self.new_max = validate.new_max
        self._collided = set(validate.collided)
        return validate if len(self._workers) > 1 else None

    def _barrier_2(self, due: Callable[[], SnapshotDue | None]) -> Commit:
        locked = self._collided.union(*(report.tids for report in self._conflicts.values()))
        self.ended = not locked
        self._locked = locked
        if locked:
            # Without those that took no part when a replayed lock phase ran first: how many transactions are left
            # decides how many rounds with patches there are.
            self._locked = locked.difference(*(report.unlocked for report in self._conflicts.values()))
        return Commit(self.generation, self.epoch, sorted(locked), *self._asked(due))

    def _asked(self, due: Callable[[], SnapshotDue | None]) -> tuple[bool, bool, list[int]]:
        snapshot = due() if self.ended else None
        return (False, False, []) if snapshot is None else (True, snapshot.hold, snapshot.whole)

    def _lock_round(self, due: Callable[[], SnapshotDue | None]) -> LockDecision:
        cut = {t for report in self._reports.values() for t in report.cut}
        if cut:
            # Whatever this round found was found beside them, where a replay will not see them.
            return self._lock_anew(sorted(cut))
        failed: dict[int, Failure] = {}
        patched, awaited = set[int](), dict[int, int]()
        for report in self._reports.values():
            patched.update(report.patched)
            for worker, count in report.sent.items():
                awaited[worker] = awaited.get(worker, 0) + count
            for t, failure in report.failures:
                if t not in failed or failure.place < failed[t].place:
                    failed[t] = failure
        number = self._round
        self._round += 1
        self._reports = {}
        self.ended = not failed and not patched
        given_up = self._given_up(patched)
        self._limits.given_up += len(given_up)
        excluded = dict.fromkeys(given_up) | dict(_verdicts(failed, patched))
        self._excluded.update(excluded)
        verdicts, asked = sorted(excluded.items()), self._asked(due)
        return LockDecision(self.generation, self.epoch, number, verdicts, self.ended, *asked, awaited=awaited)

    def _given_up(self, patched: set[int]) -> set[int]:
        """The transactions that are carried because the rounds with patches do not end.

        First those that are still patching, all together: the others need few rounds more without them. But if it is
        worth it, the phase goes on with them. If the others do not end either, everything from the lowest of them on,
        because nothing below it can change any more.

        A transaction is moving if it has sent patches in one of the last two rounds: one that waits for another slot's
        result sends some in every other round only.
        """
        moving, self._patched = self._patched | patched, patched
        if not patched:
            return set()
        self._patch_rounds += 1
        limits, number = self._limits, self._patch_rounds
        limits.rounds += 1
        if self._more_until:
            return {t for t in self._left() if t >= min(patched)} if number >= self._more_until else set()
        moving &= self._left()
        step = number % limits.first
        if step == limits.first // 2:
            self._moving_halfway = len(moving)
        if step or (number < limits.first * limits.times and self._is_worth_going_on(moving)):
            return set()
        self._more_until = number + limits.more
        return patched

    def _left(self) -> set[int]:
        return self._locked - self._excluded

    def _is_worth_going_on(self, moving: set[int]) -> bool:
        """Whether those that are `moving` would cost more in further epochs than in further rounds: they are more than
        half of all that are left, or since halfway one of them has come to rest for each two rounds.
        """
        rounds = self._limits.first - self._limits.first // 2
        return 2 * len(moving) > len(self._left()) or 2 * (self._moving_halfway - len(moving)) >= rounds

    def _lock_anew(self, cut: list[int]) -> LockDecision:
        number = self._round
        self._round += 1
        self._patch_rounds = self._more_until = 0
        self._patched = set()
        self._locked.difference_update(cut)
        self._excluded = set()
        self._reports = {}
        return LockDecision(self.generation, self.epoch, number, [(t, None) for t in cut], False, False, anew=True)


def _union(reports: list[Done]) -> Validate:
    return Validate(
        reports[0].generation,
        reports[0].epoch,
        max(report.new_max for report in reports),
        sorted(t for report in reports for t in report.aborted),
        sorted(t for report in reports for t in report.collided),
        sorted(t for report in reports for t in report.deferred),
        sorted(t for report in reports for t in report.large),
    )


def _verdicts(failed: dict[int, Failure], patched: set[int]) -> list[tuple[int, Failure | None]]:
    """What becomes of failed transactions. Only those below all patches of the round: a patch can change whatever its
    transaction and higher ones do.

    An exception is final if it comes first in its transaction, and nothing before that transaction failed. Every other
    failed transaction ran on what a failed one may have left, or cannot be decided in this lock phase: it is carried to
    the next epoch, where it is among the lowest.
    """
    settled = [t for t in sorted(failed) if not patched or t < min(patched)]
    if not settled:
        return []
    lowest = settled[0]
    return [(t, failed[t] if t == lowest and not failed[t].deviation else None) for t in settled]
