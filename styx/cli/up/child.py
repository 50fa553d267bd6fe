"""One child process of `styx up`: started, started again when it dies, stopped. It ends when this process does.

`Restarts` decides, without a clock, when a dead child is started again and when it is given up.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from styx.cli.cluster_process import SUPERVISED_VARIABLE
from styx.cli.exit_codes import USAGE, CommandFailed

FIRST_PAUSE_SECONDS: Final = 0.2
PAUSE_SECONDS_MAX: Final = 5.0
"""Pauses double from the first to this one."""
STEADY_SECONDS: Final = 10.0
"""A child that has lived for so long has not died at once."""
QUICK_DEATHS_MAX: Final = 6
"""A child that dies at once so many times in a row is given up."""


class Restarts:
    """The restarts of one child."""

    def __init__(self) -> None:
        self._quick = 0

    def pause_after(self, exit_code: int, lived_s: float) -> float | None:
        """Seconds until the child is started again after an end; None if it is given up."""
        if exit_code == USAGE:
            return None  # its arguments are wrong, and would be again
        if lived_s >= STEADY_SECONDS:
            self._quick = 0
        self._quick += 1
        if self._quick >= QUICK_DEATHS_MAX:
            return None
        return min(PAUSE_SECONDS_MAX, FIRST_PAUSE_SECONDS * 2.0 ** (self._quick - 1))


def how_it_ended(exit_code: int) -> str:
    """An exit code in words."""
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        return f"was killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was killed by signal {-exit_code}"


class Child:
    """`words` gives the arguments of each start, `say` gets lines for people, `changed` is called when `pid` has
    changed. `announced`: the caller tells people the id of the first process.

    A child that is told to stop, or whose supervisor is gone, has `stop_s` seconds until it is killed.
    """

    def __init__(
        self,
        name: str,
        words: Callable[[], Sequence[str]],
        environment: Mapping[str, str],
        say: Callable[[str], None],
        changed: Callable[[], None],
        stop_s: float,
        announced: bool = True,
    ) -> None:
        self.name = name
        self._words = words
        self._environment = {**environment, SUPERVISED_VARIABLE: f"{stop_s:g}"}
        self._say = say
        self._changed = changed
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()
        self._tell_pid = not announced
        self._stop_s = stop_s

    @property
    def pid(self) -> int | None:
        """The id of the running process, None between two of them."""
        process = self._process
        return None if process is None or process.returncode is not None else process.pid

    async def run(self) -> None:
        """Keeps the child running until `stop`; raises `CommandFailed` when it is given up."""
        restarts = Restarts()
        while not self._stopping.is_set():
            began_s = time.monotonic()
            exit_code = await self._once()
            if self._stopping.is_set():
                return
            pause_s = restarts.pause_after(exit_code, time.monotonic() - began_s)
            ended = how_it_ended(exit_code)
            if pause_s is None:
                raise CommandFailed(f"{self.name} {ended} and is not started again; its last lines above say why")
            self._say(f"{self.name} {ended}; it starts again in {pause_s:g} s")
            try:
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()
            except TimeoutError:
                pass

    async def stop(self) -> None:
        """Ends the child with SIGTERM, and with SIGKILL if that takes too long; returns when it is gone."""
        self._stopping.set()
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(self._stop_s):
                await process.wait()
        except TimeoutError:
            self._say(f"{self.name} does not stop within {self._stop_s:g} s; it is killed")
            self.kill()
            await process.wait()

    def kill(self) -> None:
        """Ends the child with SIGKILL; it is not started again."""
        self._stopping.set()
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def _once(self) -> int:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "styx",
            *self._words(),
            stdin=asyncio.subprocess.PIPE,
            env=self._environment,
            start_new_session=True,  # Ctrl-C is for the supervisor
        )
        if self._stopping.is_set():
            self._process.kill()
        self._changed()
        if self._tell_pid:
            self._say(f"{self.name} is process {self._process.pid}")
        self._tell_pid = True
        exit_code = await self._process.wait()
        self._changed()
        return exit_code
