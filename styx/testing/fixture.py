"""A real engine for tests of an app: in this process, in milliseconds, and at the end its whole history is checked.

    async def test_transfer() -> None:
        async with embedded_cluster(app) as cluster:
            await cluster.call("account", "alice", "open", 100)
            assert cluster.entity("account", "alice") == {"balance": 100}

Leaving the block replays every request serially and compares each reply and the final state, so that a function that is
not deterministic is found by any test that uses it. With a `data_dir`, `crash_and_recover` loses power in between.
"""

from __future__ import annotations

import os
from datetime import timedelta
from types import TracebackType
from typing import Any

from styx.client.embedded import EmbeddedClient
from styx.client.events import EventReader
from styx.embedded_engine.engine import EmbeddedEngine
from styx.embedded_engine.options import N_SLOTS_DEFAULT, SNAPSHOT_SECONDS_DEFAULT
from styx.errors import ConfigurationError
from styx.model.agenda import microseconds
from styx.model.app import App
from styx.model.event import Event
from styx.model.limits import Limits
from styx.reports.carried import ADVICE, SEE, carried_text
from styx.testing.history import HistoryReport, check_history
from styx.testing.patience import PATIENCE_SECONDS
from styx.testing.recorded_history import read_history

SETTLE_SECONDS_MAX = PATIENCE_SECONDS
"""How long a check waits for requests that are not answered yet."""


def embedded_cluster(
    app: App,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    n_slots: int = N_SLOTS_DEFAULT,
    limits: Limits | None = None,
    snapshot_interval: float = SNAPSHOT_SECONDS_DEFAULT,
    carried_max: int | None = None,
) -> EmbeddedCluster:
    """A client with an engine of its own; use it as `async with`. Parameters as those of `styx.embedded`.

    `data_dir` (pytest's `tmp_path`, say) must be new, because the history is checked from its beginning. `carried_max`:
    a transaction may be carried into the next epoch so many times, 2 for example; the check raises `CarriedTooOften` if
    one was carried more often. None: as often as it takes. Raises `ConfigurationError` for a number below 0.
    """
    if carried_max is not None and (type(carried_max) is not int or carried_max < 0):
        raise ConfigurationError(f"carried_max is a number of times from 0 on, such as 2, or None: got {carried_max!r}")
    return EmbeddedCluster(app, data_dir, n_slots, limits, snapshot_interval, carried_max)


class CarriedTooOften(AssertionError):
    """A transaction was carried more often than the test allows; the message names its function and what changed."""


class EmbeddedCluster(EmbeddedClient):
    """An `EmbeddedClient` that checks its history when its block is left without an exception.

    `report` then says what was checked; `SerializabilityViolation` explains the first thing that was wrong.
    `crash_and_recover` checks `carried_max` as well, because a start counts anew.
    """

    def __init__(
        self,
        app: App,
        data_dir: str | os.PathLike[str] | None,
        n_slots: int,
        limits: Limits | None,
        snapshot_interval: float,
        carried_max: int | None = None,
    ) -> None:
        self._options: dict[str, Any] = {
            "n_slots": n_slots,
            "limits": limits,
            "snapshot_interval": snapshot_interval,
            "keep_log": True,
        }
        self._data_dir = data_dir
        self._carried_max = carried_max
        super().__init__(EmbeddedEngine(app, data_dir, **self._options))
        self.report: HistoryReport | None = None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None and self.engine.ready:
                await self.check()
        finally:
            await self.close()

    async def check(self) -> HistoryReport:
        """Waits until all requests are answered and checks the history so far.

        Raises `SerializabilityViolation`, `CarriedTooOften`, and `TimeoutError` if requests stay unanswered.
        """
        engine = self.engine
        if not await engine.settled(SETTLE_SECONDS_MAX):
            raise TimeoutError(
                f"{engine.in_flight} requests are not answered after {SETTLE_SECONDS_MAX:g} s: does an external "
                "function not end?"
            )
        while engine.log.durable_lsn < engine.log.lsn:  # a call for later may have come meanwhile
            await engine.flushed()
        history = read_history(engine.log, engine.n_slots)
        self.report = check_history(
            engine.app,
            history.requests,
            history.replies,
            engine.encoded_state(),
            limits=engine.limits,
            n_slots=engine.n_slots,
            externals=history.externals,
            complete=True,
        )
        self._check_carried()
        return self.report

    def events(self, event: Event[Any] | str, *, after: str | None = None, follow: bool = False) -> EventReader:
        """As `Client.events`, but to the end of what there is: `await cluster.events(paid)` waits until all requests
        are answered and all calls that are due are made, and gives the list of what was emitted.
        """
        reader = super().events(event, after=after, follow=follow)
        return reader if follow else reader.behind(self._settle_and_flush)

    async def _settle_and_flush(self) -> None:
        await self._settle()
        await self.engine.flushed()

    async def advance(self, time: timedelta) -> None:
        """Sets the engine's clock forward, from one due time to the next, and waits at each until the calls that were
        given for then are made, and what these give for a time that has come, too.

        Raises `TimeoutError` if they are not, and `ConfigurationError` for what is no timedelta from 0 on.
        """
        if not isinstance(time, timedelta) or time < timedelta(0):
            raise ConfigurationError(f"advance takes a timedelta from 0 on, such as timedelta(hours=1): got {time!r}")
        engine = self.engine
        end_us = engine.now_us() + microseconds(time)
        await self._settle()
        while (due_us := engine.next_due_us) is not None and due_us <= end_us:
            await engine.set_forward(max(0, due_us - engine.now_us()))
            await self._settle()
        await engine.set_forward(max(0, end_us - engine.now_us()))
        await self._settle()

    async def _settle(self) -> None:
        if not await self.engine.settled(SETTLE_SECONDS_MAX):
            raise TimeoutError(f"requests and calls that are due are not done after {SETTLE_SECONDS_MAX:g} s")

    def _check_carried(self) -> None:
        worst = self.engine.reports.carried.worst
        if self._carried_max is not None and worst is not None and worst.times > self._carried_max:
            raise CarriedTooOften(f"{carried_text(worst)}. carried_max is {self._carried_max}. {ADVICE}{SEE}")

    async def crash_and_recover(self) -> None:
        """Loses power and starts again on the same directory; requests under way get `OutcomeUnknown`."""
        if self._data_dir is None:
            raise ConfigurationError("there is nothing to recover from in memory: give embedded_cluster a data_dir")
        self._check_carried()
        self.crash()
        ahead_us = self.engine.ahead_us
        self.engine = EmbeddedEngine(self.engine.app, self._data_dir, **self._options)
        self.engine.ahead_us = ahead_us
        await self.engine.start()
