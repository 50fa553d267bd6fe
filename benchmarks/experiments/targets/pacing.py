"""The time between the beginnings of epochs that gives them the same size as the epochs of another deployment. It is
corrected after each window, because both drift with the machine.
"""

from __future__ import annotations

from collections.abc import Callable


class Pacing:
    """`space` is told the seconds, first those given; sizes are transactions an epoch, 0 where it is not known."""

    def __init__(self, space: Callable[[float], None], seconds: float) -> None:
        self._space = space
        self._seconds = seconds
        self._wanted = 0.0
        space(seconds)

    def want(self, size: float) -> None:
        """What the others' last epochs held."""
        self._wanted = size

    def had(self, size: float) -> None:
        """What the epochs that are spaced held."""
        if size and self._wanted:
            self._seconds *= self._wanted / size
            self._space(self._seconds)
