"""Blocking work beside the event loop, on a few threads; the protocol never waits for it.

A piece that fails with `OSError` (a service is out of reach) is tried again, a named number of times with growing
pauses. Ends are given back on the event loop. It never touches the protocol.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

THREADS_MAX: Final = 4
"""Pieces of work at once; further ones wait their turn. Their number is bounded by what the protocol asks for."""
ATTEMPTS_MAX: Final = 4
"""How often a piece of work is tried before it counts as failed."""
FIRST_PAUSE_SECONDS: Final = 0.1
"""Pause after the first failure; each further one is twice as long."""

T = TypeVar("T")
_log = logging.getLogger("styx.cluster")


class Background:
    """`broken` gets an exception that no retry can mend, with what was done."""

    def __init__(self, broken: Callable[[str, BaseException], None]) -> None:
        self._broken = broken
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="styx-background")
        self._stopped = False

    def submit(
        self, what: str, run: Callable[[], T], ended: Callable[[T], None], gave_up: Callable[[OSError], None]
    ) -> None:
        """Runs it; its result goes to `ended`, or the last of its `OSError`s to `gave_up`, on the loop."""
        if not self._stopped:
            self._threads.submit(self._attempts, what, run, ended, gave_up)

    async def run(self, run: Callable[[], T]) -> T:
        """Runs it once; raises what it raises."""
        return await self._loop.run_in_executor(self._threads, run)

    def stop(self) -> None:
        """Takes nothing more and tells nobody of what still ends."""
        self._stopped = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _attempts(
        self, what: str, run: Callable[[], Any], ended: Callable[[Any], None], gave_up: Callable[[OSError], None]
    ) -> None:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                result = run()
            except OSError as error:
                if attempt == ATTEMPTS_MAX or self._stopped:
                    _log.warning("%s failed %d times and is given up: %s", what, attempt, error)
                    self._tell(gave_up, error)
                    return
                time.sleep(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
            except BaseException as error:  # noqa: BLE001 - reported, whatever it is: nobody looks at this thread
                self._tell(self._broken, what, error)
                return
            else:
                self._tell(ended, result)
                return

    def _tell(self, callback: Callable[..., None], *arguments: Any) -> None:
        if not self._stopped:
            try:
                self._loop.call_soon_threadsafe(callback, *arguments)
            except RuntimeError:
                _log.warning("work ended after its event loop")
