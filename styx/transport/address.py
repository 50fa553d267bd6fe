"""Addresses as text, `host:port`; an IPv6 host stands in brackets."""

from __future__ import annotations

from typing import Final

from styx.errors import ConfigurationError
from styx.values.codec import shown

_PORT_MAX: Final = 65_535


def parse_address(address: str) -> tuple[str, int]:
    """Host and port. Raises `ConfigurationError`."""
    host, colon, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if bracketed else host
    valid = bare and (bracketed or ":" not in bare)
    if not (colon and valid and port.isascii() and port.isdigit() and 0 < int(port[:6]) <= _PORT_MAX):
        raise ConfigurationError(f"{shown(address)} is no address; write HOST:PORT, like 10.0.0.7:7700 or [::1]:7700")
    return bare, int(port)


def format_address(host: str, port: int) -> str:
    """The text that `parse_address` reads."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
