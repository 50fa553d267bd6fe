"""The source of tokens' signing keys: a file, or an https address from which they are fetched from time to time.

While a file is damaged or an address does not answer, the last keys stay in use, for a limited time.
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from styx.errors import ConfigurationError
from styx.gateway.auth.tokens import SigningKey, read_jwks, read_pem
from styx.gateway.hosts import is_loopback
from styx.values.codec import shown

REFRESH_SECONDS: Final = 300.0
RETRY_SECONDS: Final = 10.0
"""The shortest time between two fetches, also if tokens with unknown keys arrive."""
STALE_SECONDS_MAX: Final = 24 * 3600.0
"""How long keys stay valid that could not be fetched again."""
FETCH_SECONDS_MAX: Final = 5.0
JWKS_BYTES_MAX: Final = 1024 * 1024

_NO_JWKS: Final = (msgspec.DecodeError, ValueError, TypeError, RecursionError)

_log = logging.getLogger("styx.gateway")


def check_url(url: str) -> None:
    """Raises `ConfigurationError` for a URL from which signing keys must not be fetched."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = parts = None
    if parts is None or port == 0 or "@" in parts.netloc:
        raise ConfigurationError(
            "the URL of the signing keys is not valid, or holds a password: one looks like https://HOST:PORT/PATH"
        )
    if not host or (parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host))):
        raise ConfigurationError(
            f"signing keys are fetched from https:// only, not from {shown(url)}: whoever is in between could sign"
        )


def read_file(path: Path) -> list[SigningKey]:
    """The keys of a JWK set, or of a PEM file; raises `ConfigurationError`."""
    try:
        data = path.read_bytes()
        if data.lstrip().startswith(b"{"):
            return read_jwks(msgspec.json.decode(data))
        return [read_pem(data)]
    except OSError as error:
        raise ConfigurationError(f"the signing keys {path} cannot be read: {error.strerror}") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    except _NO_JWKS as error:
        raise ConfigurationError(f"{path} is no JWK set: {error}") from None


def fetch(url: str) -> list[SigningKey]:
    """Fetches the keys of the JWK set at `url`. Blocks. Raises `ConfigurationError` or `OSError`."""
    ends_s = time.monotonic() + FETCH_SECONDS_MAX
    parts = urlsplit(url)
    host = parts.hostname or ""
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        connection = http.client.HTTPSConnection(host, parts.port, timeout=FETCH_SECONDS_MAX, context=context)
    else:
        connection = http.client.HTTPConnection(host, parts.port, timeout=FETCH_SECONDS_MAX)
    cutting = threading.Timer(FETCH_SECONDS_MAX, _cut, [connection])
    cutting.daemon = True
    cutting.start()
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", path, headers={"Accept": "application/json"})
        answer = connection.getresponse()
        data = answer.read(JWKS_BYTES_MAX + 1)
        if time.monotonic() >= ends_s:
            raise TimeoutError(f"{url} did not answer within {FETCH_SECONDS_MAX:g} s")
        # A redirect is not followed: it could leave https.
        if answer.status != 200 or len(data) > JWKS_BYTES_MAX:
            raise ConfigurationError(f"{url} gives status {answer.status} and {len(data)} bytes, and no JWK set")
        return read_jwks(msgspec.json.decode(data))
    except ConfigurationError:
        raise
    except _NO_JWKS as error:
        raise ConfigurationError(f"{url} gives no JWK set: {error}") from None
    except http.client.HTTPException as error:
        raise ConfigurationError(f"{url} gives no answer: {type(error).__name__}") from None
    finally:
        cutting.cancel()
        connection.close()


def _cut(connection: http.client.HTTPConnection) -> None:
    """Ends a fetch that takes too long in all. The limit of a single read does not end one whose server sends a byte
    now and then.
    """
    if connection.sock is not None:
        with contextlib.suppress(OSError):
            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)


class FetchTimes:
    """Decides when keys are fetched again, and when they are too old. Callers give the time in seconds of one clock."""

    def __init__(self) -> None:
        self._asked_s = float("-inf")
        self._had_s = float("-inf")

    def is_due(self, now_s: float, wanted: bool) -> bool:
        """Whether to fetch now. `wanted`: a token has arrived that fits no key."""
        missing = wanted or self._had_s < now_s - REFRESH_SECONDS
        return missing and now_s - self._asked_s >= RETRY_SECONDS

    def asked(self, now_s: float) -> None:
        """A fetch begins."""
        self._asked_s = now_s

    def had(self, now_s: float) -> None:
        """A fetch has brought keys."""
        self._had_s = now_s

    def is_stale(self, now_s: float) -> bool:
        """Whether the last keys are too old."""
        return self._had_s < now_s - STALE_SECONDS_MAX
