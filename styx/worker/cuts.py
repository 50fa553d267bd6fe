"""Cuts: the outcome of a transaction of which the watchdog has interrupted a function, the verdict that is logged, and
which branches of the transaction run no more in this epoch.

Where a function is interrupted depends on time. So its transaction's outcome is recorded before anything depends on it,
and a replay takes the recorded outcome instead of running the transaction. In the execution step a cut ends the
transaction, with the failure that comes first in serial order. If that failure is unknown, because branches may have
collided, or calls must be counted, or an external function is due, the transaction leaves the epoch and comes back in
sequential mode. In the lock phase the transaction is carried: the epoch's lock phase begins anew without it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from styx.errors import EngineFailed
from styx.model.execution import ErrorTriple
from styx.model.limits import CLOSED_PATIENCE, REPLAY_PATIENCE
from styx.protocol.frames import Failure
from styx.protocol.messages import Reached
from styx.sequencer.epoch_record import EpochPlan
from styx.worker.given_replies import decided
from styx.worker.invocation import CUT_CODE

if TYPE_CHECKING:
    from styx.worker.root import RootTransaction


def patience(plan: EpochPlan | None, answered: Reached, locking: bool) -> int:
    """How many times longer than usual a function may run in an epoch, or in its lock phase.

    `plan` is the recorded one that is replayed, `answered` how far the replies reach that stand for any slot.
    """
    if plan is None:
        return 1
    if not plan.last or decided(plan.epoch, locking, answered):
        return CLOSED_PATIENCE
    return REPLAY_PATIENCE


def settle(cut_roots: list[RootTransaction], patience: int) -> None:
    """Says how these end, when all their branches have ended. Raises `EngineFailed` where it is known that they had
    ended: what was ended by the watchdog there is recorded, and this was not.
    """
    for root in cut_roots:
        failure = root.failure
        if root.overflow:
            continue  # it leaves the epoch whatever this branch of it did
        if patience == CLOSED_PATIENCE:
            raise contradiction(root.tid, failure)
        if root.external or root.collided or failure is None:
            root.overflow = True  # it leaves the epoch, and comes back in sequential mode
        elif failure.code == CUT_CODE:
            root.failure = failure._replace(code="aborted")


def of_locks(cut: list[int], patience: int) -> list[int]:
    """Those that a round of the lock phase has to be begun anew without. Raises `EngineFailed` as `settle` does."""
    if cut and patience == CLOSED_PATIENCE:
        raise contradiction(cut[0], None)
    return cut


def contradiction(tid: int, failure: Failure | None) -> EngineFailed:
    """A function that ended when it ran first, and does not in the replay."""
    told = "" if failure is None else f" ({failure.message})"
    return EngineFailed(
        f"the replay of transaction {tid} does not end{told}, but it ended when it ran first: the app's code, or what "
        "it depends on, has changed since. Nothing was changed. Start with the code that ran before"
    )


def verdicts(
    cut_roots: Iterable[RootTransaction], cut: Collection[int], deferred: Collection[int]
) -> list[tuple[int, ErrorTriple | None]]:
    """What a worker has to record of an epoch at barrier 1: of its own transactions, and of those that left the epoch
    although a function of theirs had been ended here.
    """
    found: dict[int, ErrorTriple | None] = dict.fromkeys(sorted(set(cut).intersection(deferred)))
    for root in cut_roots:
        failure = root.failure
        if root.tid not in deferred and failure is not None:
            found[root.tid] = (failure.code, failure.type, failure.message)
        else:
            found[root.tid] = None
    return list(found.items())


def apply(ended: Mapping[int, ErrorTriple | None], roots: Iterable[RootTransaction]) -> None:
    """Gives transactions of a replayed epoch their recorded outcomes: they are done before they have begun."""
    for root in roots if ended else ():
        if root.tid in ended and not root.done:
            outcome = ended[root.tid]
            root.done = True
            if outcome is None:
                root.overflow = True
            else:
                root.failure = Failure(b"", b"", False, *outcome)


class Stopped:
    """Transactions of which the watchdog has interrupted a function here, by TID; `any` is whether there are some.

    Branches that come later in serial order cannot change how the transaction ends. So they are skipped from the first
    interruption on: a transaction of a thousand endless branches costs the limit of one. Branches that come earlier
    might end the transaction in another way, so they run. If one of them does not end either, all branches are skipped,
    and the transaction runs again in sequential mode, where the first branch that does not end is the last one that
    runs.
    """

    def __init__(self) -> None:
        self.any = False
        self._first: dict[int, Failure] = {}
        self._given_up: set[int] = set()

    def clear(self) -> None:
        """Another epoch begins."""
        if self.any:
            self.any = False
            self._first, self._given_up = {}, set()

    def ended(self, tid: int, failure: Failure) -> None:
        """A function was ended here."""
        before = self._first.get(tid)
        if before is not None:
            self._given_up.add(tid)
        if before is None or failure.place < before.place:
            self._first[tid] = failure
        self.any = True

    def heard(self, tid: int, failure: Failure) -> None:
        """One was ended, here or elsewhere."""
        self._first.setdefault(tid, failure)
        self.any = True

    def first(self, tid: int) -> Failure | None:
        """The end that comes first in serial order; None: all its branches run."""
        return self._first.get(tid)

    def given_up(self, tid: int) -> bool:
        """Whether its earlier branches are left out as well."""
        return tid in self._given_up
