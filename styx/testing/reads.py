"""Reads outside the log in a checked history: each must give what the serial execution gives at the end of its epoch.

A read that mixes two states, sees what was not committed, or misses what its epoch has, is found so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from styx.messages import Request
from styx.model.execution import ErrorTriple, Outcome
from styx.protocol.reads import READ_PHASE
from styx.testing.serial import Place, SerialReference


class ReadSeen(NamedTuple):
    """A read that has ended: `number` is what it had in place of a TID, and it has read at the end of `epoch`."""

    epoch: int
    number: int
    timestamp_us: int
    request: Request
    result: bytes | None
    error: ErrorTriple | None


class WrongRead(AssertionError):
    """A read that is not the serial execution's."""


class ReadChecks:
    """The reads of a history that have not been checked yet, by their epochs."""

    def __init__(self, reads: Iterable[ReadSeen]) -> None:
        self._left = sorted(reads, key=lambda read: read.epoch, reverse=True)

    def before(self, reference: SerialReference, epoch: int | None) -> None:
        """`reference` has run all before `epoch` (None: everything). Raises `WrongRead`."""
        left = self._left
        while left and (epoch is None or left[-1].epoch < epoch):
            self._check(reference, left.pop())

    def _check(self, reference: SerialReference, read: ReadSeen) -> None:
        place = Place(read.epoch, READ_PHASE)
        expected = reference.run(read.number, read.timestamp_us, read.request, place)
        if reference.read_only is False:
            raise WrongRead(f"a read ran a function that may write: {read}")
        got = Outcome(read.result, read.error)
        if got != expected:
            raise WrongRead(
                f"a read at the end of epoch {read.epoch} is not the serial execution's:\n"
                f"  request  {read.request}\n  expected {expected}\n  got      {got}"
            )
