"""A server of HTTP on threads of this process, in the place of somebody else's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Handler(BaseHTTPRequestHandler):
    """Answers whole, and logs nothing."""

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Header names with underscores for hyphens."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Its HOST:PORT."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    # Connections that a client keeps open must not hold up the end.
    server.block_on_close = False
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
