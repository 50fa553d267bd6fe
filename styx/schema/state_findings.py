"""The findings of a check of stored state against new code, and their text for people. They travel between processes.

All offenders are counted and the first few are described: a million entities that do not fit are one mistake.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from styx.model.table_names import holds_agenda, holds_rows
from styx.schema.parents import Needed, There, missing
from styx.schema.unique_values import Values, same_values

OFFENDERS_SHOWN: Final = 10
"""Offenders that are described in words; further ones are only counted."""
_ADVICE: Final = (
    "Give every new field a default, or convert what is stored with Operator(..., migrate=): "
    'see "Changing the code, and the state\'s type" in docs/programming.md'
)
_ADVICE_OF_ROWS: Final = (
    "Give every new column a default, convert rows with operator.table(..., migrate=), or mend them with a function of "
    "the version that runs: see docs/change-a-table.md"
)
_ADVICE_OF_CALLS: Final = (
    "Calls for later are made by the version that runs when they are due. Keep what they call until they are made, or "
    'withdraw them with ctx.cancel: see "Calls for later" in docs/programming.md'
)


class StateFindings(msgspec.Struct, array_like=True, frozen=True):
    """`checked` entries, of which `offenders` do not fit; `first` has words for the first of those.

    `migrated` counts, by operator or table, the entries that its `migrate=` converts. `dropping` counts those that fit,
    but hold something that the new type does not have; `dropped` has an example of it by operator or table. `rows` of
    the checked entries are rows; `discarded` counts, by table, the rows that the new version drops. `values` are
    those of unique app-wide indexes that are to be compared with other workers'; `needed` are the parents to which rows
    refer by new references, and `there` those that exist.
    """

    checked: int = 0
    offenders: int = 0
    first: list[str] = []
    migrated: dict[str, int] = {}
    dropping: dict[str, int] = {}
    dropped: dict[str, str] = {}
    rows: int = 0
    discarded: dict[str, int] = {}
    values: Values = {}
    needed: Needed = {}
    there: There = {}

    def refusal(self) -> str | None:
        """Why the code may not run on this state; None if it may."""
        if not self.offenders:
            return None
        more = self.offenders - len(self.first)
        counts = f"{self.offenders:,} of {self.checked:,} stored {self._kind} do not fit the new version"
        rest = [f"  … and {more:,} more"] if more else []
        names = [line.partition("[")[0] for line in self.first]
        of_calls = [name for name in names if holds_agenda(name)]
        of_rows = [name for name in names if holds_rows(name)]
        advice = [_ADVICE] if len(of_calls) + len(of_rows) < len(names) else []
        advice += [_ADVICE_OF_ROWS] if of_rows else []
        advice += [_ADVICE_OF_CALLS] if of_calls else []
        return "\n".join([f"{counts}:", *(f"  {line}" for line in self.first), *rest, *advice])

    def notes(self) -> list[str]:
        """Facts for an operator although the state fits, a line each."""
        lines = [f"stored {self._kind} checked: {self.checked:,}; all of them fit"] if self.checked else []
        lines += [f"{_kind(name)} {name!r}: converted by migrate=: {count:,}" for name, count in self.migrated.items()]
        lines += [f"table {name!r}: rows that are dropped: {count:,}" for name, count in self.discarded.items()]
        for name, count in self.dropping.items():
            lines.append(
                f"{_kind(name)} {name!r}: with a part that its {_type(name)} does not have, and that is lost when they "
                f"are put next: {count:,}, such as {self.dropped[name]}"
            )
        return lines

    @property
    def _kind(self) -> str:
        kinds = ["entities"]
        kinds += ["rows"] if self.rows else []
        kinds += ["calls for later"] if any(holds_agenda(line.partition("[")[0]) for line in self.first) else []
        return " and ".join([", ".join(kinds[:-1]), kinds[-1]] if kinds[1:] else kinds)


def _type(name: str) -> str:
    return "row type" if holds_rows(name) else "state_type"


def _kind(name: str) -> str:
    return "table" if holds_rows(name) else "operator"


def together(parts: Iterable[StateFindings]) -> StateFindings:
    """The findings of several checks of different entities as one; of the first offenders, the first part's first."""
    parts = list(parts)
    checked = offenders = rows = 0
    first: list[str] = []
    migrated: dict[str, int] = {}
    dropping: dict[str, int] = {}
    dropped: dict[str, str] = {}
    discarded: dict[str, int] = {}
    for part in parts:
        checked += part.checked
        offenders += part.offenders
        rows += part.rows
        first += part.first
        for total, counts in ((migrated, part.migrated), (dropping, part.dropping), (discarded, part.discarded)):
            for name, count in counts.items():
                total[name] = total.get(name, 0) + count
        dropped = {**part.dropped, **dropped}
    between = same_values(part.values for part in parts) + missing(parts)
    offenders += len(between)
    first += between
    return StateFindings(checked, offenders, first[:OFFENDERS_SHOWN], migrated, dropping, dropped, rows, discarded)
