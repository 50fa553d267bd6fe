"""One client's witness: the outcomes of its requests, as far as balances depend on them.

It keeps the sum of the answered transfers of each account, and each transfer without an answer. A reply that no serial
order of transactions could give is noted as a violation at once.
"""

from __future__ import annotations

from array import array
from collections import Counter
from itertools import compress, count
from typing import Any, Final

from benchmarks.driver.workload import Planned
from benchmarks.ycsbt.bank import InsufficientFunds
from benchmarks.ycsbt.settings import AMOUNT_MAX, Settings
from styx.messages import Reply, ReplyError

TRANSFER: Final = "transfer"
READ: Final = "read"
VIOLATIONS_KEPT_MAX: Final = 20
"""Violations that a witness describes; further ones are counted."""


class Witness:
    """Takes one outcome after the other; `report` is plain data for `Ledger`."""

    def __init__(self, settings: Settings) -> None:
        self._money = settings.money
        self._whole = settings.active
        self._whole_sum = settings.active * settings.balance
        # Arrays rather than a dictionary: 9 bytes an account stay in the processor's caches.
        self._moved = array("q", bytes(8 * settings.keys))
        self._touched = bytearray(settings.keys)
        self._committed = 0
        self._unknown: list[int] = []
        self._counts: Counter[str] = Counter()
        self._violations: list[str] = []

    def answered(self, planned: Planned, reply: Reply) -> None:
        """Takes a reply, committed or not."""
        if planned.kind != TRANSFER:
            self._read(planned, reply)
            return
        debtor = planned.key
        creditor, amount = planned.arguments
        # The accounts of a transfer that did not happen are looked at too: it may have happened in part.
        touched = self._touched
        touched[debtor] = touched[creditor] = 1
        error, left = reply.error, reply.result
        if error is not None:
            self._not_committed(planned, error)
            return
        if type(left) is not int or left < 0 or amount > self._money:
            self._violated(f"{_text(planned)} committed, with {left} left: the credit check failed")
            # Of more than there is, an array's item may not hold the sum. The audit fails anyway.
            amount = min(amount, AMOUNT_MAX)
        moved = self._moved
        moved[debtor] -= amount
        moved[creditor] += amount
        self._committed += 1

    def unknown(self, planned: Planned) -> None:
        """Takes a request without a reply."""
        if planned.kind == TRANSFER:
            self._counts["unknown"] += 1
            self._unknown += (planned.key, *planned.arguments)

    def report(self) -> dict[str, Any]:
        """All of it, with flat lists: msgpack's maps have text for keys everywhere."""
        return {
            "moved": [number for pair in compress(zip(count(), self._moved), self._touched) for number in pair],
            "unknown": self._unknown,
            "counts": {**self._counts, "committed": self._committed},
            "violations": self._violations,
        }

    def _not_committed(self, planned: Planned, error: ReplyError) -> None:
        self._counts["not committed"] += 1
        if error.code == "aborted" and (error.type != InsufficientFunds.__name__ or planned.kind != TRANSFER):
            self._violated(f"{_text(planned)} was aborted by {error.type}: {error.message}")

    def _read(self, planned: Planned, reply: Reply) -> None:
        if reply.error is not None:
            self._not_committed(planned, reply.error)
            return
        balances = reply.result if planned.arguments else [reply.result]
        wanted = 1 + sum(map(len, planned.arguments))
        self._counts["reads"] += 1
        if type(balances) is not list or len(balances) != wanted or not all(map(_is_balance, balances)):
            self._violated(f"{_text(planned)} gave {reply.result}")
            return
        if wanted == self._whole:
            self._counts["reads of all"] += 1
            if sum(balances) != self._whole_sum:
                self._violated(f"{_text(planned)} saw {sum(balances)} in all accounts rather than {self._whole_sum}")

    def _violated(self, text: str) -> None:
        self._counts["violations"] += 1
        if len(self._violations) < VIOLATIONS_KEPT_MAX:
            self._violations.append(text)


def _is_balance(value: object) -> bool:
    return type(value) is int and value >= 0


def _text(planned: Planned) -> str:
    return f"{planned.function}{planned.arguments} of account {planned.key}"
