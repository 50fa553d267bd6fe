"""From a worker's notes on ended transactions to log records, and to the mistakes that are kept.

Everything goes through `logging`: mistakes to `styx.mistakes`, with an allowance a second, lines of `ctx.log` to
`styx.functions`, and transactions that are carried again and again to `styx.carried`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

from styx.errors import describe
from styx.model.internal_operator import is_internal
from styx.model.partition_function import PARTITIONS_SUFFIX
from styx.model.user_frames import Frame, UserFrames
from styx.reports.carried import CarriedReports
from styx.reports.dead_calls import DeadCalls
from styx.reports.json_lines import FIELDS
from styx.reports.left_slots import LeftSlots
from styx.reports.mistakes import Mistake, Mistakes, Place, key_text, now, places, printable
from styx.worker.events import RunExternal
from styx.worker.notes import CAPTURES_MAX, AbortNote, LineNote, Notes

SHOWN_PER_SECOND_MAX: Final = 10
"""Mistakes that are logged; further ones are counted, and kept as far as their frames were looked at."""
REFILL_SECONDS: Final = 1.0
"""The interval at which the allowance of exceptions to look at is refilled (`styx.worker.notes.CAPTURES_MAX`)."""

_mistakes_log = logging.getLogger("styx.mistakes")
_functions_log = logging.getLogger("styx.functions")


class FunctionReports:
    """One engine's, or one worker's for all its registrations. `later(seconds, callback)` calls back once."""

    def __init__(self, later: Callable[[float, Callable[[], None]], object]) -> None:
        self.notes = Notes()
        self.mistakes = Mistakes()
        self.carried = CarriedReports()
        self.left = LeftSlots()
        self.dead_calls = DeadCalls()
        self._later = later
        self._frames = UserFrames()
        self._allowance = Allowance(SHOWN_PER_SECOND_MAX)
        self._refilled_s = monotonic()
        self._summary_due = False

    def show_all(self) -> None:
        """Logs every mistake whose frames are looked at: a person is watching."""
        self._allowance = Allowance(CAPTURES_MAX)

    def take(self) -> None:
        """Tells what `notes` has; after each step of the worker that left some."""
        aborts, lines, aborts_left_out, lines_left_out = self.notes.take()
        if self.notes.carried:
            self.carried.take(*self.notes.take_carried())
        now_s = monotonic()
        if now_s - self._refilled_s >= REFILL_SECONDS:
            self._refilled_s = now_s
            self.notes.refill()
        for line in lines:
            _tell_line(line)
        for abort in aborts:
            self._abort(abort)
        if aborts_left_out:
            self.mistakes.total += aborts_left_out
            self._allowance.left_out += aborts_left_out
            self._sum_up()
        if lines_left_out:
            _functions_log.warning("%d lines of ctx.log were left out: too many at once", lines_left_out)

    def external(self, wanted: RunExternal, error: BaseException) -> None:
        """An external function has raised."""
        if self._frames.raised_on_purpose(error):
            return
        kind, message = describe(error)
        function = getattr(wanted.function, "__qualname__", type(wanted.function).__name__)
        self._add(_mistake("outside", (None, None, function), wanted.tid, None, kind, message, self._frames.of(error)))

    def warning(
        self, kind: str, message: str, frames: tuple[Frame, ...], function: tuple[str, Any, str] | None, tid: int | None
    ) -> None:
        """Python warns of something in the app."""
        self._add(_mistake("warning", function or (None, None, None), tid, None, kind, message, frames))

    def difference(
        self, function: tuple[str, Any, str], tid: int, epoch: int, kind: str, text: str, frames: tuple[Frame, ...]
    ) -> None:
        """A transaction came to another end when it was run again."""
        self._add(_mistake("difference", function, tid, epoch, kind, text, frames))

    def replay_difference(
        self, function: tuple[str, Any, str] | None, tid: int, epoch: int | None, text: str | None
    ) -> None:
        """A replay contradicts what was answered; who found it logs it. Without a text it is only counted."""
        if text is None:
            self.mistakes.total += 1
            return
        where = function or (None, None, None)
        self.mistakes.add(_mistake("difference", where, tid, epoch, "ReplayDiffers", text, (), replayed=True))

    def _abort(self, note: AbortNote) -> None:
        where: tuple[str | None, Any, str | None] = (note.operator, note.key, note.function)
        if is_internal(note.operator) and not note.operator.endswith(PARTITIONS_SUFFIX):
            where = (None, None, None)  # a function of the engine's: the message names the row and its table
        self._add(_mistake("abort", where, note.tid, note.epoch, note.type, note.message, note.frames, note.replayed))

    def _add(self, mistake: Mistake) -> None:
        self.mistakes.add(mistake)
        if self._allowance.passes():
            level = logging.WARNING if mistake.kind in ("warning", "difference") else logging.ERROR
            _mistakes_log.log(level, "%s", mistake.text(), extra={FIELDS: _fields(mistake)})
        else:
            self._sum_up()

    def _sum_up(self) -> None:
        """Says within a second how many were left out."""
        if not self._summary_due:
            self._summary_due = True
            self._later(1.0, self._summary)

    def _summary(self) -> None:
        self._summary_due = False
        left_out = self._allowance.take_left_out()
        if left_out:
            text = "%d further mistakes of the app's functions were not shown: styx errors has the last ones"
            _mistakes_log.warning(text, left_out)


def _mistake(
    kind: str,
    function: tuple[str | None, Any, str | None],
    tid: int | None,
    epoch: int | None,
    error: str,
    message: str,
    frames: tuple[Frame, ...],
    replayed: bool = False,
) -> Mistake:
    operator, key, name = function
    return Mistake(
        time=now(),
        kind=kind,
        operator=operator,
        key=key_text(key),
        function=name,
        tid=tid,
        epoch=epoch,
        type=error,
        message=message,
        frames=places(frames),
        replayed=replayed,
    )


def _fields(mistake: Mistake) -> dict[str, Any]:
    fields = {
        "message": f"{mistake.type}: {mistake.message}" if mistake.message else mistake.type,
        "kind": mistake.kind,
        "operator": mistake.operator,
        "key": mistake.key,
        "function": mistake.function,
        "tid": mistake.tid,
        "epoch": mistake.epoch,
        "replaying": mistake.replayed,
        "type": mistake.type,
        "traceback": [line for place in mistake.frames for line in _traceback_lines(place)],
    }
    return {name: value for name, value in fields.items() if value is not None}


def _traceback_lines(place: Place) -> list[str]:
    line = f"{place.file}:{place.line} in {place.function}: {place.source}"
    return [place.cause] * bool(place.cause) + [line] * bool(place.file)


def _tell_line(note: LineNote) -> None:
    line = note.line
    if not _functions_log.isEnabledFor(line.level):
        return
    words = [printable(f"{line.operator}/{line.key}.{line.function}: {line.message}")]
    words += [printable(f"{name}={value!r}") for name, value in line.fields.items()]
    words += ["(aborted)"] * note.aborted + ["(replayed)"] * note.replayed
    fields = {
        "message": line.message,
        "operator": line.operator,
        "key": key_text(line.key),
        "function": line.function,
        "tid": note.tid,
        "epoch": note.epoch,
        "replaying": note.replayed,
        "aborted": note.aborted,
    }
    if line.fields:
        fields["fields"] = line.fields
    _functions_log.log(line.level, "%s", " ".join(words), extra={FIELDS: fields})


class Allowance:
    """Lets `per_second` lines pass in each second, so that a flood of lines fills no disk. `left_out` counts the others
    since `take_left_out`.
    """

    def __init__(self, per_second: int, clock: Callable[[], float] = monotonic) -> None:
        self.left_out = 0
        self._per_second = per_second
        self._clock = clock
        self._began_s = -1.0
        self._passed = 0

    def passes(self) -> bool:
        """Counts one more line; returns whether it is within the limit."""
        now_s = self._clock()
        if self._began_s < 0 or now_s - self._began_s >= 1:
            self._began_s, self._passed = now_s, 0
        if self._passed >= self._per_second:
            self.left_out += 1
            return False
        self._passed += 1
        return True

    def take_left_out(self) -> int:
        """The number of lines that did not pass since the last call of this."""
        left_out, self.left_out = self.left_out, 0
        return left_out
