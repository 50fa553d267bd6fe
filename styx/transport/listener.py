"""Listening for the other processes of a cluster: accepts connections, lets each peer prove itself, and hands on the
connections of peers that do. It counts the peers that it refuses, and logs each host once for each reason.

Strangers cost little: a bounded number of handshakes at once, of bounded length, each for a bounded time. A connection
that was handed on belongs to its receiver; closing the listener does not close it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from styx.transport.address import format_address
from styx.transport.connection import Connection
from styx.transport.handshake import Hello, ListenerHandshake, Refusal, Refused
from styx.transport.opening import Opening, refused_tls
from styx.transport.socket_options import HALF_OPEN_SECONDS
from styx.transport.tls import Security

UNAUTHENTICATED_MAX: Final = 64
"""Connections in their handshake at once; further ones wait to be accepted."""
HANDSHAKE_SECONDS_MAX: Final = 5.0
"""For one handshake, TLS included."""
CROWDED_HANDSHAKE_SECONDS_MAX: Final = 1.0
"""The same while others wait, so that silent peers do not keep out the others. Only time in which this process ran
counts: after a pause of its own, answers wait unread, and the peers that sent them were not slow.
"""
BACKLOG_MAX: Final = 1024
"""Connections that the kernel keeps until they are accepted."""

REMEMBERED_MAX: Final = 1024
"""Refusals that are not logged again, by host and reason; the one longest unseen is forgotten first."""

_CROWDED_SLICE_SECONDS: Final = 0.1
"""Of waiting for room at once: what passes beyond it is a pause of this process."""
_ACCEPT_PAUSE_SECONDS: Final = 1.0
"""Between a failure to accept, most likely for lack of file descriptors, and the next attempt."""

_log = logging.getLogger("styx.transport")


class Refusals:
    """Counts refused peers, and logs each host once for each reason, so that a persistent peer does not fill a disk."""

    def __init__(self) -> None:
        self.count = 0
        self._logged: OrderedDict[tuple[str, Refusal], None] = OrderedDict()

    def add(self, host: str, refused: Refused) -> None:
        self.count += 1
        key = (host, refused.refusal)
        if key not in self._logged:
            _log.warning("refused a connection from %s: %s (logged once)", host, refused)
            if len(self._logged) == REMEMBERED_MAX:
                self._logged.popitem(last=False)
            self._logged[key] = None
        self._logged.move_to_end(key)


class Listener:
    """A port that is listened on. `address` is `host:port`, with the port that was really taken."""

    def __init__(
        self,
        listening: socket.socket,
        security: Security,
        hello: Hello,
        on_connection: Callable[[Connection], None],
    ) -> None:
        self.address = format_address(*listening.getsockname()[:2])
        self._socket = listening
        self._secret = security.secret
        self._context = security.listener_context()
        self._hello = hello
        self._on_connection = on_connection
        self._refusals = Refusals()
        self._loop = asyncio.get_running_loop()
        # The handshakes under way, the oldest first: the peer's host, and when it began.
        self._handshakes: dict[asyncio.Task[None], tuple[str, float]] = {}
        self._paused = 0.0  # seconds by which waits for room took longer than they should have
        self._accepting = self._loop.create_task(self._accept())

    @property
    def refused(self) -> int:
        """Peers refused so far."""
        return self._refusals.count

    @property
    def handshakes(self) -> int:
        """Connections that have not proved themselves yet."""
        return len(self._handshakes)

    async def close(self) -> None:
        """Stops listening and ends unfinished handshakes."""
        self._accepting.cancel()
        # The accepting task ends first: a handshake that has not begun to run would not close its socket.
        await asyncio.wait([self._accepting])
        self._socket.close()
        for task in self._handshakes:
            task.cancel()
        if self._handshakes:
            await asyncio.wait(self._handshakes)

    async def _accept(self) -> None:
        while True:
            await self._wait_for_room()
            try:
                accepted, _ = await self._loop.sock_accept(self._socket)
            except OSError as error:
                _log.warning("%s cannot accept connections at the moment: %s", self.address, error)
                await asyncio.sleep(_ACCEPT_PAUSE_SECONDS)
                continue
            host = _host_of(accepted)
            task = self._loop.create_task(self._admit(host, accepted))
            self._handshakes[task] = (host, self._ran())
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._handshakes[task]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._loop.call_exception_handler(
                {"message": "a new connection could not be handed on", "exception": error}
            )

    async def _wait_for_room(self) -> None:
        while len(self._handshakes) >= UNAUTHENTICATED_MAX:
            oldest, (host, began) = next(iter(self._handshakes.items()))
            left = began + CROWDED_HANDSHAKE_SECONDS_MAX - self._ran()
            if left <= 0:
                oldest.cancel()
                self._refusals.add(host, Refused(Refusal.TOO_SLOW, "it was slow while others waited"))
            slice_seconds = min(max(left, 0), _CROWDED_SLICE_SECONDS)
            waits_since = self._loop.time()
            await asyncio.wait(self._handshakes, timeout=slice_seconds, return_when=asyncio.FIRST_COMPLETED)
            self._paused += max(self._loop.time() - waits_since - slice_seconds, 0)

    def _ran(self) -> float:
        """The loop's time without the pauses of this process while peers waited for room."""
        return self._loop.time() - self._paused

    async def _admit(self, host: str, accepted: socket.socket) -> None:
        opening = Opening(ListenerHandshake(self._secret, self._hello))
        try:
            connection = await self._authenticated(accepted, opening)
            self._on_connection(connection)
        except Refused as refused:
            opening.abandon()
            self._refusals.add(host, refused)
        except BaseException:
            opening.abandon()
            raise

    async def _authenticated(self, accepted: socket.socket, opening: Opening) -> Connection:
        tls = self._context
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS_MAX):
                await self._loop.connect_accepted_socket(
                    lambda: opening,
                    accepted,
                    ssl=tls,
                    ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX if tls else None,
                    ssl_shutdown_timeout=HALF_OPEN_SECONDS if tls else None,
                )
                return await opening.connection
        except TimeoutError:
            cause = f"it did not prove itself within {HANDSHAKE_SECONDS_MAX:g} s"
            raise Refused(Refusal.TOO_SLOW, cause) from None
        except ssl.SSLError as error:
            raise refused_tls(error) from None
        except Refused:
            raise
        except OSError as error:
            raise Refused(Refusal.HUNG_UP, f"it hung up during the handshake: {type(error).__name__}") from None


async def listen(
    host: str, port: int, security: Security, hello: Hello, on_connection: Callable[[Connection], None]
) -> Listener:
    """Listens on `host` and `port`; 0 takes a free one. `on_connection` gets the connection of each authenticated peer,
    and calls its `start`.

    Raises `OSError` if the port cannot be had, `ConfigurationError` for a bad hello or certificate.
    """
    security.check(hello)
    ListenerHandshake(security.secret, hello)  # raises for a bad hello here, not at the first peer
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, where = found[0]
    listening = socket.create_server(where[:2], family=family, backlog=BACKLOG_MAX)
    listening.setblocking(False)
    try:
        return Listener(listening, security, hello, on_connection)
    except BaseException:
        listening.close()
        raise


def _host_of(accepted: socket.socket) -> str:
    try:
        return str(accepted.getpeername()[0])
    except OSError:
        return "a peer that is gone"
