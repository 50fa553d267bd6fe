"""Lets the watchdog interrupt code that a check of stored state runs and that does not end: types, `migrate=`, keys.

The check decides what an interruption means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from styx.model.app import App
from styx.model.entity_read import read_function
from styx.model.function_spec import FunctionSpec
from styx.model.limits import Limits
from styx.model.operator import Operator
from styx.worker.running import Running
from styx.worker.standing import Standing

T = TypeVar("T")


class StateGuard:
    """`running` is what the watchdog looks at. What runs here has no part in any transaction."""

    def __init__(self, app: App, n_slots: int, limits: Limits, running: Running) -> None:
        self._running = running
        self._standing = Standing(app, limits, n_slots, lambda: running)
        self._names: dict[tuple[str, str], FunctionSpec] = {}

    def run(self, operator: Operator, what: str, key: Any, call: Callable[[Any], T], argument: Any) -> T:
        """As `Guard.run`; who looks is told `what` runs where a function's name would stand."""
        name = self._names.get((operator.name, what))
        if name is None:
            name = self._names[operator.name, what] = operator.spec(what, read_function(operator).func)
        running = self._running
        running.harmless = True
        try:
            return self._standing.run(name, key, call, argument)
        finally:
            running.harmless = False
