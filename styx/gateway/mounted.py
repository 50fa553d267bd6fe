"""`styx.asgi`: an embedded client as an ASGI application, to be mounted under a path of another one or served as it is.

Strangers' pages are refused as by a separate gateway. Beyond that the application around it decides who may do what. A
client that the application opens is not opened here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from styx.client.embedded import EmbeddedClient
from styx.errors import ConfigurationError
from styx.gateway.app import Gateway
from styx.gateway.door import Door
from styx.gateway.hosts import EVERY_HOST, Hosts
from styx.gateway.origin import OriginRules, Refusal
from styx.http.asgi import Application, Receive, Scope, Send
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT
from styx.values.codec import shown

_ANY_ADDRESS = "0.0.0.0"


def asgi(
    client: EmbeddedClient,
    *,
    timeout: float = TIMEOUT_SECONDS_DEFAULT,
    allowed_hosts: Iterable[str] = (EVERY_HOST,),
    allowed_origins: Iterable[str] = (),
) -> Application:
    """The HTTP interface of `client` as an ASGI application: requests, reads, docs, OpenAPI, health and metrics.

    Mounted, as `web.mount("/bank", styx.asgi(client))`, the client may be opened later, on the event loop that serves:
    until then `/readyz` and requests say so with 503. Served by itself, as `uvicorn module:application`, it opens the
    client and closes it. `timeout`: seconds a request waits for its reply, unless it says otherwise. `allowed_hosts`:
    names under which it answers; `*` leaves that to the application around it. `allowed_origins`: other origins whose
    pages may use it.

    Raises `ConfigurationError` for another kind of client, or a host or an origin that is none.
    """
    if not isinstance(client, EmbeddedClient):
        raise ConfigurationError(
            f"styx.asgi takes the client of styx.embedded, got {shown(client)}; a cluster has gateways of its own"
        )
    gateway = Gateway(client.engine, timeout)

    def refused(scope: Scope, refusal: Refusal) -> None:
        gateway.metrics.refused(refusal.code)

    return _Mounted(client, Door(gateway, OriginRules(Hosts(_ANY_ADDRESS, allowed_hosts), allowed_origins), refused))


class _Mounted:
    def __init__(self, client: EmbeddedClient, application: Application) -> None:
        self._client = client
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            self._client.check_home()
            await self._application(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _live(self, receive: Receive, send: Send) -> None:
        """Served by itself: opens the client and closes it with the server, unless it is open already."""
        await receive()
        own = not self._client.engine.ready
        try:
            if own:
                await self._client.__aenter__()
        except Exception as error:  # noqa: BLE001 - told to the server, which then ends
            await send({"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        failure: dict[str, Any] = {"type": "lifespan.shutdown.complete"}
        try:
            if own:
                await self._client.close()
        except Exception as error:  # noqa: BLE001 - likewise
            failure = {"type": "lifespan.shutdown.failed", "message": f"{type(error).__name__}: {error}"}
        await send(failure)
