"""The surroundings of an embedded engine's passes: requests that arrive between them, and the log that they write.

Requests are gathered until a pass begins, and new records are handed to the log once a pass. The log's other threads
report here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from threading import get_ident
from typing import Any, Final

from styx.embedded_engine.engine_log import EngineLog
from styx.host.passes import Passes
from styx.log.base import Arrival
from styx.worker.events import RequestsArrived
from styx.worker.worker import Worker

DUMP_NAME: Final = "failure.events"
"""In a data directory: the last events of an engine that failed (`styx.host.event_dump`)."""


class Drive:
    """`passes` are the engine's; `after_pass` and `failed` are its part of `Surroundings`, and `data_dir` is for
    its reports.
    """

    def __init__(
        self,
        log: EngineLog,
        worker: Worker,
        data_dir: Path | None,
        after_pass: Callable[[], bool],
        failed: Callable[[str, BaseException], None],
    ) -> None:
        self.after_pass = after_pass
        self.failed = failed
        self._loop = asyncio.get_running_loop()
        self._log = log
        self._worker = worker
        self._arrivals: list[list[Arrival]] = [[] for _ in range(worker.n_slots)]
        self._arrived_bytes = [0] * worker.n_slots
        self._woken = False
        self._thread = get_ident()
        place, dump = ("", None) if data_dir is None else (f" --data-dir {data_dir}", data_dir / DUMP_NAME)
        self.passes = Passes(worker, self, place, dump=dump)
        log.log.on_durable(self._became_durable)

    def request(self, slot: int, arrival: Arrival) -> None:
        """A record was appended to the slot's requests."""
        self._arrivals[slot].append(arrival)
        self._arrived_bytes[slot] += len(arrival[2])
        self.passes.wake()

    def on_loop(self, callback: Callable[..., None], *args: Any) -> None:
        """Runs the callback on the engine's thread; from any thread, also when the loop is gone."""
        try:
            self._loop.call_soon_threadsafe(self._guarded, callback, args)
        except RuntimeError:
            # The application closed its loop without closing the engine: nobody is left to tell.
            self.passes.stopped = True

    def _guarded(self, callback: Callable[..., None], args: tuple[Any, ...]) -> None:
        if self.passes.stopped:
            return
        try:
            callback(*args)
        except Exception as error:  # noqa: BLE001 - an answer that is lost would leave the engine waiting for good
            self.failed("taking the end of background work", error)

    def _became_durable(self, _: int) -> None:
        # A log in memory reports inside of `flush`, and the pass looks after that anyway.
        if not self._woken and get_ident() != self._thread:
            self._woken = True
            self.on_loop(self._wake_durable)

    def _wake_durable(self) -> None:
        self._woken = False
        self.passes.wake()

    # A pass ------------------------------------------------------------------------------------------------

    def gather(self) -> None:
        """As `Surroundings.gather`."""
        generation = self._worker.generation
        for slot, arrivals in enumerate(self._arrivals):
            if arrivals:
                n_bytes, self._arrived_bytes[slot] = self._arrived_bytes[slot], 0
                self._arrivals[slot] = []
                self.passes.to_worker(RequestsArrived(generation, slot, arrivals), n_bytes)

    def flush(self) -> int:
        """As `Surroundings.flush`; requests are among the bytes."""
        self._log.flush(self.passes.stopped)
        return self._log.log.backlog_bytes
