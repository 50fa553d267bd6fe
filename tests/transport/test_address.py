"""Addresses: what is one, and what is not."""

from __future__ import annotations

import pytest

from styx.errors import ConfigurationError
from styx.transport.address import format_address, parse_address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("10.0.0.7:7700", "10.0.0.7", 7700), ("worker-1:1", "worker-1", 1), ("[::1]:65535", "::1", 65535)],
)
def test_addresses(text: str, host: str, port: int) -> None:
    assert parse_address(text) == (host, port)
    assert format_address(host, port) == text


@pytest.mark.parametrize(
    "text", ["", "host", "host:", ":80", "::1:80", "[]:80", "h:0", "h:65536", "h:-1", "h:٣", "h:8 "]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is no address"):
        parse_address(text)
