"""The provider's book: what it has decided about each invoice number, once and for all.

Each question is a line of a file before it is answered, so a provider that is killed and started again answers as
before. Which payments it rejects, and which it never answers, is decided by invoice number and seed alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Annotated, Final, Self

import msgspec
from msgspec import Meta, Struct

from benchmarks.marketplace.charging import rejected
from benchmarks.marketplace.record import Charge

Percent = Annotated[float, Meta(ge=0, le=100)]


class Told(StrEnum):
    """The answer to one question. UNREACHABLE is none."""

    APPROVED = "approved"
    REJECTED = "rejected"
    UNREACHABLE = "unreachable"


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked: to charge `cents`."""

    invoice_number: Annotated[str, Meta(min_length=1, max_length=128)]
    customer_id: int
    cents: Annotated[int, Meta(ge=0)]
    payment_type: str


class Behaviour(Struct, frozen=True, forbid_unknown_fields=True):
    """What the provider does on demand. `rejected` and `unreachable` are percentages of the invoice numbers; `down`: it
    answers nobody; `delay_ms`: each answer comes so much later.
    """

    rejected: Percent = 0.0
    unreachable: Percent = 0.0
    down: bool = False
    delay_ms: Annotated[float, Meta(ge=0, le=60_000)] = 0.0


class Line(Struct, array_like=True, frozen=True):
    """A question in the file, and what was answered."""

    question: Question
    told: Told
    at: datetime


class Kept(Struct):
    """An invoice number's first question that was answered, and how often it came."""

    question: Question
    approved: bool
    at: datetime
    asked: int = 0
    refused: int = 0
    differing: int = 0


_UNREACHABLE_SEED: Final = 1 << 32
"""Added to the seed, so that other invoice numbers are never answered than those that are rejected."""


class Book:
    """A context manager; `file` None keeps nothing beyond this process."""

    def __init__(self, file: Path | None, seed: int = 1, behaviour: Behaviour | None = None) -> None:
        self.behaviour = behaviour or Behaviour()
        self._seed = seed
        self._kept: dict[str, Kept] = {}
        self._turned_away: dict[str, int] = {}
        self._file: int | None = None
        if file is not None:
            self._read(file)
            self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def ask(self, question: Question) -> Told:
        """Decides, writes it down, and gives the answer."""
        told = self._decide(question)
        line = Line(question, told, datetime.now(UTC))
        if self._file is not None:
            os.write(self._file, msgspec.json.encode(line) + b"\n")
        self._take(line)
        return told

    def charges(self) -> Iterator[Charge]:
        """All invoice numbers that were decided about, the oldest first."""
        for kept in list(self._kept.values()):
            question = kept.question
            yield Charge(
                invoice_number=question.invoice_number,
                customer_id=question.customer_id,
                cents=question.cents,
                payment_type=question.payment_type,
                approved=kept.approved,
                at=kept.at,
                asked=kept.asked,
                refused=kept.refused + self._turned_away.get(question.invoice_number, 0),
                differing=kept.differing,
            )

    def _decide(self, question: Question) -> Told:
        behaviour, number = self.behaviour, question.invoice_number
        if behaviour.down or rejected(number, behaviour.unreachable, self._seed + _UNREACHABLE_SEED):
            return Told.UNREACHABLE
        kept = self._kept.get(number)
        if kept is not None:
            return Told.APPROVED if kept.approved else Told.REJECTED
        return Told.REJECTED if rejected(number, behaviour.rejected, self._seed) else Told.APPROVED

    def _take(self, line: Line) -> None:
        question, number = line.question, line.question.invoice_number
        kept = self._kept.get(number)
        if line.told is Told.UNREACHABLE:
            if kept is None:
                self._turned_away[number] = self._turned_away.get(number, 0) + 1
            else:
                kept.refused += 1
            return
        if kept is None:
            kept = self._kept[number] = Kept(question, line.told is Told.APPROVED, line.at)
        kept.asked += 1
        kept.differing += question != kept.question

    def _read(self, file: Path) -> None:
        if not file.exists():
            return
        with file.open("rb") as lines:
            for text in lines:
                # The last line may be cut off: its question was not answered, and will come again.
                if text.endswith(b"\n"):
                    self._take(_line.decode(text))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


_line: Final[msgspec.json.Decoder[Line]] = msgspec.json.Decoder(Line)
