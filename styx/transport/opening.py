"""The first moments of a connection: drives a handshake over a transport, then gives the transport to a `Connection`.

Buffers at most one read and one frame of a handshake, whatever the peer sends. The caller that waits for `connection`
limits the time.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import cast

from styx.transport.connection import Connection
from styx.transport.frame import UNAUTHENTICATED_FRAME_BYTES_MAX, FrameTooLarge, prefix_of, take_frame
from styx.transport.handshake import (
    NO_HANDSHAKE,
    DialerHandshake,
    ListenerHandshake,
    Refusal,
    Refused,
    refuse_malformed,
)
from styx.transport.socket_options import set_socket_options


class Opening(asyncio.Protocol):
    """`connection` becomes the connection, or fails with `Refused`. Whoever does not take it calls `abandon`."""

    def __init__(self, handshake: DialerHandshake | ListenerHandshake) -> None:
        self.connection: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
        self._handshake = handshake
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()

    def abandon(self) -> None:
        """Ends it in whatever state it is; an answer to a refused peer is still sent."""
        if not self.connection.cancel() and not self.connection.cancelled():
            self.connection.exception()  # has now been looked at, so asyncio does not report it
        if self._transport is not None and not self._transport.is_closing():
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.connection.done():
            self._transport.abort()
            return
        set_socket_options(transport.get_extra_info("socket"))
        self._send(self._handshake.start())

    def data_received(self, data: bytes) -> None:
        if self.connection.done():
            return
        self._received += data
        try:
            while not self.connection.done():
                payload = take_frame(self._received, UNAUTHENTICATED_FRAME_BYTES_MAX)
                if payload is None:
                    return
                self._send(self._handshake.receive(payload))
                if self._handshake.peer is not None:
                    self._hand_over()
        except FrameTooLarge:
            self._refuse(refuse_malformed(NO_HANDSHAKE))
        except Refused as refused:
            self._refuse(refused)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.connection.done():
            return
        if isinstance(exc, ssl.SSLError):
            self.connection.set_exception(refused_tls(exc))
        else:
            self.connection.set_exception(Refused(Refusal.HUNG_UP, "the peer hung up during the handshake"))

    def _send(self, payload: bytes | None) -> None:
        if payload is not None:
            assert self._transport is not None
            self._transport.write(prefix_of(len(payload)) + payload)

    def _hand_over(self) -> None:
        assert self._transport is not None
        assert self._handshake.peer is not None
        # Nothing may be read before somebody has said where frames go.
        self._transport.pause_reading()
        connection = Connection(self._transport, self._handshake.peer, bytes(self._received))
        self._transport.set_protocol(connection)
        self.connection.set_result(connection)

    def _refuse(self, refused: Refused) -> None:
        assert self._transport is not None
        self._received.clear()
        self.connection.set_exception(refused)
        self._send(refused.answer)
        self._transport.close()


def refused_tls(error: ssl.SSLError) -> Refused:
    """The refusal for a failed TLS handshake."""
    cause = getattr(error, "verify_message", None) or error.reason or "no reason given"
    return Refused(
        Refusal.TLS,
        f"TLS failed: {cause}. Both sides must use TLS, or neither, with certificates of the same authority",
    )
