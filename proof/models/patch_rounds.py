"""The rule of patch rounds, and the decisions of the coordinator that follow from it.

A *part* is what a transaction has on one slot, an *entry* a call that another slot has made to it. Slots, never
workers, decide what is local. Each slot begins with the entries, sent calls and results of the execution step.

1. **Round.** Each slot runs its part of every transaction that is left, in TID order, on current state; each part in
   serial order, from its entries. A call within the slot runs there and then. A synchronous call to another slot takes
   the last result that this slot was given for the path: a guess, which the slot that gave it checks. Without one
   the part *waits*: it stops, behind all that runs below the call. An exception, or a call above the allowance, stops
   it too: it *fails*, and its writes on the slot are dropped.
2. **Patches** after a run: a call to another slot that is new or differs; a sent call that was not made again is
   withdrawn; the result of an entry, if it differs from the one last given for this entry. A new entry has given none,
   so its first result is always sent. A sent call behind the place where the part stopped stands as it was. The place
   decides, and not whether its caller ran: if a call has become asynchronous, what is below it has another place.
3. **Report and decision.** Workers report failures of transactions on several slots, the TIDs that sent patches, and
   how many go to each worker. The decision says how many patches each worker must have before it goes on.
4. **Applying**, after the decision. An entry is known by its path *and* the slot that made the call, and a slot's
   patches touch only its own entries. For if a call moves to its caller's slot, it makes its calls in the same round,
   and its old slot withdraws its own a round later. Of two entries with one path the first in order runs. A changed
   entry keeps its sent calls and its results.
5. **Verdicts.** A failure is *settled* if no transaction at or below its TID sent a patch in the round. Transactions
   with settled failures leave every slot. The lowest, if it is an exception, is final; the others are carried, because
   they ran on what the lowest may have left. Other failures mean nothing: these transactions run again. Of several
   failures of one transaction the first in serial order counts.
6. **End.** Without a patch and without a reported failure all that is left commits, and nobody waits. The failure of a
   transaction that is wholly on one slot is decided there, in this round only.
7. **Cap**, in rounds with patches, counted by the coordinator. In the 16th all transactions that sent patches in it are
   given up: they leave every slot together, and are carried. But if more than half of the transactions that are left
   are *moving* (sent patches in the last two rounds), or at least four fewer than eight rounds before, the phase goes
   on for 16 more, up to 128 in all. In the 8th round after that, and all later ones, every transaction from the lowest
   unstable one on leaves; the next round is the last.
8. **Call limit.** A part's allowance is fixed when the lock phase begins, and not by patched graphs, or it would grow
   in each round. A call above it is never final.
9. **Who takes part.** Sent calls must be true at the beginning. A chain that raised in the execution step has sent none
   of its asynchronous calls, and its callees on other slots cannot know it. So a transaction that collided and raised
   leaves the epoch, and comes back in sequential mode.
10. **Anew.** If the watchdog cuts a transaction, the phase begins anew from the execution step without it, and so does
    the cap's count. Patches of void rounds are dropped by their number.

Why it ends, and right: order everything by TID, then by place. An entry exists only if the invocation one step up the
path makes it, and values depend on smaller places only. So every round makes at least one more place right for good,
and a round without patches is the serial execution. What no caller makes any more stands only behind the first stop of
its transaction, so no final exception depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from proof.models.runner import Failed


class Cap(NamedTuple):
    """How many rounds with patches a lock phase has before transactions are given up (up to `times` as many, while most
    are patching or their number falls), and how many more then.
    """

    rounds: int = 16
    more: int = 8
    times: int = 8


class Report(NamedTuple):
    """What a worker found in a round. `patched` are the TIDs that sent patches, `told` counts patches by worker."""

    failures: list[tuple[int, Failed]]
    patched: frozenset[int]
    told: dict[int, int]
    cut: frozenset[int]


class Decision(NamedTuple):
    """What follows from a round. `excluded` leave every slot, with their exception or None if they are carried.

    `due` is how many patches each worker must have before it goes on. `anew`: begin again from the execution step.
    """

    excluded: Mapping[int, Failed | None]
    due: Mapping[int, int]
    ended: bool
    anew: bool = False


class Coordinator:
    """Decides each round of a lock phase over `tids`, from the reports of all workers."""

    def __init__(self, tids: Iterable[int], cap: Cap) -> None:
        self.rounds = 0
        self.patched_rounds = 0
        self._all = frozenset(tids)
        self._left = set(self._all)
        self._cap = cap
        # A round without patches excludes somebody or is the last.
        self._rounds_max = cap.rounds * cap.times + cap.more + len(self._all) + 1
        self._last = frozenset[int]()
        self._moving_halfway = 0
        self._given_up_in = 0

    def decide(self, reports: list[Report]) -> Decision:
        """The decision of the present round."""
        self.rounds += 1
        assert self.rounds <= self._rounds_max, "the lock phase does not end"
        cut = frozenset[int]().union(*(report.cut for report in reports))
        if cut:
            self.patched_rounds = self._given_up_in = 0
            self._last = frozenset()
            self._all -= cut
            self._rounds_max += self.rounds
            self._left = set(self._all)
            return Decision(dict.fromkeys(cut), {}, ended=False, anew=True)
        failures = lowest_failures(reports)
        patched = frozenset[int]().union(*(report.patched for report in reports))
        self.patched_rounds += bool(patched)
        excluded = verdicts(failures, patched)
        if patched:
            for tid in self._given_up(patched, excluded):
                excluded.setdefault(tid, None)
        due: dict[int, int] = {}
        for report in reports:
            for worker, count in report.told.items():
                due[worker] = due.get(worker, 0) + count
        self._left -= excluded.keys()
        self._last = patched
        return Decision(excluded, due, ended=not patched and not failures)

    def _given_up(self, patched: frozenset[int], excluded: Mapping[int, Failed | None]) -> Iterable[int]:
        """The transactions that leave because of the cap."""
        cap, number = self._cap, self.patched_rounds
        if not self._given_up_in:
            moving, half = len((patched | self._last) & self._left), cap.rounds // 2
            if number % cap.rounds == half:
                self._moving_halfway = moving
            most = 2 * moving > len(self._left)
            fewer = 2 * (self._moving_halfway - moving) >= cap.rounds - half
            if number % cap.rounds or (number < cap.rounds * cap.times and (most or fewer)):
                return ()
            self._given_up_in = number
            return patched
        if number < self._given_up_in + cap.more:
            return ()
        lowest = min([*patched, *excluded])
        return [tid for tid in self._left if tid >= lowest]


def lowest_failures(reports: list[Report]) -> dict[int, Failed]:
    """By TID, the failure that comes first in serial order."""
    found: dict[int, Failed] = {}
    for report in reports:
        for tid, failure in report.failures:
            if tid not in found or failure.place < found[tid].place:
                found[tid] = failure
    return found


def verdicts(failures: dict[int, Failed], patched: frozenset[int]) -> dict[int, Failed | None]:
    """The transactions whose failures are settled, each with its final exception, or None if it is carried."""
    unstable = min(patched, default=None)
    settled = sorted(tid for tid in failures if unstable is None or tid < unstable)
    excluded: dict[int, Failed | None] = dict.fromkeys(settled)
    if settled and not failures[settled[0]].limit:
        excluded[settled[0]] = failures[settled[0]]
    return excluded
