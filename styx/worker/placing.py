"""An app's `partition_key`, run where no function runs: the watchdog names it and ends it as it does functions.

What it is run for is a request that is not in an epoch yet. If it is ended, the request is refused; if the request is
in the log, that has to be recorded, since time has decided it. Decides nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from styx.app import App
from styx.errors import FunctionTooLong
from styx.function_spec import FunctionSpec
from styx.limits import Limits
from styx.partitioning import Key
from styx.transaction_limits import transaction_limits
from styx.worker.footprint import EntityCell, Footprint
from styx.worker.invocation import Invocation
from styx.worker.running import Running


class Placing:
    """Of one app. There is one record of what runs, which stands for the function that the request is for.

    `running` gives what the present generation's executor and the watchdog share.
    """

    def __init__(self, app: App, limits: Limits, n_slots: int, running: Callable[[], Running]) -> None:
        self._n_slots = n_slots
        self._running = running
        self._footprint = Footprint(app, transaction_limits(limits), n_slots, -1, 0, 0, 0, False, None)
        self._stands: Invocation | None = None

    def slot_of(self, function: FunctionSpec, key: Key) -> int:
        """Of a checked key. Raises `BadKey`, and `FunctionTooLong` where the watchdog ended it."""
        running = self._running()
        if running.invocation is not None:  # a function asks, and is what is watched
            return function.keys.slot_of(key, self._n_slots)
        stands = self._standing_for(function, key)
        running.resumed += 1
        slot, raised = -1, None
        try:
            running.invocation = stands
            slot = function.keys.slot_of(key, self._n_slots)
            running.invocation = None
        except BaseException as error:  # noqa: BLE001 - raised again below, if it is no interruption
            running.invocation = None
            raised = error
        doom, stands._doom = stands._doom, None
        if doom is not None:
            try:
                running.withdraw()
            except BaseException:  # noqa: BLE001 - the interruption itself, which is over with that
                pass
            running.cut = False
            assert isinstance(doom, FunctionTooLong)
            raise doom
        if raised is not None:
            raise raised
        return slot

    def _standing_for(self, function: FunctionSpec, key: Key) -> Invocation:
        stands = self._stands
        if stands is None:
            cell, footprint = EntityCell(self._footprint, key, {}), self._footprint
            stands = self._stands = Invocation(
                key, footprint, function, cell, b"", b"", 0, b"", b"", 0, 0, 0, footprint
            )
        stands._key, stands._spec = key, function
        return stands
