"""An app's `partition_key`, run outside of functions: the watchdog names it and interrupts it like a function.

It runs for a request that is not in an epoch yet. If it is interrupted, the request is refused. If that request is in
the log, the refusal must be recorded, because time has decided it.
"""

from __future__ import annotations

from collections.abc import Callable

from styx.model.app import App
from styx.model.function_spec import FunctionSpec
from styx.model.limits import Limits
from styx.model.partitioning import Key
from styx.worker.running import Running
from styx.worker.standing import Standing


class Placing:
    """Of one app; what the watchdog knows of is the function that the request is for."""

    def __init__(self, app: App, limits: Limits, n_slots: int, running: Callable[[], Running]) -> None:
        self._n_slots = n_slots
        self._standing = Standing(app, limits, n_slots, running)

    def slot_of(self, function: FunctionSpec, key: Key) -> int:
        """Of a checked key. Raises `BadKey`, and `FunctionTooLong` where the watchdog ended it."""
        if self._standing.busy:
            return function.keys.slot_of(key, self._n_slots)
        return self._standing.run(function, key, lambda key: function.keys.slot_of(key, self._n_slots), key)
