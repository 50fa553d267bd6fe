"""Hosts: what a header or an option names, and which ones a gateway answers under."""

import socket

import pytest

from styx import ConfigurationError
from styx.gateway.hosts import AUTHORITY_CHARS_MAX, HOSTS_MAX, Authority, Hosts, is_loopback, parse_authority


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("localhost", "localhost", None),
        ("LocalHost.:8080", "localhost", 8080),
        ("shop.example.com:", "shop.example.com", None),
        ("127.0.0.1:65535", "127.0.0.1", 65_535),
        ("[::1]", "::1", None),
        ("[0:0:0:0:0:0:0:1]:80", "::1", 80),
        ("[::FFFF:127.0.0.1]:80", "127.0.0.1", 80),
        ("my_service-1.ns", "my_service-1.ns", None),
    ],
)
def test_what_names_a_host(text: str, host: str, port: int | None) -> None:
    assert parse_authority(text) == Authority(host, port)


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", ":", ":80", "a:b", "a:80:80", "a:65536", "a:-1", "a:+1", "a:0x50", "a: 80", "a:٣"),
        *("a b", "a/b", "a@b", "user@localhost", "a,b", "a..b", ".a", "a\x00", "ä", "http://a", "localhost/", "*"),
        *("[::1", "::1", "[::1]80", "[::1]x", "[127.0.0.1", "[]", "[g::]", "[::1]:", "[::1]:x")[:-2],
        *("[::1]:x", "x" * (AUTHORITY_CHARS_MAX + 1), "a:" + "0" * 100 + "1"),
    ],
)
def test_what_names_none(text: str) -> None:
    assert parse_authority(text) is None


OWN = ["localhost:8080", "localhost", "LOCALHOST.", "127.0.0.1:8080", "127.0.0.1:9", "127.8.8.8", "[::1]:8080"]
FOREIGN = ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "evillocalhost"]
ODD = ["", "127.1", "0x7f.0.0.1", "2130706433", "localhost:8080:1", "localhost, evil.example", "localhost evil.example"]


@pytest.mark.parametrize("bound", ["127.0.0.1", "localhost", "::1", "127.0.0.53", "LOCALHOST"])
def test_on_loopback(bound: str) -> None:
    hosts = Hosts(bound)
    for own in [*OWN, "shop.localhost:3000", "[::ffff:127.0.0.1]"]:
        assert hosts.admit(own.encode()), own
    for foreign in [*FOREIGN, *ODD, "10.0.0.1", "0.0.0.0", "[::]", "[2001:db8::1]", socket.gethostname() + ".x"]:
        assert not hosts.admit(foreign.encode()), foreign


@pytest.mark.parametrize("bound", ["0.0.0.0", "::", ""])
def test_on_all_addresses(bound: str) -> None:
    """An address cannot be another name's: a browser that sends it shows what came from there."""
    hosts = Hosts(bound)
    for own in [*OWN, "10.0.0.1:8080", "192.168.1.7", "[2001:db8::1]:80", socket.gethostname()]:
        assert hosts.admit(own.encode()), own
    for foreign in [*FOREIGN, *ODD]:
        assert not hosts.admit(foreign.encode()), foreign


def test_on_one_address() -> None:
    hosts = Hosts("10.0.0.5")
    assert hosts.admit(b"10.0.0.5:1")
    for foreign in ["10.0.0.6", "localhost", "127.0.0.1", *FOREIGN]:
        assert not hosts.admit(foreign.encode()), foreign
    by_name = Hosts("db.internal")
    assert by_name.admit(b"db.internal:8080")
    assert not by_name.admit(b"other.internal")


def test_allowed_ones() -> None:
    hosts = Hosts(
        "127.0.0.1", ["shop.example.com", "api.example.com:8443, *.internal", "fe80::1", "web.example.com:443"]
    )
    for allowed in ["shop.example.com:1", "SHOP.example.com.", "api.example.com:8443", "a.internal", "a.b.internal:8"]:
        assert hosts.admit(allowed.encode()), allowed
    assert hosts.admit(b"[fe80::1]:8080")
    assert hosts.admit(b"web.example.com"), "a port that browsers leave out"
    for foreign in ["api.example.com", "api.example.com:80", "internal", "xinternal", "a.shop.example.com", *FOREIGN]:
        assert not hosts.admit(foreign.encode()), foreign
    assert Hosts("127.0.0.1", ["*"]).admit(b"evil.example")


@pytest.mark.parametrize("text", ["http://shop.example.com", "shop.example.com/", "*.x:80", "a b/c", "*.", "sh*p.com"])
def test_what_cannot_be_allowed(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is no host to allow: one looks like"):
        Hosts("127.0.0.1", [text])


def test_there_is_a_limit() -> None:
    with pytest.raises(ConfigurationError, match=f"{HOSTS_MAX} is the most"):
        Hosts("127.0.0.1", ["a"] * (HOSTS_MAX + 1))


def test_what_is_remembered_is_bounded() -> None:
    hosts = Hosts("127.0.0.1")
    for number in range(1000):
        assert not hosts.admit(b"%d.example" % number)
    assert len(hosts._known) < 100


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.9.9.9", "::ffff:127.0.0.1"])
def test_is_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1", "example.com", "localhost.example.com"])
def test_is_not_loopback(host: str) -> None:
    assert not is_loopback(host)
