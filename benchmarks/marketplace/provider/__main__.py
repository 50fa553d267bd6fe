"""`python -m benchmarks.marketplace.provider`: runs a payment provider until it is terminated."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import threading
from pathlib import Path

import uvicorn

from benchmarks.marketplace.provider.book import Behaviour, Book
from benchmarks.marketplace.provider.server import make_server

BACKLOG = 2048


def main() -> int:
    """Runs the command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.marketplace.provider", description="A payment provider that answers by HTTP."
    )
    parser.add_argument("--host", default="127.0.0.1", metavar="HOST", help="(default %(default)s)")
    parser.add_argument("--port", type=int, default=8090, metavar="N", help="0: any (default %(default)s)")
    parser.add_argument(
        "--book", type=Path, metavar="FILE", help="keeps what was decided; a provider started again goes on with it"
    )
    parser.add_argument("--declined", type=float, default=0.0, metavar="PERCENT", help="of the invoices it rejects")
    parser.add_argument("--unreachable", type=float, default=0.0, metavar="PERCENT", help="and never answers")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="decides which ones (default %(default)s)")
    parser.add_argument("--with-parent", action="store_true", help="ends when its standard input is closed")
    options = parser.parse_args()
    for name in ("declined", "unreachable"):
        if not 0 <= getattr(options, name) <= 100:
            parser.error(f"--{name} is from 0 to 100")
    with Book(options.book, options.seed, Behaviour(options.declined, options.unreachable)) as book:
        _serve(book, options)
    return 0


def _serve(book: Book, options: argparse.Namespace) -> None:
    config = uvicorn.Config(make_server(book), log_level="error", access_log=False, lifespan="off", backlog=BACKLOG)
    server = uvicorn.Server(config)
    with socket.create_server((options.host, options.port), backlog=BACKLOG) as listening:
        if options.with_parent:
            threading.Thread(target=_until_parent_ends, args=(server,), daemon=True).start()
        print(f"http://{options.host}:{listening.getsockname()[1]}", flush=True)
        server.run(sockets=[listening])


def _until_parent_ends(server: uvicorn.Server) -> None:
    # The descriptor rather than `sys.stdin`, whose lock would keep the interpreter from ending.
    while os.read(0, 1024):
        pass
    server.should_exit = True


if __name__ == "__main__":
    sys.exit(main())
