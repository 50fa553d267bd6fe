"""The demo's progress display: lines, and on a terminal a bar below them."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Final, Protocol, Self

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress, TaskID

LINE_SECONDS: Final = 1.0
"""The time between two lines of progress in a pipe or a file."""
_WIDTH: Final = 10


class Display(Protocol):
    """A context manager. A line of `step` stays; a line of `progress`, a fraction up to 1, is replaced."""

    def step(self, name: str, text: str) -> None: ...
    def progress(self, fraction: float, text: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


def display() -> Display:
    """The live display on a terminal; plain lines in a pipe, on a dumb terminal, and where NO_COLOR is set."""
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        return LiveDisplay()
    return PlainDisplay()


class PlainDisplay:
    """Lines only, each written at once."""

    def __init__(self) -> None:
        self._next_line_s = time.monotonic() + LINE_SECONDS

    def step(self, name: str, text: str) -> None:
        print(f"{name:<{_WIDTH}} {text}", flush=True)

    def progress(self, fraction: float, text: str) -> None:
        now_s = time.monotonic()
        if now_s >= self._next_line_s:
            self._next_line_s = now_s + LINE_SECONDS
            print(f"{'':<{_WIDTH}} {fraction:4.0%}  {text}", flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


class LiveDisplay:
    """Lines above a bar, with colours."""

    _STYLES: Final = {"crash": "bold red", "ok": "bold green", "WRONG": "bold red"}

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        self._progress: Progress = Progress(
            BarColumn(30), TextColumn("{task.percentage:3.0f}%"), TextColumn("{task.description}"), transient=True
        )
        self._bar: TaskID | None = None

    def step(self, name: str, text: str) -> None:
        from rich.text import Text

        line = Text.assemble((f"{name:<{_WIDTH}} ", self._STYLES.get(name, "bold cyan")), text)
        self._progress.console.print(line, soft_wrap=True)

    def progress(self, fraction: float, text: str) -> None:
        if self._bar is None:
            self._bar = self._progress.add_task("", total=1.0)
        self._progress.update(self._bar, completed=fraction, description=text)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()
