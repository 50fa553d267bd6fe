"""TLS of a gateway: its certificate and key from PEM files, which are read again when they change.

A change takes effect for new connections; open ones go on. The gateway asks clients for no certificate, because API
keys and tokens identify them. `styx.transport.tls` is the TLS between the processes of a cluster.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from styx.errors import ConfigurationError
from styx.gateway.watched_files import WatchedFiles


class GatewayTls:
    """The certificate and key. `certificate` may contain intermediate certificates after its own; `key` is not
    encrypted. TLS 1.2 is the lowest version.

    Raises `ConfigurationError` for files that are no certificate with its key.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self.context = _context()
        self._watched = WatchedFiles([certificate, key], self._load)

    def poll(self) -> None:
        """Reads the files again if they have changed. If certificate and key do not fit, the old pair stays in use."""
        self._watched.poll()

    def _load(self) -> None:
        # Another context tries the pair first: a context with half of a pair could serve no connection.
        for context in (_context(), self.context):
            try:
                # With any password given, OpenSSL never asks for one at the terminal.
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
