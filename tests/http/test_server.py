"""A listening socket: its URL, and what is said where there can be none."""

from __future__ import annotations

import pytest

from styx.errors import ConfigurationError
from styx.http.server import listen_on, url_of


def test_its_url() -> None:
    with listen_on("127.0.0.1", 0, 1) as one:
        port = one.getsockname()[1]
        assert (url_of(one), url_of(one, secure=True)) == (f"http://127.0.0.1:{port}", f"https://127.0.0.1:{port}")
    with listen_on("0.0.0.0", 0, 1) as everywhere:
        assert url_of(everywhere) == f"http://127.0.0.1:{everywhere.getsockname()[1]}"


def test_what_is_taken_cannot_be_had() -> None:
    with listen_on("127.0.0.1", 0, 1) as one:
        port = one.getsockname()[1]
        with pytest.raises(
            ConfigurationError,
            match=rf"cannot listen on 127\.0\.0\.1:{port}: Address already in use.*; choose another address",
        ):
            listen_on("127.0.0.1", port, 1)
        with pytest.raises(ConfigurationError, match=r" for facts: Address .*; choose another --http-port$"):
            listen_on("127.0.0.1", port, 1, " for facts", "--http-port")


@pytest.mark.parametrize("port", [-1, 65_536])
def test_no_port(port: int) -> None:
    with pytest.raises(ConfigurationError, match="a port is a number from 0 to 65535"):
        listen_on("127.0.0.1", port, 1)
