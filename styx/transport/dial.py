"""Connecting to a process that listens. Tries once; the caller decides when to try again."""

from __future__ import annotations

import asyncio
import ssl

from styx.transport.address import parse_address
from styx.transport.connection import Connection
from styx.transport.handshake import DialerHandshake, Hello, Refusal, Refused
from styx.transport.opening import Opening, refused_tls
from styx.transport.socket_options import HALF_OPEN_SECONDS
from styx.transport.tls import Security


async def dial(
    address: str,
    security: Security,
    hello: Hello,
    timeout: float,  # noqa: ASYNC109 - it belongs into the error's text
) -> Connection:
    """A connection to the process at `address`, `host:port`, within `timeout` seconds.

    Call its `start`; nothing is read before. Raises `Refused` if one side does not accept the other, `TimeoutError`
    and other `OSError`s if nobody answers, `ConfigurationError` for a bad address, hello or certificate.
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
    """The error that the caller of `dial` sees."""
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
