"""The front of a gateway: the door, which keeps strangers' pages out, and then the guard, which authenticates clients.

It composes the two, counts and logs their refusals, and keeps their files up to date.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from styx.gateway import status
from styx.gateway.auth.access import Access, AccessOptions
from styx.gateway.auth.audit import Audit
from styx.gateway.auth.identity import IDENTITY, Identity
from styx.gateway.auth.policy import action_of
from styx.gateway.client_address import Proxies
from styx.gateway.direct_door import DirectDoor
from styx.gateway.door import Door
from styx.gateway.hosts import Hosts
from styx.gateway.origin import OriginRules, Refusal
from styx.gateway.tls import GatewayTls
from styx.gateway.watched_files import POLL_SECONDS
from styx.http.asgi import Application, Receive, Scope, Send
from styx.http.direct import Direct

_ANYWHERE: Final = ("0.0.0.0", "::")

_log = logging.getLogger("styx.gateway")


@dataclass(frozen=True, kw_only=True)
class Front:
    """The options of a gateway's front.

    `allowed_hosts`: host names besides those of the address listened on, as in `Hosts`. `allowed_origins`: other
    origins whose pages may use the gateway. `access`: the clients that may use the gateway, by default all. `tls`: the
    certificate. `trusted_proxies`: proxies whose `X-Forwarded-For` is believed, as in `Proxies`.
    """

    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    access: AccessOptions = field(default_factory=AccessOptions)
    tls: GatewayTls | None = None
    trusted_proxies: tuple[str, ...] = ()

    def rules(self, bound: str, address: str) -> OriginRules:
        """The rules of a gateway whose option names the host `bound`, and which listens on `address`.

        Raises `ConfigurationError` for a host or an origin that is none.
        """
        hosts = Hosts(bound, [*self.allowed_hosts, *([] if address in _ANYWHERE else [address])])
        return OriginRules(hosts, self.allowed_origins)


class Served(Protocol):
    """What stands behind a front: an ASGI application that counts refusals, and can be draining, as `Gateway`."""

    draining: bool

    @property
    def direct(self) -> Direct | None:
        """Its direct way, if it has one."""
        ...

    @property
    def metrics(self) -> CountsRefusals:
        """It counts them here."""
        ...

    def has_events(self) -> bool:
        """Whether the app that is served declares events."""
        ...

    def has_sql(self) -> bool:
        """Whether queries in SQL are served."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        ...


class CountsRefusals(Protocol):
    """Counts refused requests and connections."""

    def refused(self, reason: str) -> None:
        """Counts one; the reason is a word."""
        ...


class Entrance:
    """`application` is `gateway` behind a door and, if clients authenticate, a guard; `direct` is its direct way behind
    the same. Raises `ConfigurationError`.
    """

    def __init__(self, gateway: Served, front: Front, rules: OriginRules) -> None:
        self._gateway = gateway
        self._audit = Audit()
        self._access = Access(front.access) if front.access.enabled else None
        self._tls = front.tls
        self._proxies = Proxies(front.trusted_proxies)
        guarded: Application = gateway
        kinds = (gateway.has_events, gateway.has_sql)
        direct = gateway.direct
        if self._access is not None:
            guard = guarded = self._access.guard(gateway, self._refused, self._proxies.address_of, *kinds)
            direct = None if direct is None else guard.around(direct)
        self.application: Application = Door(guarded, rules, self._refused)
        self.direct: Direct | None = None if direct is None else DirectDoor(direct, rules)

    @asynccontextmanager
    async def kept_fresh(self) -> AsyncIterator[None]:
        """While the context is open, files that change are read again."""
        polling = asyncio.create_task(self._poll(), name="styx-front")
        try:
            yield
        finally:
            polling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await polling
            if self._access is not None:
                await self._access.close()

    async def _poll(self) -> None:
        while True:
            try:
                if self._access is not None:
                    self._access.poll()
                if self._tls is not None:
                    self._tls.poll()
                self._audit.flush(time.monotonic())
            except Exception:  # noqa: BLE001 - logged; whoever is let in must not depend on one bad look
                _log.exception("a look at the files of keys and certificates failed")
            await asyncio.sleep(POLL_SECONDS)

    def _refused(self, scope: Scope, refusal: Refusal) -> None:
        self._gateway.metrics.refused(refusal.code)
        action = action_of(scope, self._gateway.has_events, self._gateway.has_sql)
        identity: Identity | None = scope.get(IDENTITY)
        self._audit.refused(
            time.monotonic(),
            status.STATUS_OF_CODE.get(refusal.code, status.INTERNAL_STATUS),
            refusal.code,
            refusal.message,
            client=self._proxies.address_of(scope),
            who=None if identity is None else identity.name,
            kind=None if identity is None else identity.kind,
            method=scope["method"],
            action=None if action is None else str(action),
        )
