"""One child process of `styx up`: started, started again when it dies, stopped. It ends when this process does."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from styx.cli.exit_codes import CommandFailed
from styx.cli.supervised import VARIABLE
from styx.cli.up.restarts import Restarts, how_it_ended


class Child:
    """`words` gives the arguments of each start, `say` gets lines for people, `changed` hears that `pid` changed.

    `announced`: somebody else tells people the id of its first process. Told to stop, it has `stop_s` seconds.
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
        self._environment = {**environment, VARIABLE: "1"}
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
        """Keeps it running until `stop`; raises `CommandFailed` when it is given up."""
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
        """SIGTERM, and SIGKILL if that takes too long; returns when it is gone."""
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
        """SIGKILL; it is not started again."""
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
