"""An event loop on a separate thread, for blocking callers.

A fork of the process has the object without the thread; then no method waits, not even when the object is collected.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs as soon as it is made, until `close`; the interpreter's end does not wait for it."""

    def __init__(self, name: str) -> None:
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = Thread(target=_run, args=(started,), name=name, daemon=True)
        self._thread.start()
        self._loop, self._stop = started.result()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Runs the coroutine there; cancelling the future cancels it. Raises `RuntimeError` after `close`."""
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            raise

    def close(self) -> None:
        """Returns when all that was started has ended, and the thread."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


def _run(started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(_serve(started))
        loop.run_until_complete(loop.shutdown_asyncgens())
        # While the interpreter ends it starts no thread any more, and that takes one.
        with contextlib.suppress(RuntimeError):
            loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


async def _serve(started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    stop = asyncio.Event()
    started.set_result((asyncio.get_running_loop(), stop))
    await stop.wait()
    while left := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(left)
