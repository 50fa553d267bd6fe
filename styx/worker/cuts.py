"""Cuts: the outcome of a transaction with a function that the watchdog has interrupted, the verdict in the log, and the
branches of the transaction that do not run any further in this epoch.

Where a function is interrupted depends on time. So its transaction's outcome is recorded before anything depends on it,
and a replay takes the recorded outcome instead of running the transaction. In the execution step a cut ends the
transaction, with the failure that comes first in serial order. If that failure is unknown, because branches may have
collided, or calls must be counted, or an external function is due, the transaction leaves the epoch and comes back in
sequential mode. In the lock phase the transaction is carried: the epoch's lock phase begins anew without it. In phase 3
it is aborted.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
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

    `plan` is the recorded epoch of a replay. `answered` says how far the replies in the log reach, of any slot.
    """
    if plan is None:
        return 1
    if not plan.last or decided(plan.epoch, locking, answered):
        return CLOSED_PATIENCE
    return REPLAY_PATIENCE


def decided_slots(
    plan: EpochPlan, answered: Reached, given: Container[int], local: Iterable[RootTransaction]
) -> set[int]:
    """The slots of a recorded epoch of which it is known that all their `local` transactions have ended. `given` has
    the TIDs of the requests with replies in the log.

    A slot goes into the next epoch without waiting for others. So only its own record of a later epoch proves it, or
    its own reply; or a reply of a later epoch, which waited for the records of all slots. The replies of a slot's
    phase 3 leave together.
    """
    if decided(plan.epoch + 1, False, answered):
        return set(plan.batches)
    own = {root.slot for root in local if root.tid in given}
    return own.union(plan.batches.keys() - plan.open)


def local_patience(plan: EpochPlan | None, known: bool) -> int:
    """How many times longer than usual a function may run in phase 3. `known`: it ended when it ran first."""
    if plan is None:
        return 1
    return CLOSED_PATIENCE if known else REPLAY_PATIENCE


def settle(cut_roots: list[RootTransaction], patience: int) -> None:
    """Sets the outcome of cut transactions when all their branches have ended. Raises `EngineFailed` in a replay whose
    record proves that their functions ended by themselves in the first run.
    """
    for root in cut_roots:
        failure = root.failure
        if root.overflow:
            continue  # the transaction leaves the epoch anyway
        if patience == CLOSED_PATIENCE:
            raise contradiction(root.tid, failure)
        if root.external or root.collided or failure is None:
            root.overflow = True  # the transaction leaves the epoch, and comes back in sequential mode
        elif failure.code == CUT_CODE:
            root.failure = failure._replace(code="aborted")


def of_locks(cut: list[int], patience: int) -> list[int]:
    """The transactions without which the lock phase begins anew. Raises `EngineFailed` as `settle` does."""
    if cut and patience == CLOSED_PATIENCE:
        raise contradiction(cut[0], None)
    return cut


def contradiction(tid: int, failure: Failure | None) -> EngineFailed:
    """The error of a function that ended in the first run, and does not end in the replay."""
    told = "" if failure is None else f" ({failure.message})"
    return EngineFailed(
        f"the replay of transaction {tid} does not end{told}, but it ended when it ran first: the app's code, or what "
        "it depends on, has changed since. Nothing was changed. Start with the code that ran before"
    )


def verdicts(
    cut_roots: Iterable[RootTransaction], cut: Collection[int], deferred: Collection[int]
) -> list[tuple[int, ErrorTriple | None]]:
    """The verdicts that a worker records at barrier 1: on its own cut transactions, and on transactions that left the
    epoch after the watchdog had interrupted one of their functions on this worker.
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
    """Gives transactions of a replayed epoch their recorded outcomes, so that they are done without running."""
    for root in roots if ended else ():
        if root.tid in ended and not root.done:
            outcome = ended[root.tid]
            root.done = True
            if outcome is None:
                root.overflow = True
            else:
                root.failure = Failure(b"", b"", False, *outcome)


class Stopped:
    """The branches that do not run any further, of transactions with an interrupted function. `any`: there are some.

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
        """Forgets all transactions; the next epoch begins."""
        if self.any:
            self.any = False
            self._first, self._given_up = {}, set()

    def ended(self, tid: int, failure: Failure) -> None:
        """Takes an interruption on this worker."""
        before = self._first.get(tid)
        if before is not None:
            self._given_up.add(tid)
        if before is None or failure.place < before.place:
            self._first[tid] = failure
        self.any = True

    def heard(self, tid: int, failure: Failure) -> None:
        """Takes an interruption on this worker or another."""
        self._first.setdefault(tid, failure)
        self.any = True

    def first(self, tid: int) -> Failure | None:
        """The interruption that comes first in serial order; None if all branches of the transaction run."""
        return self._first.get(tid)

    def given_up(self, tid: int) -> bool:
        """Whether the transaction's earlier branches are skipped as well."""
        return tid in self._given_up
