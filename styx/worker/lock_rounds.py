"""The lock phase of a worker's slots: its rounds, the patches between them, what the coordinator has decided after each
round, and how it ends.

If the watchdog interrupts a function of a transaction, the lock phase begins anew without the transaction: the results
of rounds with it are void, because a replay will not run it there. Paper section 6.2.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from styx.model.limits import PATCH_ROUNDS_MAX
from styx.protocol.frames import Failure, Patch
from styx.protocol.messages import LockDecision
from styx.worker.changed_call import ChangedCall, changed_call
from styx.worker.footprint import Footprint
from styx.worker.invocation import Running
from styx.worker.lock_phase import NOT_RUN, Outcome, SlotLockPhase
from styx.worker.notes import Notes
from styx.worker.root import RootTransaction
from styx.worker.slot import Slot


class LockRounds:
    """The rounds of one lock phase; `number` is the present round's. The transactions of `locked` that are also in
    `unlocked` take no part: they are carried into the next epoch.

    `patched` are the transactions that sent patches in this round. Those for slots of other workers are in `outgoing`.
    `crowded` counts those of the `carried` that could have ended here with fewer beside them.
    """

    def __init__(
        self,
        slots: Mapping[int, Slot],
        locked: frozenset[int],
        large: set[int],
        running: Running,
        unlocked: Iterable[int],
        notes: Notes | None,
        newcomer: Callable[[Patch], Footprint],
    ) -> None:
        self.number = 0
        self.carried: list[RootTransaction] = []
        self.crowded = 0
        self.patched: list[int] = []
        self.outgoing: list[Patch] = []
        self._newcomer = newcomer
        self._incoming: dict[int, list[Patch]] = {}
        self._arrived: dict[int, int] = {}
        self._notes = notes
        self._slots = slots
        self._locked = locked
        self._large = large
        self._running = running
        self._unlocked = set(unlocked)
        self._begin()

    def _begin(self) -> None:
        self._verdicts: dict[int, Failure | None] = dict.fromkeys(self._unlocked)
        self._cut: set[int] = set()
        self._locks = {
            index: SlotLockPhase(
                slot,
                self._locked,
                self._large,
                self._running,
                self._unlocked,
                self._notes,
                self._cut,
                self._newcomer,
            )
            for index, slot in self._slots.items()
        }
        for lock in self._locks.values():
            lock.number = self.number

    def run(self, invocations: int) -> bool:
        """Runs about `invocations` invocations of the round. Returns whether the round is over on this worker."""
        for lock in self._locks.values():
            invocations = lock.run(invocations)
            if not lock.done:
                return False
        self._collect()
        return True

    def _collect(self) -> None:
        """Gathers the patches of a round that is over here. They take effect in the next round, on every slot."""
        patched = set[int]()
        self.outgoing = []
        for lock in self._locks.values():
            for patch in lock.patches:
                patched.add(patch.tid)
                if patch.slot in self._locks:
                    self._incoming.setdefault(self.number, []).append(patch)
                else:
                    self.outgoing.append(patch)
        self.patched = sorted(patched)

    def arrive(self, patch: Patch) -> None:
        """Takes a patch from another worker."""
        self._incoming.setdefault(patch.round, []).append(patch)
        self._arrived[patch.round] = self._arrived.get(patch.round, 0) + 1

    def has_arrived(self, number: int, count: int) -> bool:
        """Whether all `count` patches of a round from other workers are here."""
        return self._arrived.get(number, 0) >= count

    def failures(self) -> list[tuple[int, Failure]]:
        """The round's failures, by TID, of transactions that other slots take part in."""
        return [failure for lock in self._locks.values() for failure in lock.failures()]

    def cut(self) -> list[int]:
        """TIDs of transactions with a function that the watchdog interrupted in this round."""
        return sorted(self._cut)

    def decided(self, decision: LockDecision) -> None:
        """Begins the next round without the transactions that the coordinator has excluded."""
        self.number = decision.round + 1
        patches = self._incoming.pop(decision.round, [])
        if decision.anew:
            self._unlocked.update(tid for tid, _ in decision.excluded)
            self._begin()
            return
        self._verdicts.update(decision.excluded)
        by_slot: dict[int, list[Patch]] = {}
        for patch in patches:
            by_slot.setdefault(patch.slot, []).append(patch)
        for index, lock in self._locks.items():
            lock.next_round(self.number, self._verdicts, by_slot.get(index, ()))

    def written(self, slot: int) -> Collection[tuple[str, Any]]:
        """(operator, key) of each entity that the last round wrote on `slot`."""
        return self._locks[slot].written

    def outcomes(self, slot: int) -> Mapping[int, Outcome]:
        """How the part of each transaction on `slot` ended in its last run, by TID."""
        return self._locks[slot].outcomes

    def commit(self) -> None:
        """Commits the writes of the last round."""
        for lock in self._locks.values():
            lock.commit()
            if self._notes is not None:
                self._notes.at_lock_end(lock.ended(self._verdicts))

    def end(self, root: RootTransaction) -> bool:
        """Ends a transaction: it is committed, or has its final exception (True), or joins the `carried` (False)."""
        outcome = self._locks[root.slot].outcomes.get(root.tid, NOT_RUN)
        failure = self._verdicts.get(root.tid, outcome.failure)
        carried = root.tid in self._verdicts and failure is None
        if carried or (failure is not None and failure.deviation):
            # A contended function that aborts in what it calls, or makes an external call, is carried from its first
            # run however many run beside it; but many rounds cost all of them the more, the more there are.
            self.crowded += self.number > PATCH_ROUNDS_MAX or not _is_first_run(root)
            root.sequential |= root.collided
            root.carried += 1
            self.carried.append(root)
            if self._notes is not None:
                self._notes.carry(root, self._changed)
            return False
        root.failure = failure
        root.result = outcome.result
        return True

    def _changed(self, tid: int) -> ChangedCall | None:
        """The first call of a carried transaction that changed on one of this worker's slots, in serial order."""
        first: Failure | None = None
        at: Footprint | None = None
        patched: list[tuple[bytes, int]] = []
        for index, lock in self._locks.items():
            footprint = self._slots[index].footprints.get(tid)
            if footprint is None:
                continue
            path = lock.changed(tid)
            if path is not None:
                patched.append((path, index))
            failure = lock.outcomes.get(tid, NOT_RUN).failure
            if failure is not None and failure.deviation and (first is None or failure.place < first.place):
                first, at = failure, footprint
        if patched:
            path, index = min(patched)
            return changed_call(self._slots[index].footprints[tid], path)
        return None if first is None or at is None else changed_call(at, first.position)


def _is_first_run(root: RootTransaction) -> bool:
    """Whether the transaction was left to the lock phase (`Executor.begin`)."""
    return root.function is not None and root.function.contended and not root.sequential
