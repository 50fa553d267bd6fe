"""TLS of a gateway: its certificate and key from PEM files, which are read again when they change.

A change counts for the connections that are made from then on; those there are go on. It asks clients for no
certificate: API keys and tokens say who they are. Between processes of a cluster there is `styx.transport.tls`.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from styx.errors import ConfigurationError
from styx.gateway.watched_files import WatchedFiles


class GatewayTls:
    """`certificate` may hold intermediate ones behind its own; `key` is not encrypted. TLS 1.2 at least.

    Raises `ConfigurationError` for files that are no such pair.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self.context = _context()
        self._watched = WatchedFiles([certificate, key], self._load)

    def poll(self) -> None:
        """Reads the files again if they have changed; a pair that does not fit leaves the one in use."""
        self._watched.poll()

    def _load(self) -> None:
        # First elsewhere: a context that has taken half of a pair serves nobody.
        for context in (_context(), self.context):
            try:
                # With a password at hand OpenSSL never asks the terminal for one.
                context.load_cert_chain(self._certificate, self._key, password="")
            except (ssl.SSLError, OSError, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                raise ConfigurationError(
                    f"{self._certificate} and {self._key} are not a PEM certificate and its unencrypted key: {why}"
                ) from None


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    return context
