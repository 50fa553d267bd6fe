"""One child process of a cluster under test, which can be started, killed, frozen, thawed and stopped. Its output goes
into a file.

Signals go only to the child's PID. On Linux the child dies with its parent, however the parent ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from styx.testing.patience import PATIENCE_SECONDS

STOP_SECONDS_MAX: Final = PATIENCE_SECONDS
"""Limit on an orderly end."""
TAIL_LINES: Final = 30

# The kernel's PR_SET_PDEATHSIG survives exec.
_TIED: Final = """
import ctypes, os, sys
try:
    ctypes.CDLL(None).prctl(1, 9)
except AttributeError:
    pass
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


class ChildFailed(AssertionError):
    """A child did not end as it should; the message has its last lines."""


class ChildProcess:
    """One child process; `name` is the name of its log file."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @classmethod
    async def start(cls, name: str, arguments: Sequence[str], environment: Mapping[str, str], directory: Path) -> Self:
        """Runs this Python with `arguments` in `directory`; appends its output to NAME.log there."""
        log = directory / f"{name}.log"
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-S",
                "-c",
                _TIED,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=directory,
                env={**os.environ, **environment},
                start_new_session=True,  # Ctrl-C is for the parent
            )
        return cls(name, process, log)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process has not ended; a frozen process is alive."""
        return self._process.returncode is None

    async def kill(self) -> None:
        """Sends SIGKILL, and waits for the end."""
        self._signal(signal.SIGKILL)
        await self._process.wait()

    def freeze(self) -> None:
        """Sends SIGSTOP: the process is stopped, and its connections stay open."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Sends SIGCONT."""
        self._signal(signal.SIGCONT)

    async def stop(self, well: Collection[int] = (0,)) -> None:
        """Sends SIGTERM. Raises `ChildFailed` if the process does not end with one of the statuses `well`."""
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                status = await self._process.wait()
        except TimeoutError:
            await self.kill()
            raise ChildFailed(
                f"{self.name} did not end within {STOP_SECONDS_MAX:g} s of SIGTERM.{self.tail()}"
            ) from None
        if status not in well:
            raise ChildFailed(f"{self.name} ended with exit status {status} after SIGTERM.{self.tail()}")

    def check(self) -> None:
        """Raises `ChildFailed` if the process has ended by itself."""
        if not self.alive:
            raise ChildFailed(f"{self.name} ended by itself, exit status {self._process.returncode}.{self.tail()}")

    def tail(self) -> str:
        """The last lines of the output, for an error message."""
        lines = self.log.read_text("utf-8", "replace").splitlines()[-TAIL_LINES:]
        return f"\nThe end of {self.log}:\n" + "\n".join(f"    {line}" for line in lines)

    def _signal(self, number: signal.Signals) -> None:
        if self.alive:
            os.kill(self.pid, number)
