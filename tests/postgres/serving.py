"""A server over the shop's snapshot, for tests with real clients: in a process of its own, as a client that blocks
needs, or on the test's own loop.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from styx.postgres.scram import make_verifier
from styx.postgres.server import PostgresServer, Tls
from styx.query.schema import of_app
from styx.query.service import Limits
from styx.query.source import of_directory
from tests.postgres.snapshot_service import SnapshotService
from tests.query.shop import app

PASSWORD = "pässword"
USERS = {"ann": make_verifier(PASSWORD, b"salt of ann here")}
LIMITS = Limits(memory_mib=300, seconds=60.0, rows=2_000)


@asynccontextmanager
async def serving(directory: Path, tls: Tls | None = None, **options: object) -> AsyncIterator[PostgresServer]:
    """A server on this loop."""
    service = SnapshotService(of_directory(directory), of_app(app))
    given = {"limits": LIMITS, "tls": tls, **options}
    try:
        async with PostgresServer(service, lambda: USERS, "127.0.0.1", 0, **given) as server:  # type: ignore[arg-type]
            yield server
    finally:
        service.close()


async def main(words: Sequence[str]) -> None:
    """`DIRECTORY [CERTIFICATE KEY]`: serves until standard input ends; prints the port."""
    tls = None
    if words[1:]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(words[1], words[2])
        tls = Tls(context)
    async with serving(Path(words[0]), tls) as server:
        print(server.address[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
