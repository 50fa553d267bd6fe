"""A coroutine's first step, without the `StopIteration` that a coroutine driven by hand raises to return its result.

A coroutine passes its result directly to the coroutine that awaits it; only `send` turns the result into a
`StopIteration`, which costs more than many functions. So the engine drives an endless generator, which awaits one
coroutine after the other. Most functions end in their first step. A coroutine that waits keeps its generator, which
must live as long as the coroutine, and is driven directly from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from styx.native.steps import Steps, steps


class FirstSteps:
    """`take(coroutine)` gives RETURNED, with the coroutine's result in `result[0]`, or what the coroutine yielded, or
    raises what it raised. Who takes the result out leaves None there, lest it is freed within the next function.
    `renew` must be called after anything but RETURNED, before the next one is taken.
    """

    __slots__ = ("_steps", "result", "take")

    def __init__(self) -> None:
        self.result: list[Any] = [None]
        self._begin()

    def _begin(self) -> None:
        self._steps = steps(self.result)
        self.take: Callable[[Coroutine[Any, Any, Any]], Any] = self._steps.send
        next(self._steps)

    def renew(self) -> Steps:
        """Gives the generator used so far: a coroutine that waits needs it to be kept."""
        used = self._steps
        self.result[0] = None
        self._begin()
        return used
