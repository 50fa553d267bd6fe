"""Python's warnings, shown with the lines of the app's code that led to them, as mistakes are.

Warnings of libraries about each other are left to Python.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from styx.model.user_frames import Frame, UserFrames
from styx.reports.current_function import Running, running
from styx.reports.function_reports import FunctionReports
from styx.values.codec import shown

OTHERS_MAX: Final = 1_000
"""Places in libraries whose warnings are shown."""
_CREATED_AT: Final = "\nCoroutine created at (most recent call last)\n"
_NOT_FOR_USERS: Final = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


@contextmanager
def warnings_shown(reports: FunctionReports, *, origins: bool) -> Iterator[None]:
    """Reports warnings as mistakes inside the block, each time they come; belongs to the running loop.

    `origins`: a warning of a coroutine that was never awaited says where it was made, which makes coroutines dearer.
    """
    loop, thread = asyncio.get_running_loop(), threading.get_ident()
    frames = UserFrames()
    others: set[tuple[type[Warning], str, int]] = set()
    before = warnings.showwarning
    depth = sys.get_coroutine_origin_tracking_depth()

    def tell(kind: str, text: str, at: tuple[Frame, ...], found: Running | None) -> None:
        function = None if found is None else (found.operator, found.key, found.function)
        reports.warning(kind, text, at, function, None if found is None else found.tid)

    def show(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        text, made_at = _origin(str(message))
        caller = sys._getframe(1)
        at = _own(made_at, frames) or frames.of_stack(caller)
        if not at and frames.is_own_file(filename):
            at = (Frame(filename, lineno, "the module"),)
        if not at or file is not None:
            # Each place once, as Python does by itself.
            place = (category, filename, lineno)
            if not issubclass(category, _NOT_FOR_USERS) and place not in others and len(others) < OTHERS_MAX:
                others.add(place)
                before(message, category, filename, lineno, file, line)
            return
        told = (category.__name__, text if len(text) < 1000 else shown(text), at, running(caller))
        if threading.get_ident() == thread:
            tell(*told)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(tell, *told)

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("always")
        if origins:
            sys.set_coroutine_origin_tracking_depth(max(depth, 1))
        warnings.showwarning = show
        try:
            yield
        finally:
            sys.set_coroutine_origin_tracking_depth(depth)


def _origin(text: str) -> tuple[str, list[Frame]]:
    """Python's text about a forgotten coroutine, split into the message and the frames that made the coroutine."""
    text, _, made_at = text.partition(_CREATED_AT)
    found = []
    for line in made_at.splitlines():
        # `  File "buggy.py", line 10, in transfer`
        file, _, rest = line.strip().removeprefix('File "').partition('", line ')
        number, _, function = rest.partition(", in ")
        if number.isdecimal():
            found.append(Frame(file, int(number), function))
    return text, found


def _own(found: list[Frame], frames: UserFrames) -> tuple[Frame, ...]:
    return tuple(frame for frame in found if frames.is_own_file(frame.file))
