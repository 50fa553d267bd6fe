"""The home of a client: the event loop and the process that opened it. Use elsewhere is refused, before a request is
sent.
"""

from __future__ import annotations

import asyncio
import os
import threading

from styx.errors import ConfigurationError


class Home:
    """The event loop that runs where this is made, its thread and its process."""

    __slots__ = ("_loop", "_pid", "_thread")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.current_thread().name
        self._pid = os.getpid()

    def check(self, instead: str) -> None:
        """Raises `ConfigurationError` off this loop; `instead` names the client for other threads."""
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            return
        check_process(self._pid)
        where = "no event loop runs here" if running is None else "another event loop runs here"
        raise ConfigurationError(
            f"this client belongs to the event loop of thread {self._thread!r}, and {where}, in thread "
            f"{threading.current_thread().name!r}; nothing was sent. From other threads use {instead}"
        )


def check_process(pid: int) -> None:
    """Raises `ConfigurationError` in a process that was forked from process `pid`."""
    here = os.getpid()
    if here != pid:
        raise ConfigurationError(
            f"this client was opened in process {pid}, of which this process ({here}) is a fork, and a fork has none "
            "of its threads; nothing was sent. Open a client after the fork"
        )
