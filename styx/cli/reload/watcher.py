"""The process that stays: keeps the listening socket, watches the app's files, and lets one version follow another.

A switch has three steps. The next version imports the app. The serving version finishes the requests in flight, stores
a snapshot and closes the data. The next version opens the data and serves. New connections wait at the socket
meanwhile. If the next version cannot serve, the former one goes on. The watcher itself never imports the app.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from styx.cli.dev_server import say, set_up_terminal
from styx.cli.exit_codes import CommandFailed
from styx.cli.reload.control import LINE_BYTES_MAX, VARIABLE, News, Order, line_of, news_of
from styx.cli.serving import ServingOptions
from styx.cli.source_files import Stamps, changed, stamps_in
from styx.gateway.server import BACKLOG_MAX
from styx.http.server import listen_on
from styx.model.limits import Limits
from styx.process.extras import lacking
from styx.watchdog import ending

RELEASE_SECONDS_MAX: Final = 30.0
"""The time that a version has to release its data, besides a function's limit; then it is killed. Its answered requests
are in the log.
"""
END_SECONDS_MAX: Final = 60.0
"""The time that a version has to end, besides a function's limit; then it is killed."""
SETTLE_MS: Final = 50
"""Milliseconds without a change before a change is reported: an editor's save is several changes."""
LONGEST_SETTLE_MS: Final = 400
SIGNAL_SECONDS: Final = 1.0
"""A version that has not followed an order to end for so long gets a signal, for its watchdog to act on."""
AGAIN_SECONDS: Final = 1.0
"""The pause before a version that ended by itself is started again."""


def run_watcher(options: ServingOptions) -> int:
    """Watches and serves until the process is told to stop; raises `CommandFailed` without watchfiles."""
    if find_spec("watchfiles") is None:
        raise CommandFailed(lacking("styx dev --reload", "watchfiles", "reload"))
    set_up_terminal()
    limits = options.limits or Limits()
    with listen_on(options.host, options.port, BACKLOG_MAX) as listening:

        async def run() -> int:
            return await Watcher(listening, limits.function_seconds_max).run()

        return asyncio.run(run())


