"""The store's thread: blocking work, one piece at a time in the order it was asked for; the engine never waits for it.

A piece that fails with `OSError` (the store is out of reach or full) is tried again, a named number of times with
growing pauses. It never touches the protocol: ends are given back on the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, Final, TypeVar

ATTEMPTS_MAX: Final = 5
"""How often a piece of work is tried before it counts as failed."""
FIRST_PAUSE_SECONDS: Final = 0.1
"""Pause after the first failure; each further one is twice as long."""

T = TypeVar("T")
_log = logging.getLogger("styx.embedded")


@dataclass(slots=True)
class _Work:
    what: str
    run: Callable[[], Any]
    ended: Callable[[Any], None]
    gave_up: Callable[[OSError], None]


class Background:
    """`on_loop` runs a callback on the engine's thread; `broken` takes an exception that no retry can mend.

    At most as much is queued as the protocol has under way: one snapshot and its clean-up.
    """

    def __init__(self, on_loop: Callable[..., None], broken: Callable[[str, BaseException], None]) -> None:
        self._on_loop = on_loop
        self._broken = broken
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._abandoned = Event()
        self._thread = Thread(target=self._run, name="styx-store", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(
        self, what: str, run: Callable[[], T], ended: Callable[[T], None], gave_up: Callable[[OSError], None]
    ) -> None:
        """Queues `run`; its result goes to `ended`, or the last of its `OSError`s to `gave_up`, on the loop."""
        self._queue.put(_Work(what, run, ended, gave_up))

    def stop(self) -> None:
        """Returns when everything queued is done."""
        self._queue.put(None)
        self._join()

    def crash(self) -> None:
        """Returns after the operation under way at most; the rest is dropped and nobody hears of it."""
        self._abandoned.set()
        self._queue.put(None)
        self._join()

    def _join(self) -> None:
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while (work := self._queue.get()) is not None and not self._abandoned.is_set():
            try:
                self._do(work)
            except BaseException as error:  # noqa: BLE001 - reported, whatever it is: a dead thread would be silent
                if not self._abandoned.is_set():
                    self._on_loop(self._broken, work.what, error)

    def _do(self, work: _Work) -> None:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                result = work.run()
            except OSError as error:
                if attempt == ATTEMPTS_MAX:
                    _log.error("%s failed %d times and is given up: %s", work.what, attempt, error)
                    self._answer(work.gave_up, error)
                    return
                _log.warning("%s failed, attempt %d of %d: %s", work.what, attempt, ATTEMPTS_MAX, error)
                if self._abandoned.wait(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1)):
                    return
            else:
                self._answer(work.ended, result)
                return

    def _answer(self, callback: Callable[[Any], None], argument: Any) -> None:
        if not self._abandoned.is_set():
            self._on_loop(callback, argument)
