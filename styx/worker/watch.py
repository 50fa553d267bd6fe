"""An observer of a worker's epochs: it is told of each step. This base class ignores them."""

from __future__ import annotations

from collections.abc import Mapping

from styx.native.interpreted import native
from styx.worker.executor import Executor
from styx.worker.lock_rounds import LockRounds
from styx.worker.root import RootTransaction
from styx.worker.slot import Slot


@native(subclassed=True)
class Watch:
    """`transactions_ended` counts those of all epochs of the generation so far."""

    def begins(self, executor: Executor, transactions_ended: int) -> None:
        """An epoch begins."""

    def sequenced(self, executor: Executor) -> None:
        """The epoch's transactions are there, to be run."""

    def validates(self) -> None:
        """Barrier 1 is passed."""

    def locks(self, locked: int) -> None:
        """The lock phase begins, with so many own transactions."""

    def slice_begins(self) -> None:
        """A slice of the lock phase begins."""

    def slice_ends(self) -> None:
        """It has ended."""

    def ends(self, roots: list[RootTransaction]) -> None:
        """These are about to be answered, in serial order."""

    def committed(self, epoch: int, slots: Mapping[int, Slot], locks: LockRounds | None) -> None:
        """The epoch's writes are all applied; what it was is still there. `locks`: it had a lock phase."""

    def closes(self, executor: Executor, transactions_ended: int) -> None:
        """The open epoch has closed."""

    def abandons(self) -> None:
        """The generation is over, and an epoch that was open counts for nothing."""
