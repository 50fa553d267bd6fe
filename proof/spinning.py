"""Functions that run too long, without taking any time: who runs the programs decides at each such step whether the
watchdog ends it there. Decides nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from styx.errors import FunctionTooLong
from styx.model.context import Context

TEXT: Final = "the program ran too long"
"""Of the error, the same wherever it happens."""


class Interrupted(BaseException):
    """What the watchdog raises in a function that it ends."""


def _ends(context: Context, endless: bool) -> bool:
    return endless


_watchdog: list[Callable[[Context, bool], bool]] = [_ends]


def watched_by(decides: Callable[[Context, bool], bool] | None) -> None:
    """From here on this is asked, with the function's context and whether it would never end by itself; None: only what
    is endless is ended.
    """
    _watchdog[0] = _ends if decides is None else decides


@contextmanager
def as_replied(cut: bool) -> Iterator[None]:
    """Within, what may end by itself is ended if the reply says so; for `check_history`."""
    watched_by(lambda _, endless: endless or cut)
    try:
        yield
    finally:
        watched_by(None)


def spin(context: Context, endless: bool) -> None:
    """Runs too long, or nearly so."""
    if _watchdog[0](context, endless):
        context._doom = FunctionTooLong(TEXT)
        raise Interrupted
