"""A worker's second connection to the coordinator, on a separate thread: it reports functions that hold up the worker.

While such a function runs, the worker's event loop gives no sign of life. Its watchdog does so here, as long as only a
function holds up the worker, and not for ever (`styx.model.limits`). A process that stands still, or whose protocol
does, is silent here, too.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Final

from styx.cluster.wire import BUSY_FACT, Busy, encode
from styx.errors import ConfigurationError
from styx.transport import Connection, Hello, Security, dial

DIAL_SECONDS_MAX: Final = 2.0
RETRY_SECONDS: Final = 0.2

_log = logging.getLogger("styx.worker")


class Lifeline:
    """The second connection of one registration; `number` is the worker's."""

    def __init__(self, coordinator: str, security: Security, hello: Hello, number: int) -> None:
        self._coordinator = coordinator
        self._security = security
        facts = {BUSY_FACT: str(number)}
        self._hello = Hello(
            cluster=hello.cluster, role=hello.role, name=hello.name, incarnation=hello.incarnation, facts=facts
        )
        self._number = number
        self._loop: asyncio.AbstractEventLoop | None = None
        self._link: Connection | None = None
        self._over: asyncio.Event | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="styx-lifeline", daemon=True)

    def start(self) -> None:
        """Connects, and connects again whenever the connection is lost, until `stop`."""
        self._thread.start()

    def busy(self, what: str, seconds: float) -> None:
        """Reports that `what` has held up the worker for `seconds`. Any thread may call it."""
        loop = self._loop
        if loop is not None and not self._stopped:
            try:
                loop.call_soon_threadsafe(self._send, Busy(self._number, what, seconds))
            except RuntimeError:
                pass  # it has just ended

    def stop(self) -> None:
        """Ends the connection. Any thread may call it."""
        self._stopped = True
        loop, over = self._loop, self._over
        if loop is not None and over is not None:
            try:
                loop.call_soon_threadsafe(over.set)
            except RuntimeError:
                pass  # it has just ended

    def _send(self, message: Busy) -> None:
        if self._link is not None:
            self._link.send(encode(message))

    def _run(self) -> None:
        try:
            asyncio.run(self._keep())
        except Exception as error:  # noqa: BLE001 - told; without it a function that blocks is silence, as it was
            _log.error("the connection that reports blocking functions has failed: %s", error, exc_info=error)

    async def _keep(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        while not (self._stopped or self._over.is_set()):
            try:
                link = await dial(self._coordinator, self._security, self._hello, DIAL_SECONDS_MAX)
            except ConfigurationError:
                raise
            except OSError:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            await self._serve(link)

    async def _serve(self, link: Connection) -> None:
        assert self._over is not None
        lost = asyncio.Event()
        link.start(lambda *_: None, lambda *_: lost.set())
        self._link = link
        waiting = [asyncio.ensure_future(event.wait()) for event in (lost, self._over)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()
        self._link = None
        link.abort("the connection is no longer needed")
