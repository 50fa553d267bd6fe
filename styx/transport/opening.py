"""Opening connections: `dial` connects to a listening process, and an `Opening` authenticates either side's transport.

Nothing is retried: the caller decides when to dial again. An opening buffers at most one read and one frame of the
handshake, whatever the peer sends.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import cast

from styx.transport.address import parse_address
from styx.transport.connection import Connection
from styx.transport.frame import UNAUTHENTICATED_FRAME_BYTES_MAX, FrameTooLarge, prefix_of, take_frame
from styx.transport.handshake import (
    NO_HANDSHAKE,
    DialerHandshake,
    Hello,
    ListenerHandshake,
    Refusal,
    Refused,
    refuse_malformed,
)
from styx.transport.socket_options import HALF_OPEN_SECONDS, set_socket_options
from styx.transport.tls import Security


class Opening(asyncio.Protocol):
    """Drives a handshake over a transport, which `connection` then takes over; `connection` may fail with `Refused`.

    The caller that waits for `connection` limits the time, and calls `abandon` if it gives up.
    """

    def __init__(self, handshake: DialerHandshake | ListenerHandshake) -> None:
        self.connection: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
        self._handshake = handshake
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()

    def abandon(self) -> None:
        """Ends the opening in any state; a reply to a refused peer is still sent."""
        if not self.connection.cancel() and not self.connection.cancelled():
            self.connection.exception()  # looked at, so that asyncio does not report it
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
        # `Connection.start` resumes reading: before, there is no receiver of frames.
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


async def dial(
    address: str,
    security: Security,
    hello: Hello,
    timeout: float,  # noqa: ASYNC109 - it belongs into the error's text
) -> Connection:
    """A connection to the process at `address`, `host:port`, within `timeout` seconds.

    Nothing is read before its `start`. Raises `Refused` if one side does not accept the other, `TimeoutError`
    and other `OSError`s without an answer, `ConfigurationError` for a bad address, hello or certificate.
    """
    host, port = parse_address(address)
    security.check(hello)
    context = security.dialer_context()
    opening = Opening(DialerHandshake(security.secret, hello))
    try:
        async with asyncio.timeout(timeout):
            await asyncio.get_running_loop().create_connection(
                lambda: opening, host, port, ssl=context, ssl_shutdown_timeout=HALF_OPEN_SECONDS if context else None
            )
            return await opening.connection
    except OSError as error:
        opening.abandon()
        raise _explained(address, timeout, error) from None
    except BaseException:
        opening.abandon()
        raise


def _explained(address: str, timeout: float, error: OSError) -> OSError:
    """The error for the caller of `dial`."""
    if isinstance(error, Refused) and error.refusal is Refusal.HUNG_UP:
        return Refused(error.refusal, f"{address}: {error}. Do both sides use TLS, or neither? Its log may say more")
    if isinstance(error, Refused):
        return Refused(error.refusal, f"{address}: {error}")
    if isinstance(error, TimeoutError):
        return TimeoutError(f"{address} did not answer within {timeout:g} s")
    if isinstance(error, ssl.SSLError):
        return Refused(Refusal.TLS, f"{address}: {refused_tls(error)}")
    kind = type(error) if isinstance(error, ConnectionError) else ConnectionError
    return kind(f"{address} cannot be reached: {error.strerror or error}. Does anything listen there?")


def refused_tls(error: ssl.SSLError) -> Refused:
    """The refusal for a failed TLS handshake."""
    cause = getattr(error, "verify_message", None) or error.reason or "no reason given"
    return Refused(
        Refusal.TLS,
        f"TLS failed: {cause}. Both sides must use TLS, or neither, with certificates of the same authority",
    )
