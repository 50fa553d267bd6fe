"""Stopped transactions: the watchdog has interrupted a function of theirs here, and some of their branches run no more
in this epoch.

Branches that come later in serial order cannot change how the transaction ends. So they are skipped from the first
interruption on: a transaction of a thousand endless branches costs the limit of one. Branches that come earlier might
end the transaction in another way, so they run. If one of them does not end either, all branches are skipped, and the
transaction runs again in sequential mode, where the first branch that does not end is the last one that runs.
"""

from __future__ import annotations

from styx.protocol.frames import Failure


class Stopped:
    """By TID; `any` is whether there are some."""

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
