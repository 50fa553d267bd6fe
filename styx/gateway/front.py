"""What stands before a gateway: the hosts and origins that it takes requests from. Composes; decides nothing itself."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from styx.gateway.app import Gateway
from styx.gateway.door import Application, Door, Scope
from styx.gateway.hosts import Hosts
from styx.gateway.origin import OriginRules, Refusal

_log = logging.getLogger("styx.gateway")


@dataclass(frozen=True, kw_only=True)
class Front:
    """`allowed_hosts`: names beyond those of the address listened on, as in `Hosts`. `allowed_origins`: other origins
    whose pages may use the gateway.
    """

    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()

    def rules(self, bound: str, address: str) -> OriginRules:
        """The rules of a gateway that was told to listen on `bound`, and does on `address`.

        Raises `ConfigurationError` for a host or an origin that is none.
        """
        hosts = Hosts(bound, [*self.allowed_hosts, *([] if address in ("0.0.0.0", "::") else [address])])
        return OriginRules(hosts, self.allowed_origins)


def fronted(gateway: Gateway, rules: OriginRules) -> Application:
    """`gateway`, behind its door."""

    def on_refusal(scope: Scope, refusal: Refusal) -> None:
        gateway.metrics.refused(refusal.code)

    return Door(gateway, rules, on_refusal)
