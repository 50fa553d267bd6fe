"""A worker process: registers with the coordinator, serves its registration, and registers anew when that ends.

No state is kept from one registration to the next: each time the slots are assigned and loaded anew.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from styx.cluster.options import ProcessOptions
from styx.cluster.reaching import reach_coordinator
from styx.cluster.wire import GATEWAY, Offer, TurnedAway, Welcome, encode, worker_hears
from styx.cluster.worker.metrics import exposition
from styx.cluster.worker.node import Node, OwnApp
from styx.cluster.worker.session import WorkerSession
from styx.deployment.package import pack, read_header
from styx.host.background import Background, on_running_loop
from styx.kafka.topics import topics_of
from styx.model.app import App
from styx.transport import Connection, Listener, listen
from styx.transport.address import format_address

REGISTER_RETRY_SECONDS: Final = 0.1
"""The pause before another attempt to reach the coordinator, or to register with one that is not ready."""
TURNED_AWAY_RETRY_SECONDS: Final = 1.0
"""The pause after the coordinator has refused this worker."""
PING_SECONDS: Final = 0.25
SILENCE_SECONDS: Final = 3.0
"""A coordinator that is silent for longer counts as lost, although the connection is open."""

_log = logging.getLogger("styx.worker")


class WorkerProcess:
    """A worker process. `run` ends when it is cancelled, or raises an error that a new registration cannot mend."""

    def __init__(self, options: ProcessOptions, app: App | None = None) -> None:
        self._options = options
        self._package = b"" if app is None else pack(app, options.security.secret)
        secret = options.security.secret
        own = None if app is None else OwnApp(app, read_header(self._package, secret).fingerprint)
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.background = Background(self._broken, on_running_loop())
        store = options.open_store()
        self.node = Node(options.name, options.security, options.log, store, self.background, own)
        self.node.coordinator = options.coordinator
        self.session: WorkerSession | None = None
        self.metrics: Callable[[], str] = exposition(self).text
        """Returns the text of `/metrics`, in Prometheus' format."""
        self._listener: Listener | None = None
        self._over: asyncio.Future[str] | None = None
        self._turned_away_for = ""

    async def run(self) -> None:
        """Serves until it is cancelled."""
        options = self._options
        # Peers learn the address from the coordinator. Without a registration their connections are refused.
        self._listener = await listen(options.host, options.port, options.security, self.node.hello(), self._accept)
        listener = self._listener
        self.node.refused = lambda: listener.refused
        port = self._listener.address.rpartition(":")[2]
        self.node.listens_at = format_address(options.advertise or options.host, int(port))
        try:
            while True:
                await self._registration()
        finally:
            self._end_session()
            self.background.abandon()
            await self._listener.close()

    def stuck(self) -> str | None:
        """The sign that the protocol makes no progress on this worker; None if it does, or without a registration."""
        if self.session is None:
            return None
        silent_s = time.monotonic() - self.session.beat_at_s
        if silent_s <= self.session.silence_max_s:
            return None
        return f"its protocol has made no pass for {silent_s:.1f} s"

    def unready(self) -> str | None:
        """Why this worker cannot serve now; None if it can."""
        if self.session is None:
            return self._turned_away_for or "it is not registered with the coordinator"
        return self.stuck() or self.session.unready()

    async def leave(self, seconds_max: float) -> str:
        """Waits until other workers have the slots, at most `seconds_max`. Returns the outcome as a sentence. Does not
        wait without a registration.
        """
        session, over, departure = self.session, self._over, self.node.departure
        if session is None or over is None:
            return "no coordinator counts on it: it has nothing to hand over"
        departure.leaving = True
        session.leave()
        released = asyncio.ensure_future(departure.released.wait())
        waiting: list[asyncio.Future[Any]] = [released, over]
        await asyncio.wait(waiting, timeout=seconds_max, return_when=asyncio.FIRST_COMPLETED)
        if released.done():
            return "others have its slots"
        released.cancel()
        lost = f"the coordinator is away: {over.result()}" if over.done() else f"still there after {seconds_max:g} s"
        return f"{lost}; what it has not stored is replayed from the log"

    def _accept(self, connection: Connection) -> None:
        if self.session is None:
            connection.abort("this worker is not registered yet")
        elif connection.peer.role == GATEWAY:
            self.session.reads.accept(connection)
        else:
            self.session.peers.accept(connection)

    async def _registration(self) -> None:
        options = self._options
        link = await reach_coordinator(
            options.coordinator, options.security, self.node.hello(), REGISTER_RETRY_SECONDS, _log
        )
        over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._over = over

        def ended(reason: str, error: BaseException | None = None) -> None:
            if error is not None:
                _log.error("%s: %s", reason, error, exc_info=error)
                if not self._failed.done():
                    self._failed.set_exception(error)
            if not over.done():
                over.set_result(reason)

        def hear(_: Connection, payloads: list[bytes]) -> None:
            for payload in payloads:
                self._hear(payload, link, ended)

        link.start(
            hear,
            lambda _, reason: ended(f"the connection to the coordinator is lost: {reason}"),
            ping_seconds=PING_SECONDS,
            silence_seconds=SILENCE_SECONDS,
        )
        if self._package:
            link.send(encode(Offer(self._package)))
        waiting: list[asyncio.Future[Any]] = [over, self._failed]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        registered = self.session is not None
        self._end_session()
        link.abort("the registration is over")
        if self._failed.done():
            self._failed.result()
        if registered:
            _log.warning("registering anew: %s", over.result())
        else:
            await asyncio.sleep(TURNED_AWAY_RETRY_SECONDS if self._turned_away_for else REGISTER_RETRY_SECONDS)

    def _hear(self, payload: bytes, link: Connection, ended: object) -> None:
        if self.session is not None:
            self.session.hear(payload)
            return
        message = worker_hears.decode(payload)
        assert callable(ended)
        if isinstance(message, TurnedAway):
            self._turned_away(message.reason)
            ended("turned away", None)
            return
        assert isinstance(message, Welcome), "the coordinator's first message is a welcome"
        self._turned_away_for = ""
        self.node.topics = topics_of(message.deployment.app)
        self.session = WorkerSession(self.node, link, message, ended)

    def _turned_away(self, reason: str) -> None:
        if reason != self._turned_away_for:
            self._turned_away_for = reason
            _log.error("the coordinator turns this worker away: %s. It goes on trying", reason)

    def _end_session(self) -> None:
        if self.session is not None:
            self.session.close()
            self.session = None

    def _broken(self, what: str, error: BaseException) -> None:
        error.add_note(f"while {what}")
        if not self._failed.done():
            self._failed.set_exception(error)
