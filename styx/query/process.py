"""The process of one query, seen from its parent: its start, its pipes, and its end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import IO, Final

_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "STYX_PLAIN")
"""The variables that the process gets: none with a secret."""


class QueryProcess:
    """A process that has begun, and waits for its query. `to` takes frames for it, from `descriptor` come its own, and
    `giving` takes descriptors. It ends by itself when its parent does.
    """

    def __init__(self) -> None:
        self.giving, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "styx.query.sql_process", str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the parent, which ends it
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.to: IO[bytes] = self._process.stdin
        self.descriptor = self._process.stdout.fileno()

    @property
    def number(self) -> int:
        """The system's number of it."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it has ended by itself, or was killed."""
        return self._process.poll() is not None

    def status(self) -> int:
        """Its status, once it has ended."""
        return self._process.wait()

    def kill(self) -> None:
        """Ends it. From any thread: who waits for a frame sees its end."""
        self._process.kill()

    def end(self) -> None:
        """Ends it, and closes all that leads to it; nobody may wait for a frame meanwhile."""
        self._process.kill()
        self._process.wait()
        self.giving.close()
        for file in (self._process.stdin, self._process.stdout):
            try:
                assert file is not None
                file.close()
            except BrokenPipeError:
                pass  # what was not yet written is for nobody


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
