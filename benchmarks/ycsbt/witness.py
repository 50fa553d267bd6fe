"""What one client saw of its requests, as far as the balances depend on it. Never looks at the state.

For each account the sum of what answered transfers have moved; of those without an answer, all there is to know. A
reply that no serial order of transactions could give is noted as a violation at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, Final

from benchmarks.driver.workload import Planned
from benchmarks.ycsbt.bank import InsufficientFunds
from benchmarks.ycsbt.settings import Settings
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
        self._moved: defaultdict[int, int] = defaultdict(int)
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
        moved = self._moved
        error = reply.error
        if error is not None:
            # The accounts of a transfer that did not happen are looked at too: it may have happened in part.
            moved[debtor] += 0
            moved[creditor] += 0
            self._not_committed(planned, error)
            return
        moved[debtor] -= amount
        moved[creditor] += amount
        self._counts["committed"] += 1
        if amount > self._money or not _is_balance(reply.result):
            self._violated(f"{_text(planned)} committed, with {reply.result} left: the credit check failed")

    def unknown(self, planned: Planned) -> None:
        """Takes it that there was no reply."""
        if planned.kind == TRANSFER:
            self._counts["unknown"] += 1
            self._unknown += (planned.key, *planned.arguments)

    def report(self) -> dict[str, Any]:
        """All of it, with flat lists: msgpack's maps have text for keys everywhere."""
        return {
            "moved": [number for pair in self._moved.items() for number in pair],
            "unknown": self._unknown,
            "counts": dict(self._counts),
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
