"""Functions that run too long, without taking any time. The simulator decides at each such step whether the watchdog
interrupts the function there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from styx.errors import FunctionTooLong
from styx.model.context import Context

TEXT: Final = "the program ran too long"
"""The text of the error, the same at every place."""


class Interrupted(BaseException):
    """The exception that the watchdog raises in a function to interrupt it."""


def _ends(context: Context, endless: bool) -> bool:
    return endless


_watchdog: list[Callable[[Context, bool], bool]] = [_ends]


def watched_by(decides: Callable[[Context, bool], bool] | None) -> None:
    """Sets the decision: `decides` gets the function's context and whether the function is endless. None: only endless
    functions are interrupted.
    """
    _watchdog[0] = _ends if decides is None else decides


@contextmanager
def as_replied(cut: bool) -> Iterator[None]:
    """While the context is open, a function that may end by itself is interrupted if `cut`, as the reply says. For
    `check_history`.
    """
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
