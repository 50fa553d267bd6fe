"""The checking process beside an engine: started when the engine serves, and fed by it. Its findings are reported as
mistakes. If the process ends or falls behind, requests are served as before.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from styx.cli.check.feed import CheckWatch, Feed
from styx.cli.check.messages import CHANGED, Begin, Checked, Difference, from_checker, read, write
from styx.cli.source_files import Stamps
from styx.model.user_frames import Frame

if TYPE_CHECKING:
    from styx.embedded_engine.engine import EmbeddedEngine

FINISH_SECONDS_MAX: Final = 2.0
"""The time that the end of an engine gives to the transactions that are not checked yet."""
GATHER_SECONDS: Final = 0.02
"""The time for which epochs gather before they are sent to the checker."""
TOLD_TYPE: Final = "NotDeterministic"
_HINT: Final = (
    "a function must not depend on global state, random, the clock or the order of a set, but on ctx and its arguments"
)

_log = logging.getLogger("styx.dev")


@contextmanager
def checked(
    engine: EmbeddedEngine, target: str, files: Stamps, finish_seconds: float = FINISH_SECONDS_MAX
) -> Iterator[Callable[[], None]]:
    """Meanwhile a process checks the engine's transactions, from the call of the given function on: when it serves.

    `files` are the stamps of the files that the engine's app was imported from. At the end, the process has
    `finish_seconds` for the transactions that are not checked yet. With 0, the code is replaced whenever its files
    change, and a check that ends for that reason is not reported.
    """
    watch = engine.watch = CheckWatch()
    begun: list[_Process] = []
    try:
        # Only when it serves: the start of a process would delay it.
        yield lambda: begun.append(_Process(engine, watch, target, files, finish_seconds))
    finally:
        for process in begun:
            process.end()


class _Process:
    def __init__(
        self, engine: EmbeddedEngine, watch: CheckWatch, target: str, files: Stamps, finish_seconds: float
    ) -> None:
        self._finish_s = finish_seconds
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        self._feed = Feed()
        self._feed.give(Begin(target, engine.n_slots, engine.limits, files))
        watch.begin(self._feed, engine.worker)
        if self._feed.problem is not None:
            self._not_checked(self._feed.problem)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "styx.cli.check.checker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Another order of sets than here.
            env={**os.environ, "PYTHONHASHSEED": str(1 + secrets.randbelow(2**32 - 1))},
            start_new_session=True,
        )
        self._threads = [
            threading.Thread(target=self._send, name="styx-check-send", daemon=True),
            threading.Thread(target=self._hear, name="styx-check-hear", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._feed.listens = False
        if self._finish_s and self._process.poll() is None:
            self._feed.wait_until_checked(self._finish_s)
        self._feed.stop()
        self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                pass

    def _send(self) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        while (messages := self._feed.take()) is not None:
            try:
                write(pipe, *messages)  # type: ignore[arg-type]
            except (BrokenPipeError, ValueError):
                return
            # Each time that this thread runs, the engine's waits for the interpreter.
            time.sleep(GATHER_SECONDS)

    def _hear(self) -> None:
        pipe = self._process.stdout
        assert pipe is not None
        while (data := read(pipe)) is not None:  # type: ignore[arg-type]
            message = from_checker(data)
            if isinstance(message, Difference):
                self._on_loop(self._tell, message)
            else:
                assert isinstance(message, Checked)
                if message.problem:
                    self._feed.stop()
                    self._on_loop(self._not_checked, message.problem)
                self._feed.checked()
        if not self._feed.stopped:
            self._feed.stop()
            self._on_loop(self._not_checked, "the process that did it has ended")

    def _on_loop(self, callback: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:
            pass  # the loop is closed: the engine has ended

    def _tell(self, found: Difference) -> None:
        where = (found.operator, found.key, found.function)
        frames = (Frame(found.file, found.line, found.function),)
        text = f"{found.text}: {_HINT}"
        self._engine.reports.difference(where, found.tid, found.epoch, TOLD_TYPE, text, frames)

    def _not_checked(self, why: str) -> None:
        if why == CHANGED and not self._finish_s:
            return
        _log.warning("Transactions are not run again to check them: %s", why)
