"""What becomes of a transaction of which the watchdog has ended a function, and what the log must know of it.

Where a function is ended depends on time, so its transaction's outcome is recorded before anything depends on it, and a
replay takes the recorded one instead of running it. In the execution step a cut ends the transaction, in the failure
that comes first in serial order. If that is not known, because branches may have met that did not see each other, or
calls must be counted, or an outside function is due, it leaves the epoch and comes back in sequential mode. In the lock
phase it is carried: the epoch's lock phase begins anew without it. Decides no conflict and runs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from styx.errors import EngineFailed
from styx.execution import ErrorTriple
from styx.sequencer.epoch_record import EpochPlan
from styx.worker.invocation import CUT_CODE
from styx.worker.messages import Failure
from styx.worker.root import RootTransaction

REPLAY_PATIENCE: Final = 3
"""How many times longer a function may run in the replay of the last recorded epoch: it may have ended in time when it
ran first, and its outcome be known, on a machine that was less busy.
"""


CLOSED_PATIENCE: Final = 30
"""The same in the replay of an epoch that is known to have ended: then the function did end, or its end is recorded,
and no other outcome is right. If it does not end now, the engine fails.
"""


def patience(plan: EpochPlan | None) -> int:
    """How many times longer than usual a function may run in an epoch; `plan` is the recorded one that is replayed."""
    if plan is None:
        return 1
    return REPLAY_PATIENCE if plan.last else CLOSED_PATIENCE


def _ended_before(patience: int, tids: Collection[int], answered: Collection[int]) -> bool:
    """Whether it is known that these had ended: by a later epoch, or by a reply that stands in the log."""
    return patience == CLOSED_PATIENCE or any(tid in answered for tid in tids)


def settle(
    cut_roots: list[RootTransaction], patience: int, tids: Collection[int] = (), answered: Collection[int] = ()
) -> None:
    """Says how these end, when all their branches have ended. `tids` are this worker's own of the epoch, `answered`
    those of which a reply stands. Raises `EngineFailed` in an epoch that is known to have ended: what was ended by the
    watchdog there is recorded, and this was not.
    """
    ended_before = bool(cut_roots) and _ended_before(patience, tids, answered)
    for root in cut_roots:
        failure = root.failure
        if root.overflow:
            continue  # it leaves the epoch whatever this branch of it did
        if ended_before:
            raise contradiction(root.tid, failure)
        if root.external or root.collided or failure is None:
            root.overflow = True  # it leaves the epoch, and comes back in sequential mode
        elif failure.code == CUT_CODE:
            root.failure = failure._replace(code="aborted")


def of_locks(cut: list[int], patience: int, locked: Collection[int] = (), answered: Collection[int] = ()) -> list[int]:
    """Those that a round of the lock phase has to be begun anew without. `locked` take part in it: what is answered
    before it says nothing of it. Raises `EngineFailed` as `settle` does.
    """
    if cut and _ended_before(patience, locked, answered):
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
