"""The gateway as a network server: listens, reports its address, and shuts down without losing a request.

Shutdown has this order: drain for the given time, stop accepting, finish the requests in flight within the grace
period, then the caller's hook, which may snapshot. While it drains it serves as before, says that it is not ready, and
closes each connection after its answer. So a load balancer notices before any request is refused, and no connection
closes under a client's request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Final

from styx.gateway.app import Gateway
from styx.gateway.engine import Engine
from styx.gateway.front import Entrance, Front, Served
from styx.http.asgi import Application
from styx.http.direct import AroundDirect, Direct
from styx.http.room import DESCRIPTORS_KEPT, HttpLimits, Room, allow_descriptors
from styx.http.server import HttpServer, listen_on, url_of
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT
from styx.watchdog import ending

GRACE_SECONDS: Final = 20
"""How long requests in flight may take to finish at shutdown; below the 30 s that Kubernetes gives by default."""
KEEP_ALIVE_SECONDS: Final = 75
"""How long an idle connection stays open: longer than clients keep it, so that no request meets a closing one."""
CONNECTIONS_MAX: Final = 10_000
"""Limit on open connections, if the process may have that many file descriptors."""
LINGER_SECONDS: Final = 0.1
"""How long connections stay open for another request, before another server takes the socket over."""
BACKLOG_MAX: Final = 2_048
"""Limit on connections that wait to be accepted."""

_log = logging.getLogger("styx.gateway")


async def serve(
    engine: Engine,
    host: str = "127.0.0.1",
    port: int = 8080,
    *,
    on_started: Callable[[str], None] | None = None,
    on_draining: Callable[[], None] | None = None,
    on_shutdown: Callable[[], Awaitable[None]] | None = None,
    stop: asyncio.Event | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS_DEFAULT,
    drain_seconds: float = 0.0,
    grace_seconds: int = GRACE_SECONDS,
    front: Front | None = None,
    listener: socket.socket | None = None,
    around: Callable[[Application], Application] | None = None,
    sql: Application | None = None,
) -> None:
    """Serves an engine, as `serve_application`. `timeout_seconds`: how long a request waits for its reply. `sql` is as
    in `Gateway`.
    """
    await serve_application(
        Gateway(engine, timeout_seconds, sql),
        host,
        port,
        on_started=on_started,
        on_draining=on_draining,
        on_shutdown=on_shutdown,
        stop=stop,
        drain_seconds=drain_seconds,
        grace_seconds=grace_seconds,
        front=front,
        listener=listener,
        around=around,
    )


async def serve_application(
    gateway: Served,
    host: str = "127.0.0.1",
    port: int = 8080,
    *,
    on_started: Callable[[str], None] | None = None,
    on_draining: Callable[[], None] | None = None,
    on_shutdown: Callable[[], Awaitable[None]] | None = None,
    stop: asyncio.Event | None = None,
    drain_seconds: float = 0.0,
    grace_seconds: int = GRACE_SECONDS,
    front: Front | None = None,
    listener: socket.socket | None = None,
    around: Callable[[Application], Application] | None = None,
) -> None:
    """Serves until SIGTERM, SIGINT or `stop`; then shuts down gracefully and awaits `on_shutdown()`.

    Port 0 takes a free port. `on_started` gets the real URL once requests are accepted. The first signal calls
    `on_draining()` and drains for `drain_seconds`; a second signal ends the drain. `stop` shuts down without a drain.
    After the drain, a second SIGINT drops the requests in flight; a second SIGTERM changes nothing. Signals are handled
    in the main thread only. `front` decides which requests are taken; by default requests to the address listened on,
    from the gateway's own pages and from programs. `around` may wrap the whole application; what it gives may be an
    `AroundDirect`.

    `listener` is a socket that listens already; it replaces `host` and `port`, and stays open at the end. Connections
    made after `stop` wait on it for another server. Open connections are served for `LINGER_SECONDS` more, and closed
    after an answer, so that none is closed under a request.

    Raises `ConfigurationError`, without calling `on_shutdown`, if it cannot listen there.
    """
    front = front or Front()
    lent = listener is not None
    listener = listen_on(host, port, BACKLOG_MAX) if listener is None else listener.dup()
    try:
        entrance = Entrance(gateway, front, front.rules(host, listener.getsockname()[0]))
    except BaseException:
        listener.close()
        raise
    application = entrance.application
    allow_descriptors(CONNECTIONS_MAX + DESCRIPTORS_KEPT)
    room = Room(HttpLimits(CONNECTIONS_MAX, KEEP_ALIVE_SECONDS), gateway.metrics.refused)
    served = application if around is None else around(application)
    direct = entrance.direct if around is None else _around(served, entrance.direct)
    server = HttpServer(served, room, KEEP_ALIVE_SECONDS, BACKLOG_MAX, grace_seconds, direct)
    if front.tls is not None:
        server.config.load()  # it would make another TLS context, and never read the files again
        server.config.ssl = front.tls.context
    url = url_of(listener, front.tls is not None)

    def shut_down() -> None:
        gateway.draining = server.should_exit = True

    def told() -> None:
        drains = drain_seconds > 0 and not gateway.draining
        gateway.draining = True
        if on_draining is not None:
            on_draining()
        if drains:
            _log.info("told to stop: requests are served for %g s more, and /readyz already answers 503", drain_seconds)
            asyncio.get_running_loop().call_later(drain_seconds, shut_down)
        else:
            shut_down()

    def let_go() -> None:
        gateway.draining = True
        for accepting in getattr(server, "servers", ()):  # empty before the start
            accepting.close()
        asyncio.get_running_loop().call_later(LINGER_SECONDS, shut_down)

    ending = let_go if lent else shut_down
    waiting = asyncio.create_task(_when_set(stop, ending)) if stop is not None else None
    with _signals(server, told):
        try:
            async with entrance.kept_fresh():
                await server.run_on(listener, None if on_started is None else partial(on_started, url))
        finally:
            gateway.draining = True
            if waiting is not None:
                waiting.cancel()
            listener.close()
            if on_shutdown is not None:
                await on_shutdown()


def _around(wrapped: Application, direct: Direct | None) -> Direct | None:
    return wrapped.around(direct) if direct is not None and isinstance(wrapped, AroundDirect) else None


@contextlib.contextmanager
def _signals(server: HttpServer, told: Callable[[], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_interrupt() -> None:
        server.force_exit = server.should_exit
        told()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, on_interrupt)
    # Supervisors often send SIGTERM twice, to the group and to the process. The second one must not drop requests.
    loop.add_signal_handler(signal.SIGTERM, told)
    ending.notice()
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)


async def _when_set(stop: asyncio.Event, shut_down: Callable[[], None]) -> None:
    await stop.wait()
    shut_down()
