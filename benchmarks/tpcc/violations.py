"""The violations found by an audit. It keeps a few texts of each rule, because one lost effect can break a rule for
every row.

A text begins with its rule and a colon.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

SHOWN_MAX: Final = 5
"""Violations of one rule that are told; further ones are counted."""


class Violations:
    """The violations of all rules, in the order in which rules were first broken."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._counts: Counter[str] = Counter()

    def add(self, texts: Iterable[str]) -> None:
        """Takes what a rule has yielded."""
        for text in texts:
            rule = text.partition(":")[0]
            self._counts[rule] += 1
            if self._counts[rule] <= SHOWN_MAX:
                self._texts.setdefault(rule, []).append(text)

    def told(self) -> list[str]:
        """All violations, by rule."""
        told = []
        for rule, texts in self._texts.items():
            told += texts
            if (more := self._counts[rule] - SHOWN_MAX) > 0:
                told.append(f"{rule}: and {more} more")
        return told
