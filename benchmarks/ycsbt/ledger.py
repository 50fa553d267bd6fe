"""The balance that each account must have after a run, by the witnesses of all clients, and the differences from the
balances found.

A transfer without an answer has happened as a whole or not at all: it gives its two accounts a range, and leaves their
sum certain.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from benchmarks.ycsbt.settings import Settings

SHOWN_MAX: Final = 20
"""Accounts whose balance is wrong that are named; further ones are counted."""

Balance = int | str
"""A balance that was read, or why there is none."""


class Ledger:
    """The sum of the reports of all witnesses. Without any, only the sum of all balances is known.

    `counts` are of requests: `committed` and `unknown` transfers, `reads`, `reads of all` and `not committed` of both.
    """

    def __init__(self, settings: Settings, reports: Iterable[Mapping[str, Any]]) -> None:
        self._balance = settings.balance
        self._money = settings.money
        self._moved: defaultdict[int, int] = defaultdict(int)
        self._less: Counter[int] = Counter()
        self._more: Counter[int] = Counter()
        self._noted: list[str] = []
        self.counts: Counter[str] = Counter()
        self.witnessed = False
        for report in reports:
            self.witnessed = True
            self._add(report)

    def _add(self, report: Mapping[str, Any]) -> None:
        moved, unknown = report["moved"], report["unknown"]
        for key, amount in zip(moved[::2], moved[1::2], strict=True):
            self._moved[key] += amount
        for debtor, creditor, amount in zip(unknown[::3], unknown[1::3], unknown[2::3], strict=True):
            self._less[debtor] += amount
            self._more[creditor] += amount
        self.counts.update(report["counts"])
        self._noted += report["violations"]

    @property
    def touched(self) -> list[int]:
        """The accounts of all transfers, whatever became of them."""
        return sorted({*self._moved, *self._less, *self._more})

    @property
    def uncertain_debtors(self) -> list[int]:
        """The accounts that transfers without an answer began at."""
        return sorted(self._less)

    def range_of(self, key: int) -> tuple[int, int]:
        """The least and the largest balance that this account can have."""
        if not self.witnessed:
            return 0, self._money
        certain = self._balance + self._moved.get(key, 0)
        return max(certain - self._less[key], 0), certain + self._more[key]

    def violations(self, balances: Mapping[int, Balance]) -> list[str]:
        """What is wrong with the balances found, which must be those of all touched accounts, and may be of more."""
        found = [*self._noted]
        more = self.counts["violations"] - len(self._noted)
        if more > 0:
            found.append(f"and {more} replies more that no serial order can give")
        wrong = [text for key, balance in balances.items() if (text := self._fault(key, balance))]
        found += wrong[:SHOWN_MAX]
        if len(wrong) > SHOWN_MAX:
            found.append(f"and {len(wrong) - SHOWN_MAX} more accounts of {len(balances)} read")
        total = sum(balance for balance in balances.values() if isinstance(balance, int))
        expected = self._balance * len(balances)
        if total != expected:
            found.append(
                f"the {len(balances)} accounts read have {total} together rather than {expected}: "
                f"{abs(total - expected)} were {'made' if total > expected else 'lost'}"
            )
        return found

    def _fault(self, key: int, balance: Balance) -> str:
        if isinstance(balance, str):
            return f"account {key}: {balance}"
        least, most = self.range_of(key)
        if least <= balance <= most:
            return ""
        expected = f"{least}" if least == most else f"{least} to {most}"
        return f"account {key} has {balance} rather than {expected}"
