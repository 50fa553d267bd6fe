"""The violations found by the audit, by rule. The first violation of a rule is kept, and further ones are counted."""

from __future__ import annotations

from collections import Counter
from typing import Final

ANSWERED: Final = "answered"
REAL_TIME: Final = "real time"
REPLIES_KEPT: Final = "replies kept"
SERIAL_ORDER: Final = "serial order"
BALANCES: Final = "balances"
MONEY: Final = "money"


class Findings:
    """Empty as long as the audit holds."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._number: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return bool(self._first)

    def violated(self, rule: str, text: str) -> None:
        """Adds a violation."""
        self._first.setdefault(rule, text)
        self._number[rule] += 1

    def of(self, rule: str) -> str | None:
        """The violation of a rule; None if there is none."""
        text, more = self._first.get(rule), self._number[rule] - 1
        return f"{text}; and {more:,} more" if text is not None and more else text
