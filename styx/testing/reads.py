"""What was seen of the state from outside the log in a checked history: it must be what the serial execution has at the
end of its epoch.

What mixes two states, sees what was not committed, or misses what its epoch has, is found so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from styx.messages import Request
from styx.model.execution import ErrorTriple, Outcome
from styx.protocol.reads import READ_PHASE
from styx.testing.serial import Place, SerialReference


class Seen(Protocol):
    """Something of the state at the end of `epoch`."""

    @property
    def epoch(self) -> int:
        """The last epoch whose writes are in it."""
        ...

    def check(self, reference: SerialReference) -> None:
        """`reference` has the state at the end of the epoch, and keeps it. Raises `WrongRead`."""
        ...


class ReadSeen(NamedTuple):
    """A read that has ended: `number` is what it had in place of a TID, and it has read at the end of `epoch`."""

    epoch: int
    number: int
    timestamp_us: int
    request: Request
    result: bytes | None
    error: ErrorTriple | None

    def check(self, reference: SerialReference) -> None:
        """As `Seen.check`."""
        place = Place(self.epoch, READ_PHASE)
        expected = reference.run(self.number, self.timestamp_us, self.request, place)
        if reference.read_only is False:
            raise WrongRead(f"a read ran a function that may write: {self}")
        got = Outcome(self.result, self.error)
        if got != expected:
            raise WrongRead(
                f"a read at the end of epoch {self.epoch} is not the serial execution's:\n"
                f"  request  {self.request}\n  expected {expected}\n  got      {got}"
            )


class WrongRead(AssertionError):
    """What was seen is not the serial execution's."""


class ReadChecks:
    """What was seen in a history and has not been checked yet, by its epochs."""

    def __init__(self, reads: Iterable[Seen]) -> None:
        self._left = sorted(reads, key=lambda read: read.epoch, reverse=True)

    def before(self, reference: SerialReference, epoch: int | None) -> None:
        """`reference` has run all before `epoch` (None: everything). Raises `WrongRead`."""
        left = self._left
        while left and (epoch is None or left[-1].epoch < epoch):
            left.pop().check(reference)
