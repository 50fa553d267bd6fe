"""The PostgreSQL port as commands offer it: an address, a file of users, and a certificate, which are read again when
they change.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from styx.errors import ConfigurationError
from styx.gateway.watched_files import WatchedFiles
from styx.postgres.scram import Verifier
from styx.postgres.server import CONNECTIONS_MAX, PostgresServer, Tls
from styx.postgres.users import read_users
from styx.query.service import Limits, QueryService
from styx.transport.address import parse_address

POLL_SECONDS: Final = 2.0
"""Between two looks at the files."""


@dataclass(frozen=True)
class PostgresOptions:
    """`address`: HOST:PORT. `users`: a file of lines NAME:SCRAM-SHA-256$…; `user_line` makes them. `certificate` and
    `key`: PEM files, both or none; with them nobody gets in without TLS.
    """

    address: str
    users: Path
    certificate: Path | None = None
    key: Path | None = None
    limits: Limits = field(default_factory=Limits)
    connections_max: int = CONNECTIONS_MAX


@asynccontextmanager
async def serve_postgres(service: QueryService, options: PostgresOptions) -> AsyncIterator[PostgresServer]:
    """Serves queries of the service over PostgreSQL's protocol while the context lasts.

    Raises `ConfigurationError` for a bad address, file or certificate, and `OSError` if the port cannot be had. A file
    that is wrong when it changes is logged, and the former content counts.
    """
    host, port = parse_address(options.address)
    if (options.certificate is None) != (options.key is None):
        raise ConfigurationError("a certificate needs its key, and a key its certificate")
    users: Mapping[str, Verifier] = {}

    def load() -> None:
        nonlocal users
        try:
            users = read_users(options.users.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{options.users} cannot be read: {error}") from None

    watched = [WatchedFiles([options.users], load)]
    tls: Tls | None = None
    if options.certificate is not None and options.key is not None:
        certificate = _Certificate(options.certificate, options.key)
        watched.append(WatchedFiles([options.certificate, options.key], certificate.load))
        tls = certificate
    async with PostgresServer(
        service,
        lambda: users,
        host,
        port,
        limits=options.limits,
        tls=tls,
        connections_max=options.connections_max,
    ) as server:
        polling = asyncio.create_task(_poll(watched))
        try:
            yield server
        finally:
            polling.cancel()
            await asyncio.wait([polling])


async def _poll(watched: list[WatchedFiles]) -> None:
    while True:
        await asyncio.sleep(POLL_SECONDS)
        for each in watched:
            each.poll()


class _Certificate(Tls):
    """The certificate that is served at present."""

    def __init__(self, certificate: Path, key: Path) -> None:
        super().__init__(_context())
        self._files = certificate, key

    def load(self) -> None:
        for context in (_context(), self.context):  # one that half of a pair would spoil is tried first
            try:
                context.load_cert_chain(*self._files, password="")
            except (ssl.SSLError, OSError, ValueError) as error:
                raise ConfigurationError(
                    f"{self._files[0]} and {self._files[1]} are not a PEM certificate and its unencrypted key: {error}"
                ) from None
        self.certificate_hash = certificate_hash(self._files[0].read_bytes())


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    return context


def certificate_hash(pem: bytes) -> bytes | None:
    """The hash of a certificate for channel binding (RFC 5929, section 4); None if its signature has no hash of its
    own, or `cryptography`, of the extra `auth`, is not installed.
    """
    try:
        from cryptography.x509 import load_pem_x509_certificate
    except ImportError:
        return None
    certificate = load_pem_x509_certificate(pem)
    algorithm = certificate.signature_hash_algorithm
    if algorithm is None:
        return None
    name = "sha256" if algorithm.name in ("md5", "sha1") else algorithm.name
    from cryptography.hazmat.primitives.serialization import Encoding

    return hashlib.new(name, certificate.public_bytes(Encoding.DER)).digest()
