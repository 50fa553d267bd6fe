"""The pairs of a chunk of rows that cannot be loaded, named in one error: by place in the chunk, entity and row.

A chunk is one transaction, and one such pair ends it; to name several spares the sender as many attempts. The sender
knows where the pairs of the chunk stand in the whole load, and gives those numbers instead (`renumbered`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from styx.errors import CheckViolation, InTransactionError, describe

OFFENDERS_NAMED_MAX: Final = 10
"""Pairs that are named; those behind them are not looked at."""
REASON_CHARS_MAX: Final = 300
"""Of the reason of one pair: ten of them fit an error's message."""
_PLACE: Final = re.compile(r"^(?P<indent>  )?+pair (?P<place>[0-9]{1,9}+) of its chunk: ", re.MULTILINE)


class Offenders:
    """Pairs of one chunk, in their order."""

    __slots__ = ("_errors", "_lines")

    def __init__(self) -> None:
        self._errors: list[Exception | None] = []
        self._lines: list[str] = []

    @property
    def full(self) -> bool:
        """No further pair will be named."""
        return len(self._lines) >= OFFENDERS_NAMED_MAX

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, place: int, name: str, why: Exception | str) -> None:
        """Takes the pair at `place`, counted from 0; `name` is its row's, or its entity's."""
        if isinstance(why, str):
            error, reason = None, why
        else:
            error, (kind, message) = why, describe(why)
            # The first one's class is the error's own, if the engine has it.
            own = isinstance(why, InTransactionError) and not self._lines
            reason = message if own else f"{kind}: {message}"
        self._errors.append(error)
        self._lines.append(f"pair {place} of its chunk: {name} cannot be loaded: {_cut(reason)}")

    def error(self, kind: type[InTransactionError] | None = None) -> InTransactionError:
        """The error of the chunk: of class `kind`, or of the first pair's; for a class of the app's, `CheckViolation`,
        since a check is what has raised it.
        """
        rest = self._lines[1:] + (["… the pairs behind it were not looked at"] if self.full else [])
        message = "\n  ".join([self._lines[0], *rest])
        first = self._errors[0]
        if kind is None:
            kind = type(first) if isinstance(first, InTransactionError) else CheckViolation
        return kind(message)


def renumbered(message: str, indices: Sequence[int]) -> tuple[str, int | None]:
    """A chunk's message with the places in the whole load, of which `indices` has one for each pair of the chunk; and
    the first one's place in the chunk, None if the message names none.
    """
    first = _PLACE.match(message)
    if first is None or int(first["place"]) >= len(indices):
        return message, None

    def replaced(found: re.Match[str]) -> str:
        place = int(found["place"])
        if not found["indent"] or place >= len(indices):
            return ""
        return f"  pair {indices[place]}: "

    return _PLACE.sub(replaced, message), int(first["place"])


def _cut(reason: str) -> str:
    return reason if len(reason) <= REASON_CHARS_MAX else reason[:REASON_CHARS_MAX] + "…"
