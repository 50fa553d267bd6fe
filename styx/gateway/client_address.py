"""The client address of a request: the other end of its connection, or, if that is a trusted proxy, the address in the
proxy's `X-Forwarded-For`. That header of any other sender is ignored, because anybody can set it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any, Final

from styx.errors import ConfigurationError
from styx.gateway.hosts import listed, parse_authority
from styx.values.codec import shown

PROXIES_MAX: Final = 1_000
HOPS_MAX: Final = 20
"""Limit on the addresses read from the end of `X-Forwarded-For`. Real chains of proxies are shorter."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Proxies:
    """The trusted proxies: addresses, and networks such as 10.0.0.0/8. Raises `ConfigurationError` for other texts."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        found = listed(trusted)
        if len(found) > PROXIES_MAX:
            raise ConfigurationError(f"{len(found)} proxies are trusted; {PROXIES_MAX} is the most")
        self._networks = tuple(map(_network, found))

    def address_of(self, scope: Mapping[str, Any]) -> str:
        """The client's address; empty if there is none, as on a Unix socket.

        Each proxy appends the address of its own client, so the last address that is no trusted proxy counts.
        """
        client = scope.get("client")
        address = str(client[0]) if client else ""
        if not self._networks or not self._trusts(address):
            return address
        sent = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        for hop in reversed(b",".join(sent).rsplit(b",", HOPS_MAX)[-HOPS_MAX:]):
            found = _address(hop.strip().decode("latin-1"))
            if found is None:
                return address  # no trusted proxy wrote the addresses before it
            address = str(found)
            if not self._trusts(address):
                return address
        return address

    def _trusts(self, text: str) -> bool:
        address = _address(text)
        return address is not None and any(
            address.version == network.version and address in network for network in self._networks
        )


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise ConfigurationError(
            f"{shown(text)} is no proxy to trust: one is an address or a network, such as 10.0.0.7 or 10.0.0.0/8"
        ) from None


def _address(text: str) -> Address | None:
    """The address in `ADDRESS`, `IPV4:PORT` or `[IPV6]:PORT`. An IPv4 address within IPv6 is returned as IPv4."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        authority = parse_authority(text)
        try:
            address = ipaddress.ip_address("" if authority is None else authority.host)
        except ValueError:
            return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
