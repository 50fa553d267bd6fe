"""Blocking work beside the event loop, on threads of its own; the protocol never waits for it.

A piece that fails with `OSError` (the store is out of reach or full) is tried again, with growing pauses. Ends are
given back on the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, Final, TypeVar

from styx.host.ports import ATTEMPTS_MAX

THREADS_MAX: Final = 4
"""Pieces of work at once; further ones wait their turn. Their number is bounded by what the protocol asks for."""
FIRST_PAUSE_SECONDS: Final = 0.1
"""Pause after the first failure; each further one is twice as long."""

T = TypeVar("T")
OnLoop = Callable[..., None]
"""Calls a callback with arguments on the loop's thread, soon; from any thread."""

_log = logging.getLogger("styx.background")


@dataclass(slots=True)
class _Work:
    what: str
    run: Callable[[], Any]
    ended: Callable[[Any], None]
    gave_up: Callable[[OSError], None]
    broken: Callable[[str, BaseException], None]
    attempts_max: int


class Background:
    """`broken` takes an exception that no retry can mend, with what was done. With one thread, work is done in the
    order in which it was asked for.
    """

    def __init__(
        self, broken: Callable[[str, BaseException], None], on_loop: OnLoop, threads_max: int = THREADS_MAX
    ) -> None:
        self._broken = broken
        self._on_loop = on_loop
        self._threads_max = threads_max
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._abandoned = Event()

    def submit(
        self, what: str, run: Callable[[], T], ended: Callable[[T], None], gave_up: Callable[[OSError], None]
    ) -> None:
        """As `Submit`; at most as much is queued as the protocol has under way."""
        self._put(_Work(what, run, ended, gave_up, self._broken, ATTEMPTS_MAX))

    async def run(self, run: Callable[[], T]) -> T:
        """Runs it once; raises what it raises. For a caller on the loop."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def ended(result: T) -> None:
            if not future.done():
                future.set_result(result)

        def failed(error: BaseException) -> None:
            if not future.done():
                future.set_exception(error)

        self._put(_Work("", run, ended, failed, lambda _, error: failed(error), 1))
        return await future

    def finish(self) -> None:
        """Returns when everything that was asked for is done."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def abandon(self) -> None:
        """Begins nothing any more, and tells nobody of what still ends."""
        self._abandoned.set()
        for _ in self._threads:
            self._queue.put(None)

    def crash(self) -> None:
        """As `abandon`; returns after what is under way at most."""
        self.abandon()
        self.finish()

    def _put(self, work: _Work) -> None:
        if self._abandoned.is_set():
            return
        self._queue.put(work)
        if len(self._threads) < self._threads_max:
            # Not one that an ending interpreter waits for: a store that is out of reach must not hold it up.
            thread = Thread(target=self._serve, name=f"styx-background-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None and not self._abandoned.is_set():
            try:
                self._do(work)
            except BaseException as error:  # noqa: BLE001 - reported, whatever it is: a dead thread would be silent
                self._tell(work.broken, work.what, error)

    def _do(self, work: _Work) -> None:
        attempts_max = work.attempts_max
        for attempt in range(1, attempts_max + 1):
            try:
                result = work.run()
            except OSError as error:
                if attempt == attempts_max:
                    if attempts_max > 1:
                        _log.error("%s failed %d times and is given up: %s", work.what, attempt, error)
                    self._tell(work.gave_up, error)
                    return
                _log.warning("%s failed, attempt %d of %d: %s", work.what, attempt, attempts_max, error)
                if self._abandoned.wait(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1)):
                    return
            else:
                self._tell(work.ended, result)
                return

    def _tell(self, callback: Callable[..., None], *arguments: Any) -> None:
        if not self._abandoned.is_set():
            self._on_loop(callback, *arguments)


def on_running_loop() -> OnLoop:
    """The present loop's, for as long as it is there."""
    loop = asyncio.get_running_loop()

    def on_loop(callback: Callable[..., None], *arguments: Any) -> None:
        try:
            loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            _log.warning("work ended after its event loop")

    return on_loop
