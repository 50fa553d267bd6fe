"""The transactions that have ended in a replayed epoch, to tell a difference with the request's function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from styx.values.codec import shown
from styx.worker.epoch import Watch
from styx.worker.given_replies import function_of
from styx.worker.root import RootTransaction


class EndedTransactions(Watch):
    """Observes one worker. `ended` are the transactions of the epoch, until they are forgotten."""

    def __init__(self) -> None:
        self.ended: list[RootTransaction] = []

    def ends(self, roots: list[RootTransaction]) -> None:
        """As `Watch.ends`."""
        self.ended += roots


class EpochTransactions:
    """Those that `watches` have seen in the present epoch."""

    def __init__(self, watches: Sequence[EndedTransactions]) -> None:
        self._watches = watches
        self._by_tid: dict[int, RootTransaction] | None = None

    def forget(self) -> None:
        """The epoch has been compared."""
        self._by_tid = None
        for watch in self._watches:
            watch.ended = []

    def called(self, tid: int) -> tuple[str, Any, str] | None:
        """(operator, key, function) of a transaction's request, None if it is not known."""
        if self._by_tid is None:
            self._by_tid = {root.tid: root for watch in self._watches for root in watch.ended}
        root = self._by_tid.get(tid)
        return None if root is None else function_of(root.payload)

    def named(self, tid: int) -> str:
        """The same in words, empty if it is not known."""
        found = self.called(tid)
        return "" if found is None else f"{found[0]}[{shown(found[1])}], function {found[2]}"
