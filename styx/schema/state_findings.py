"""The findings of a check of stored state against new code, and their text for people. They travel between processes.

All offenders are counted and the first few are described: a million entities that do not fit are one mistake.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

OFFENDERS_SHOWN: Final = 10
"""Offenders that are described in words; further ones are only counted."""
_ADVICE: Final = (
    "Give every new field a default, or convert what is stored with Operator(..., migrate=): "
    'see "Changing the code, and the state\'s type" in docs/programming.md'
)


class StateFindings(msgspec.Struct, array_like=True, frozen=True):
    """`checked` entities, of which `offenders` do not fit; `first` has words for the first of those.

    `migrated` counts, by operator, the entities that its `migrate=` converts. `dropping` counts those that fit, but
    hold something that the new type does not have; `dropped` has an example of it by operator.
    """

    checked: int = 0
    offenders: int = 0
    first: list[str] = []
    migrated: dict[str, int] = {}
    dropping: dict[str, int] = {}
    dropped: dict[str, str] = {}

    def refusal(self) -> str | None:
        """Why the code may not run on this state; None if it may."""
        if not self.offenders:
            return None
        more = self.offenders - len(self.first)
        counts = f"{self.offenders:,} of {self.checked:,} stored entities do not fit the new version"
        rest = [f"  … and {more:,} more"] if more else []
        return "\n".join([f"{counts}:", *(f"  {line}" for line in self.first), *rest, _ADVICE])

    def notes(self) -> list[str]:
        """Facts for an operator although the state fits, a line each."""
        lines = [f"stored entities checked: {self.checked:,}; all of them fit"] if self.checked else []
        lines += [f"operator {name!r}: converted by migrate=: {count:,}" for name, count in self.migrated.items()]
        for name, count in self.dropping.items():
            lines.append(
                f"operator {name!r}: with a part that its state_type does not have, and that is lost when they are put "
                f"next: {count:,}, such as {self.dropped[name]}"
            )
        return lines


def together(parts: Iterable[StateFindings]) -> StateFindings:
    """The findings of several checks of different entities as one; of the first offenders, the first part's first."""
    checked = offenders = 0
    first: list[str] = []
    migrated: dict[str, int] = {}
    dropping: dict[str, int] = {}
    dropped: dict[str, str] = {}
    for part in parts:
        checked += part.checked
        offenders += part.offenders
        first += part.first
        for total, counts in ((migrated, part.migrated), (dropping, part.dropping)):
            for name, count in counts.items():
                total[name] = total.get(name, 0) + count
        dropped = {**part.dropped, **dropped}
    return StateFindings(checked, offenders, first[:OFFENDERS_SHOWN], migrated, dropping, dropped)
