"""Limits on a worker's next epoch: a number of bytes of results, few transactions while many are carried, no new
requests while the log lags, and no transactions at all while the host has halted the worker.

The size of a function's result is estimated by its recent results; a function that has given no large result counts as
small. Without this limit epochs of hundreds of replies of a megabyte could follow each other, and a small request would
wait for all of them.

The more transactions of an epoch are in each other's way, the more often each of them runs before it ends or is
carried. Carried transactions and new ones together would make each epoch larger and slower than the last one.

A line of transactions, each of which needs what the one before has made on another slot, takes a round for each of its
places, and all behind it run again in each: work grows with the square of the epoch. But a long line within one
transaction has as many rounds in a small epoch, so no epoch is made smaller than some transactions for each round.

The epoch's record holds the batch that was formed, so a replay makes no estimate, and no outcome depends on one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from styx.messages import head_of
from styx.model.limits import PATCH_ROUNDS_MAX
from styx.sequencer.sequencer import Recorded
from styx.worker.root import RootTransaction

FIRST_TRANSACTIONS: Final = 32
"""Limit on the transactions of a generation's first epoch, because the size of results is unknown. It doubles with each
further epoch.
"""
CARRIED_SHARE: Final = 16
"""If more than one transaction is carried for so many that end, the epoch was too large."""
ROUND_TRANSACTIONS: Final = 4
"""If a lock phase has many rounds, and more transactions than this end for each of them, the epoch was too large."""
LOG_BYTES_MAX: Final = 16 * 1024 * 1024
"""While more bytes than this wait to be written to the log, no epoch takes new requests."""

_Name = tuple[str, str]


class Pressure:
    """The limits of one worker. An epoch of at most `transactions_max` transactions should have `bytes_max` of results.

    `transactions` is the limit of the next epoch by results, and `settled` by contention. `congested` and `halted` come
    from the last events `LogLags` and `Halted`.
    """

    __slots__ = (
        "_expected",
        "_left",
        "_small",
        "_taken",
        "bytes_max",
        "congested",
        "halted",
        "settled",
        "transactions",
        "transactions_max",
    )

    def __init__(self, bytes_max: int, transactions_max: int) -> None:
        self.bytes_max = bytes_max
        self.congested = self.halted = False
        self.transactions_max = transactions_max
        self.transactions = min(FIRST_TRANSACTIONS, transactions_max)
        self.settled = transactions_max
        # An epoch of small results only stays within its bytes.
        self._small = bytes_max // transactions_max
        self._expected: dict[_Name, int] = {}
        self._left = bytes_max
        self._taken = False

    def room(self, carried: int) -> int:
        """How many new requests the next epoch takes beside so many `carried` transactions.

        At least one, so that what is in no conflict goes on, unless the carried ones fill the epoch by themselves.
        """
        least = 1 if carried < self.transactions else 0
        return max(min(self.transactions, self.settled) - carried, least)

    def contended(self, ended: int, carried: int, idle: bool, rounds: int = 0) -> None:
        """Learns how many transactions of an epoch have ended, how many its lock phase has carried, and how many rounds
        it had behind its first one; `idle`: no request waits.
        """
        # Where each transaction waits for the one before, half as many have half as many rounds, and run half as often.
        too_long = rounds > PATCH_ROUNDS_MAX and ended > rounds * ROUND_TRANSACTIONS
        if too_long or carried * CARRIED_SHARE > ended:
            self.settled = max(1, ended // 2)
        elif idle and not carried:
            self.settled = min(2 * self.settled, self.transactions_max)
        elif ended + carried >= self.settled:
            self.settled = min(self.settled + self.settled // 4 + 1, self.transactions_max)

    def begin(self, carried: Iterable[RootTransaction]) -> Callable[[Recorded], bool] | None:
        """Begins to form an epoch that has the `carried` transactions in any case.

        Returns a function that says whether there is room for one more request, and then reserves it; None if there is
        room for all.
        """
        if not self._expected:
            return None
        self._left = self.bytes_max
        self._taken = False
        for root in carried:
            if root.function is not None:
                self._has_room(_name_of(root))
        return self._takes

    def reserve(self, recorded: Recorded) -> bool:
        """Whether there is room for this request. If not, no other large request gets room in this epoch."""
        taken, left = self._taken, self._left
        fits = self._takes(recorded)
        self._taken, self._left = (taken, left) if fits else (True, 0)
        return fits

    def _takes(self, recorded: Recorded) -> bool:
        head = head_of(recorded[2])
        # A record that cannot be decoded has no result.
        return head is None or self._has_room((head.operator, head.function))

    def _has_room(self, name: _Name) -> bool:
        expected = self._expected.get(name)
        if expected is None:
            return True
        if self._taken and expected > self._left:
            return False
        self._taken = True  # a single larger result is admitted, too
        self._left -= expected
        return True

    def ended(self, roots: Iterable[RootTransaction], n_bytes: int) -> None:
        """Learns from an epoch that has ended: its transactions and the bytes of all their results."""
        if self.transactions < self.transactions_max:
            self.transactions = min(2 * self.transactions, self.transactions_max)
        if n_bytes <= self.bytes_max and not self._expected:
            return
        sums: dict[_Name, tuple[int, int]] = {}
        for root in roots:
            if root.function is not None and root.failure is None and root.result is not None:
                name = _name_of(root)
                count, size = sums.get(name, (0, 0))
                sums[name] = count + 1, size + len(root.result)
        for name, (count, size) in sums.items():
            # The estimate falls by halves at most, so a function with large and small results in turns counts as large.
            expected = max(-(-size // count), self._expected.get(name, 0) // 2)
            if expected > self._small:
                self._expected[name] = expected
            else:
                self._expected.pop(name, None)


def _name_of(root: RootTransaction) -> _Name:
    """The (operator, function) that the request named."""
    assert root.function is not None
    return root.function.operator, root.function.name
