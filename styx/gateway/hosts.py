"""The hosts of a gateway: whether the host in a `Host` header or an origin is one of its own or an allowed one.

If a stranger's name was made to resolve to this machine (DNS rebinding), the browser sends that name as `Host`, and the
request is recognized by it. An address in `Host` cannot be forged so: the browser is connected to that address.
"""

from __future__ import annotations

import ipaddress
import socket
import string
from collections.abc import Iterable
from typing import Final, NamedTuple

from styx.errors import ConfigurationError
from styx.values.codec import shown

AUTHORITY_CHARS_MAX: Final = 300
"""Enough for a DNS name, of 253 characters at most, and a port of five."""
HOSTS_MAX: Final = 1_000
"""Limit on the allowed hosts, and on the allowed origins."""
EVERY_HOST: Final = "*"

_NAME_CHARS: Final = frozenset(string.ascii_lowercase + string.digits + "-_.")
_REMEMBERED_MAX: Final = 64
"""Limit on the `Host` headers whose answers are kept."""
_PORT_MAX: Final = 65_535

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Authority(NamedTuple):
    """A host in lower case without a final dot, or an address in its shortest form; and a port, if one was named."""

    host: str
    port: int | None


def parse_authority(text: str) -> Authority | None:
    """The host and port of `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT`; None for another text."""
    if not text or len(text) > AUTHORITY_CHARS_MAX or not text.isascii():
        return None
    text = text.lower()
    if text[0] == "[":
        inner, bracket, rest = text[1:].partition("]")
        address = _address(inner)
        if not bracket or address is None or (rest and rest[0] != ":"):
            return None
        host, port_text = str(address), rest[1:]
    else:
        name, _, port_text = text.partition(":")
        name = name.removesuffix(".")
        if not name or name[0] == "." or ".." in name or not _NAME_CHARS.issuperset(name):
            return None
        host = name
    if not port_text:
        return Authority(host, None)
    if not port_text.isdigit() or len(port_text) > len(str(_PORT_MAX)) or int(port_text) > _PORT_MAX:
        return None
    return Authority(host, int(port_text))


class Hosts:
    """The hosts of a gateway that listens on `bound`, with the `allowed` ones.

    On a loopback address the hosts are `localhost`, names below `.localhost` and loopback addresses, with any port,
    because tunnels change ports. On another address the only host is that address. On all addresses (`0.0.0.0`, `::`)
    the hosts are those of a loopback address, every address, and this machine's name. An allowed host is `NAME`,
    `NAME:PORT`, an address, `*.NAME` for all names below it, or `*` for all.

    Raises `ConfigurationError` for another text.
    """

    def __init__(self, bound: str, allowed: Iterable[str] = ()) -> None:
        every, loopback = is_any_address(bound), is_loopback(bound)
        self._loopback = every or loopback
        self._addresses = every
        self._names: set[Authority] = set()
        self._suffixes: set[str] = {".localhost"} if self._loopback else set()
        self._everything = False
        for own in (socket.gethostname() if every else bound, *(["localhost"] if self._loopback else [])):
            authority = parse_authority(f"[{own}]" if ":" in own else own)
            if authority is not None:
                self._names.add(Authority(authority.host, None))
        for text in _listed(allowed, "hosts"):
            self._allow(text)
        self._known: dict[bytes, bool] = {}

    def admit(self, host: bytes) -> bool:
        """Whether a request with this `Host` header is meant for this gateway."""
        known = self._known.get(host)
        if known is None:
            authority = parse_authority(host.decode("latin-1"))
            known = authority is not None and self._admits(authority)
            if len(self._known) < _REMEMBERED_MAX:
                self._known[host] = known
        return known

    def _admits(self, authority: Authority) -> bool:
        if self._everything or authority in self._names or Authority(authority.host, None) in self._names:
            return True
        if authority.port is None and not self._names.isdisjoint(Authority(authority.host, port) for port in (80, 443)):
            return True
        address = _address(authority.host)
        if address is not None:
            return self._addresses or (self._loopback and address.is_loopback)
        return any(authority.host.endswith(suffix) for suffix in self._suffixes)

    def _allow(self, text: str) -> None:
        if text == EVERY_HOST:
            self._everything = True
            return
        below = text.startswith(("*.", "."))
        authority = parse_authority(text.removeprefix("*").removeprefix(".") if below else text)
        if authority is None and ":" in text:
            authority = parse_authority(f"[{text}]")
        if authority is None or (below and authority.port is not None):
            raise ConfigurationError(
                f"{shown(text)} is no host to allow: one looks like shop.example.com, shop.example.com:8080 or "
                "*.example.com, without http:// and without a path"
            )
        if below:
            self._suffixes.add("." + authority.host)
        else:
            self._names.add(authority)


def is_loopback(host: str) -> bool:
    """Whether a server that listens on `host` can be reached only from this machine."""
    if host.lower().removesuffix(".") == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def is_any_address(host: str) -> bool:
    """Whether a server that listens on `host` listens on all addresses of this machine."""
    address = _address(host)
    return host == "" or (address is not None and address.is_unspecified)


def listed(values: Iterable[str]) -> list[str]:
    """The values of an option that may be repeated, each of which may have several values, separated by commas."""
    return [part for value in values for part in value.replace(",", " ").split()]


def _listed(values: Iterable[str], what: str) -> list[str]:
    found = listed(values)
    if len(found) > HOSTS_MAX:
        raise ConfigurationError(f"{len(found)} {what} are allowed; {HOSTS_MAX} is the most")
    return found


def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
