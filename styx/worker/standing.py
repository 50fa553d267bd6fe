"""Runs an app's code outside of functions, so that the watchdog names it and interrupts it like a function.

A record of an invocation stands for the code meanwhile. The code is an app's `partition_key`, and what a check of
stored state runs: types, `migrate=`, keys. The caller decides what an interruption means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from styx.errors import FunctionTooLong
from styx.model.app import App
from styx.model.entity_read import read_function
from styx.model.function_spec import FunctionSpec
from styx.model.limits import Limits
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.native.compiled import transaction_limits
from styx.state.table import Table
from styx.worker.footprint import EntityCell, Footprint
from styx.worker.invocation import Invocation, Running

T = TypeVar("T")


class Standing:
    """Runs code of one app on one thread. `running` returns the record that the executor and the watchdog share."""

    def __init__(self, app: App, limits: Limits, n_slots: int, running: Callable[[], Running]) -> None:
        self._running = running
        self._footprint = Footprint(app, transaction_limits(limits), n_slots, -1, 0, 0, 0, False, False, None)
        self._stands: Invocation | None = None

    @property
    def busy(self) -> bool:
        """Whether a function runs, which the watchdog then watches instead."""
        return self._running().invocation is not None

    def run(self, function: FunctionSpec, key: Key, call: Callable[[Any], T], argument: Any) -> T:
        """Returns `call(argument)`. The watchdog names the call as `function` on `key`.

        Raises the exceptions of the call. Raises `FunctionTooLong` if the watchdog interrupted it, even if the call
        caught the interruption.
        """
        running = self._running()
        stands = self._stands
        if stands is None:
            stands = self._stands = self._made(function, key)
        stands._key, stands._spec = key, function
        running.resumed += 1
        cut = running.cut
        result: T | None = None
        raised: BaseException | None = None
        try:
            running.invocation = stands
            result = call(argument)
            running.invocation = None
        except BaseException as error:  # noqa: BLE001 - raised again below, if it is no interruption
            running.invocation = None
            raised = error
        doom = stands._doom
        if doom is not None:
            stands._doom = None
            try:
                running.withdraw()
            except BaseException:  # noqa: BLE001 - the interruption itself, which is over with that
                pass
            running.cut = cut
            assert isinstance(doom, FunctionTooLong)
            raise doom
        if raised is not None:
            raise raised
        return cast("T", result)

    def _made(self, function: FunctionSpec, key: Key) -> Invocation:
        cell, footprint = EntityCell(self._footprint, key, Table({}, -1).reader(-1)), self._footprint
        return Invocation(key, footprint, function, cell, b"", b"", 0, b"", b"", 0, 0, 0, footprint)


class Placing:
    """Runs the `partition_key` of one app, for requests that are in no epoch yet.

    The watchdog names the function that the request is for. An interrupted request is refused. If it is in the log, the
    refusal must be recorded, because time has decided it.
    """

    def __init__(self, app: App, limits: Limits, n_slots: int, running: Callable[[], Running]) -> None:
        self._n_slots = n_slots
        self._standing = Standing(app, limits, n_slots, running)

    def slot_of(self, function: FunctionSpec, key: Key) -> int:
        """The slot of a checked key. Raises `BadKey`, and `FunctionTooLong` if the watchdog interrupted
        `partition_key`.
        """
        if self._standing.busy:
            return function.keys.slot_of(key, self._n_slots)
        return self._standing.run(function, key, lambda key: function.keys.slot_of(key, self._n_slots), key)


class StateGuard:
    """Runs the app's code in a check of stored state, outside of transactions. The watchdog reads `running`."""

    def __init__(self, app: App, n_slots: int, limits: Limits, running: Running) -> None:
        self._running = running
        self._standing = Standing(app, limits, n_slots, lambda: running)
        self._names: dict[tuple[str, str], FunctionSpec] = {}

    def run(self, operator: Operator, what: str, key: Any, call: Callable[[Any], T], argument: Any) -> T:
        """As `Guard.run`; the watchdog shows `what` in place of a function's name."""
        name = self._names.get((operator.name, what))
        if name is None:
            name = self._names[operator.name, what] = operator.spec(what, read_function(operator).func)
        running = self._running
        running.harmless = True
        try:
            return self._standing.run(name, key, call, argument)
        finally:
            running.harmless = False
