"""The security of a cluster's connections: its secret, its name and, if its network is not private, TLS with
certificates that both sides verify against the cluster's own authority.

Certificate files are read when a context is made, so that replaced files count from the next connection on.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from styx.errors import ConfigurationError
from styx.transport.handshake import Hello
from styx.values.codec import shown


@dataclass(frozen=True)
class TlsFiles:
    """Paths of PEM files. `certificate` may hold intermediate ones behind its own; `key` is not encrypted; only
    certificates signed by `authority` are accepted.

    Processes are addressed by IP, so a certificate's names are not compared with the address unless `check_hostname`
    is set: whoever the cluster's authority signed for belongs to the cluster.
    """

    certificate: str | os.PathLike[str]
    key: str | os.PathLike[str]
    authority: str | os.PathLike[str]
    check_hostname: bool = False


@dataclass(frozen=True)
class Security:
    """The settings that all processes of a cluster share. Raises `ConfigurationError` for an empty secret or name."""

    secret: bytes = field(repr=False)
    cluster: str
    tls: TlsFiles | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.secret, bytes) or not self.secret:
            raise ConfigurationError("the cluster's secret is empty or no bytes; a good one is 32 random bytes")
        if not isinstance(self.cluster, str) or not self.cluster:
            raise ConfigurationError(f"a cluster needs a name, got {shown(self.cluster)}")

    def check(self, hello: Hello) -> None:
        """Raises `ConfigurationError` if a hello names another cluster."""
        if hello.cluster != self.cluster:
            raise ConfigurationError(f"a process of cluster {self.cluster!r} says it is of {shown(hello.cluster)}")

    def listener_context(self) -> ssl.SSLContext | None:
        """The TLS context of the side that listens; None without TLS. Raises `ConfigurationError`."""
        return None if self.tls is None else _context(self.tls, ssl.PROTOCOL_TLS_SERVER)

    def dialer_context(self) -> ssl.SSLContext | None:
        """The TLS context of the side that connects; None without TLS. Raises `ConfigurationError`."""
        if self.tls is None:
            return None
        context = _context(self.tls, ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.tls.check_hostname
        return context


def _context(files: TlsFiles, side: int) -> ssl.SSLContext:
    for what, path in (("certificate", files.certificate), ("key", files.key), ("authority", files.authority)):
        _check_readable(what, Path(path))
    context = ssl.SSLContext(side)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_verify_locations(cafile=files.authority)
    except (ssl.SSLError, OSError) as error:
        raise ConfigurationError(f"{files.authority} holds no PEM certificate of an authority: {error}") from error
    try:
        # With a password at hand OpenSSL never asks the terminal for one.
        context.load_cert_chain(files.certificate, files.key, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ConfigurationError(
            f"{files.certificate} and {files.key} are not a PEM certificate and its unencrypted key: {error}"
        ) from error
    return context


def _check_readable(what: str, path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise ConfigurationError(f"the TLS {what} {path} cannot be read: {error.strerror}") from error
