"""The HTTP server of all processes: uvicorn with `HttpConnection`, without uvicorn's signals, log lines and headers."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any, Final

import uvicorn

from styx.errors import ConfigurationError
from styx.http.direct import Direct
from styx.http.room import Room, serving

PORT_MAX: Final = 65_535


class HttpServer(uvicorn.Server):
    """Serves an ASGI application in the connections of `room`; its process handles signals, not uvicorn.

    `direct` is the application's direct way, if it has one. At its end, answers under way may take `grace_seconds`.
    """

    def __init__(
        self,
        application: Any,
        room: Room,
        keep_alive_seconds: int,
        backlog_max: int,
        grace_seconds: int,
        direct: Direct | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=serving(room, direct),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=keep_alive_seconds,
                timeout_graceful_shutdown=grace_seconds,
                backlog=backlog_max,
            )
        )
        self._on_started: Callable[[], None] | None = None

    async def run_on(self, listener: socket.socket, on_started: Callable[[], None] | None = None) -> None:
        """Serves until `should_exit`; calls `on_started` once requests are accepted."""
        self._on_started = on_started
        await self.serve([listener])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn has it."""
        await super().startup(sockets)
        if self._on_started is not None:
            self._on_started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures no signals. uvicorn's own method would end the process before a shutdown hook has run."""
        yield


def url_of(listener: socket.socket, secure: bool = False) -> str:
    """The URL under which a listening socket is reached from its own machine."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    scheme = "https" if secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def listen_on(
    host: str, port: int, backlog_max: int, purpose: str = "", instead: str = "address, or port 0 for any free one"
) -> socket.socket:
    """Opens a listening socket. Raises `ConfigurationError` if that fails; its text says what to choose `instead`."""
    try:
        if not 0 <= port <= PORT_MAX:
            raise OSError(f"a port is a number from 0 to {PORT_MAX}")
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=backlog_max)
    except OSError as error:
        why = error.strerror or str(error)
        raise ConfigurationError(f"cannot listen on {host}:{port}{purpose}: {why}; choose another {instead}") from None
    listener.setblocking(False)
    return listener