class Version:
    """A process with one version of the code."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self.directories: list[str] = []

    @classmethod
    async def started(cls, listening: socket.socket) -> Version:
        """A process that waits for orders."""
        ours, theirs = socket.socketpair()
        with theirs:
            passed = (theirs.fileno(), listening.fileno())
            process = subprocess.Popen(  # noqa: ASYNC220 - it returns at once
                sys.orig_argv,
                executable=sys.executable,
                pass_fds=passed,
                env={**os.environ, VARIABLE: ",".join(map(str, passed))},
                start_new_session=True,  # Ctrl-C is for the watcher
            )
        version = cls(process, ours)
        version._reader, version._writer = await asyncio.open_connection(sock=ours, limit=LINE_BYTES_MAX)
        return version

    async def asked(self, order: Order) -> News | None:
        """Its answer to an order; None if it has ended."""
        self._writer.write(line_of(order))
        return await self.news()

    async def news(self) -> News | None:
        """Its next message; None if it has ended."""
        try:
            line = await self._reader.readline()
        except (OSError, ValueError):
            return None
        return news_of(line) if line.endswith(b"\n") else None

    async def end(self, order: Order | None = None, seconds_max: float = END_SECONDS_MAX) -> int:
        """Ends it, by the order if there is one, and by force after that time. Returns its exit status."""
        if order is None:
            self._process.kill()
        else:
            self._writer.write(line_of(order))
        ended = asyncio.ensure_future(asyncio.to_thread(self._process.wait))
        for seconds, then in ((SIGNAL_SECONDS, self._process.terminate), (seconds_max, self._process.kill)):
            await asyncio.wait([ended], timeout=seconds)
            if not ended.done():
                then()
        self._writer.close()
        return await ended

    def kill(self) -> None:
        """Kills it; `end` returns then."""
        self._process.kill()


class Watcher:
    """`run` ends at SIGTERM or SIGINT, with the exit status of the version that served; a second signal kills that
    version. A function may run for `function_seconds_max`.
    """

    def __init__(self, listening: socket.socket, function_seconds_max: float) -> None:
        self._listening = listening
        self._end_s = END_SECONDS_MAX + function_seconds_max
        self._release_s = RELEASE_SECONDS_MAX + function_seconds_max
        self._serving: Version | None = None
        self._spare: Version | None = None
        self._directories: list[str] = [os.getcwd()]
        self._before: Stamps = {}
        self._served = False

    async def run(self) -> int:
        """Until SIGTERM or SIGINT."""
        told = asyncio.Event()
        loop = asyncio.get_running_loop()

        def hear() -> None:
            told.set()
            if ending.told_again() and self._serving is not None:
                self._serving.kill()

        for number in ending.SIGNALS:
            loop.add_signal_handler(number, hear)
        ending.notice()
        stopping = asyncio.create_task(told.wait())
        working = asyncio.create_task(self._work())
        await asyncio.wait([stopping, working], return_when=asyncio.FIRST_COMPLETED)
        failed = working.done()
        stopping.cancel()
        working.cancel()
        await asyncio.wait([working])
        status = 0
        if self._spare is not None:
            await self._spare.end()
        if self._serving is not None:
            status = await self._serving.end(Order("end"), self._end_s)
        if failed:
            working.result()
        return status

    async def _work(self) -> None:
        self._spare = await Version.started(self._listening)
        while True:
            self._before = stamps_in(self._directories)
            await self._switch()
            if self._spare is None:
                self._spare = await Version.started(self._listening)
            await self._until_due()

    async def _until_due(self) -> None:
        """Until a file has changed, or the version that serves has ended by itself."""
        changes = asyncio.create_task(until_changed(self._directories, self._before))
        waiting: set[asyncio.Task[object]] = {changes}
        ended = None
        if self._serving is not None:
            ended = asyncio.create_task(self._serving.news())
            waiting.add(ended)
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if changes.done():
                names = ", ".join(map(_short, changes.result()[:3]))
                say(f"Changed: {names}")
            elif ended is not None and self._serving is not None:
                news = ended.result()
                status = await self._serving.end()
                self._serving = None
                why = news.text if news is not None else f"exit status {status}"
                say(f"The process that served has ended ({why}); it starts again.")
                await asyncio.sleep(AGAIN_SECONDS)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)

    async def _switch(self) -> None:
        began_s = time.monotonic()
        assert self._spare is not None
        following, self._spare = self._spare, None
        imported = await following.asked(Order("import"))
        if imported is not None:
            self._look_at(imported.directories)
        if imported is None or imported.what != "imported":
            await following.end()
            self._stays(imported.text if imported is not None else "the process that imported it has ended")
            return
        away_s = time.monotonic()
        if self._serving is not None and not await self._released(self._serving):
            self._serving = None
        served = await following.asked(Order("serve", first=not self._served))
        if served is None or served.what != "serving":
            await following.end()
            await self._go_on()
            self._stays(served.text if served is not None else "the process that was to serve it has ended")
            return
        if self._serving is not None:
            await self._serving.end(Order("end"), self._end_s)
            now_s = time.monotonic()
            say(f"Reloaded in {now_s - began_s:.2f} s; requests waited for {now_s - away_s:.2f} s of them at most.")
        elif self._served:
            say(f"Serving again, {time.monotonic() - began_s:.2f} s after the change.")
        self._serving, self._served = following, True

    async def _released(self, serving: Version) -> bool:
        """Whether it released data and socket; False if it was killed, or was gone."""
        try:
            news = await asyncio.wait_for(serving.asked(Order("release")), self._release_s)
        except TimeoutError:
            say(f"The version that serves does not let go within {self._release_s:g} s; it is killed.")
            news = None
        if news is not None and news.what == "released":
            return True
        await serving.end()
        return False

    async def _go_on(self) -> None:
        """Lets the version before serve again."""
        if self._serving is None:
            return
        news = await self._serving.asked(Order("serve"))
        if news is None or news.what != "serving":
            await self._serving.end()
            self._serving = None

    def _look_at(self, directories: list[str]) -> None:
        """Adds directories to those that are watched, with their files' present stamps: these files were imported."""
        new = [each for each in directories if each not in self._directories]
        self._before.update(stamps_in(new))
        self._directories = sorted({*self._directories, *directories})

    def _stays(self, why: str) -> None:
        goes_on = "The version before goes on." if self._serving is not None else "Nothing is served."
        say(why, f"{goes_on} The next change is tried again.")


def _short(path: str) -> str:
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


async def until_changed(directories: list[str], before: Stamps) -> list[str]:
    """Waits until Python files in the directories differ from `before`; gives their names. watchfiles reports changes,
    and the stamps say which files are meant.
    """
    from watchfiles import awatch

    there = await asyncio.to_thread(lambda: [directory for directory in directories if os.path.isdir(directory)])
    stop = asyncio.Event()
    hearing = awatch(
        *there,
        watch_filter=None,
        debounce=LONGEST_SETTLE_MS,
        step=SETTLE_MS,
        stop_event=stop,
        recursive=False,
        yield_on_timeout=True,  # the first time soon after it has begun: what changed before that is found then
        rust_timeout=500,
        ignore_permission_denied=True,
    )
    try:
        async for _ in hearing:
            found = changed(before, await asyncio.to_thread(stamps_in, directories))
            if found:
                return found
    finally:
        stop.set()
        await hearing.aclose()
    return []
