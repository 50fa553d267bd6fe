"""The last mistakes of an app's functions, in memory: each place in the code once, with how often it was seen.

A mistake is an abort that the app did not mean, an external function's exception, or a warning. Only texts are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from datetime import UTC, datetime
from linecache import getline
from pathlib import Path
from typing import Any, Final

import msgspec

from styx.model.user_frames import Frame

MISTAKES_MAX: Final = 1_000
"""Kept; of more the ones that were not seen for longest are forgotten."""
_KINDS: Final = {"abort": "aborted", "outside": "failed outside", "warning": "warns", "difference": "differs"}
SOURCE_CHARS_MAX: Final = 200
"""Of one source line."""
DECORATOR_LINES_MAX: Final = 50
"""Lines that are looked at for the one that says `def`."""
_DEFINES: Final = ("async def ", "def ")


class Place(msgspec.Struct, frozen=True):
    """A line of code; `own`: of the app, else of the library that raised. `source` is empty if it is not here.

    `cause`, and a `file` that is empty, as in `styx.model.user_frames.Frame`.
    """

    file: str
    line: int
    function: str
    source: str
    own: bool = True
    cause: str = ""

    def lines(self) -> list[str]:
        """For people."""
        lines = [f"  {printable(self.cause)}"] if self.cause else []
        if self.file:
            lines.append(f"  {self}" if self.own else f"  raised in {self}")
        if self.source and self.own:
            lines.append(f"    {self.source}")
        return lines

    def __str__(self) -> str:
        return f"{_short(self.file)}:{self.line} in {self.function}"


class Mistake(msgspec.Struct, kw_only=True):
    """Seen `times`, the last time at `time` (ISO 8601, UTC), by the transaction `tid` on `key`.

    `kind`: `abort`, `outside` (an external function raised), `warning`, `difference` (run again, it ended otherwise).
    What is not known is None. `replayed`: the last one was seen while recorded epochs were run again.
    """

    time: str
    kind: str
    operator: str | None
    key: Any
    function: str | None
    tid: int | None
    epoch: int | None
    type: str
    message: str
    frames: list[Place]
    times: int = 1
    replayed: bool = False

    @property
    def where(self) -> str:
        """The entity and the function, as far as they are known."""
        if self.operator is None:
            return self.function or ""
        return f"{self.operator}/{self.key}.{self.function}"

    def text(self) -> str:
        """For people, with the lines of the app's code."""
        what = _KINDS[self.kind]
        head = f"{self.where} {what}" if self.where else what
        place = ", ".join(
            [f"{name} {value}" for name, value in (("tid", self.tid), ("epoch", self.epoch)) if value is not None]
            + ["replayed"] * self.replayed
        )
        what = f"{head}: {self.type}: {self.message}" if self.message else f"{head}: {self.type}"
        lines = [printable(what) + (f"  ({place})" if place else "")]
        for frame in self.frames:
            lines += frame.lines()
        return "\n".join(lines)


class Mistakes:
    """`total` counts all mistakes since the process started, those without a closer look included."""

    def __init__(self) -> None:
        self.total = 0
        self._by_place: OrderedDict[object, Mistake] = OrderedDict()

    def add(self, mistake: Mistake) -> None:
        """Keeps it, with the ones before of the same place."""
        self.total += 1
        # Of a cause the lines only: its words are others from one request to the next.
        lines = [(frame.file, frame.line, frame.function) for frame in mistake.frames]
        place: tuple[object, ...] = (mistake.kind, mistake.operator, mistake.function, mistake.type, *lines)
        if not mistake.frames:
            place = (*place, mistake.message)
        before = self._by_place.pop(place, None)
        if before is not None:
            mistake.times += before.times
        elif len(self._by_place) >= MISTAKES_MAX:
            self._by_place.popitem(last=False)
        self._by_place[place] = mistake

    def page(self) -> bytes:
        """As JSON: `total`, and `mistakes`, the last seen first."""
        return msgspec.json.encode({"total": self.total, "mistakes": list(reversed(self._by_place.values()))})


def read_page(page: bytes) -> tuple[int, list[Mistake]]:
    """(`total`, the mistakes) of what `Mistakes.page` gave; raises `ValueError`."""
    decoded = msgspec.json.decode(page, type=_Page)
    return decoded.total, decoded.mistakes


class _Page(msgspec.Struct):
    total: int
    mistakes: list[Mistake]


def places(frames: Iterable[Frame]) -> list[Place]:
    """Frames with their source, where it can be read."""
    lines = [(f, _line_of_def(f) if f.defines else f.line) for f in frames]
    return [
        Place(f.file, line, f.function, getline(f.file, line).strip()[:SOURCE_CHARS_MAX], f.own, f.cause)
        for f, line in lines
    ]


def _line_of_def(frame: Frame) -> int:
    """The line that says `def`, behind the decorators."""
    lines = range(frame.line, frame.line + DECORATOR_LINES_MAX)
    return next((n for n in lines if getline(frame.file, n).lstrip().startswith(_DEFINES)), frame.line)


def printable(text: str) -> str:
    """`text` without what would move a terminal's cursor or begin another line: keys and messages come from clients."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def now() -> str:
    """The time as mistakes have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def key_text(key: Any) -> Any:
    """A key as JSON has it: a tuple is a list."""
    return list(key) if isinstance(key, tuple) else key


def _short(file: str) -> str:
    """Below the current directory without it: what a terminal makes a link of."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file
