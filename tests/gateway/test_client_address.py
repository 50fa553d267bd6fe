"""Whose address counts, behind proxies that are trusted and before those that are not."""

from typing import Any

import pytest

from styx import ConfigurationError
from styx.gateway.client_address import HOPS_MAX, PROXIES_MAX, Proxies

TRUSTED = ("127.0.0.1, 10.0.0.0/8", "fd00::/8")


def scope(client: str | None, *forwarded: str) -> dict[str, Any]:
    headers = [(b"x-forwarded-for", each.encode("latin-1")) for each in forwarded]
    return {"client": None if client is None else (client, 5), "headers": headers}


@pytest.mark.parametrize(
    ("client", "forwarded", "address"),
    [
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["1.2.3.4"], "1.2.3.4"),
        ("::ffff:127.0.0.1", ["1.2.3.4"], "1.2.3.4"),
        ("127.0.0.1", ["6.6.6.6, 1.2.3.4"], "1.2.3.4"),  # the first was said by the client itself
        ("127.0.0.1", ["6.6.6.6, 1.2.3.4, 10.1.1.1,10.2.2.2"], "1.2.3.4"),
        ("127.0.0.1", ["6.6.6.6", "1.2.3.4"], "1.2.3.4"),
        ("127.0.0.1", ["1.2.3.4:5678"], "1.2.3.4"),
        ("127.0.0.1", ["[2001:db8::1]:443"], "2001:db8::1"),
        ("fd00::1", ["2001:db8::1"], "2001:db8::1"),
        ("127.0.0.1", ["10.1.1.1"], "10.1.1.1"),
        ("127.0.0.1", ["1.2.3.4, unknown"], "127.0.0.1"),
        ("127.0.0.1", ["1.2.3.4, unknown, 10.1.1.1"], "10.1.1.1"),
        ("127.0.0.1", ["", ",", "\xff"], "127.0.0.1"),
        ("127.0.0.1", [",".join(["10.1.1.1"] * (HOPS_MAX + 5))], "10.1.1.1"),
        ("1.1.1.1", ["1.2.3.4"], "1.1.1.1"),
        (None, ["1.2.3.4"], ""),
    ],
)
def test_the_last_one_that_is_no_trusted_proxy(client: str | None, forwarded: list[str], address: str) -> None:
    assert Proxies(TRUSTED).address_of(scope(client, *forwarded)) == address


def test_nobody_is_trusted_unasked() -> None:
    assert Proxies().address_of(scope("127.0.0.1", "1.2.3.4")) == "127.0.0.1"


@pytest.mark.parametrize("text", ["proxy.example.com", "*", "10.0.0.1/8", "10.0.0.0/33", "1.2.3.4:80"])
def test_what_is_no_proxy(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is no proxy to trust"):
        Proxies([text])


def test_so_many_at_most() -> None:
    with pytest.raises(ConfigurationError, match=str(PROXIES_MAX)):
        Proxies(["10.0.0.1"] * (PROXIES_MAX + 1))
