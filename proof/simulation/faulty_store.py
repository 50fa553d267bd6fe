"""The object store behind a network: slow at times, failing at times, and a put that failed may have happened."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from proof.simulation.virtual_time import VirtualTime
from styx.host.ports import ATTEMPTS_MAX
from styx.store.memory import MemoryStore

USUAL_DELAY_S = 0.004
SLOW_DELAY_S = 1.0


class FaultyStore:
    """`objects` is what it holds. `run` does a blocking operation on it later, as a background thread would."""

    def __init__(self, time: VirtualTime, rng: Random) -> None:
        self.objects = MemoryStore()
        self.slow_until_s = 0.0
        self.failing_until_s = 0.0
        self.failures = 0
        self._time = time
        self._rng = rng

    def run(self, operation: Callable[[], Any], answer: Callable[[Any], None], failed: Callable[[], None]) -> None:
        """`answer(operation())` after a while, or `failed()`, in which case the operation may have been done or not."""
        usual = self._time.now_s >= self.slow_until_s
        delay_s = self._rng.random() * (USUAL_DELAY_S if usual else SLOW_DELAY_S)
        self._time.after(delay_s, self._do, operation, answer, failed)

    def submit(
        self,
        what: str,
        run: Callable[[], Any],
        ended: Callable[[Any], None],
        gave_up: Callable[[OSError], None],
        alive: Callable[[], bool],
        attempt: int = 1,
    ) -> None:
        """As `Submit`, for a process that is `alive`."""

        def failed() -> None:
            if attempt < ATTEMPTS_MAX:
                self.submit(what, run, ended, gave_up, alive, attempt + 1)
            else:
                gave_up(OSError(what))

        if alive():
            self.run(run, ended, failed)

    def _do(self, operation: Callable[[], Any], answer: Callable[[Any], None], failed: Callable[[], None]) -> None:
        if self._time.now_s < self.failing_until_s and self._rng.random() < 0.8:
            self.failures += 1
            if self._rng.random() < 0.3:
                self._try(operation, lambda _: None, lambda: None)
            failed()
        else:
            self._try(operation, answer, failed)

    def _try(self, operation: Callable[[], Any], answer: Callable[[Any], None], failed: Callable[[], None]) -> None:
        try:
            result = operation()
        except OSError:  # what it wants is not there
            failed()
        else:
            answer(result)
