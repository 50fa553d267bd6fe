"""Ports that are chosen here and listened on elsewhere: nobody else is given one meanwhile, and servers are let in."""

from __future__ import annotations

import asyncio
import random
import socket
import subprocess
import sys

import pytest
import uvloop

from styx.process import ports
from styx.process.ports import NoFreePort, free_port

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody can hold a port for a server to come")
CHOOSE = """
from styx.process import ports
ports.TRIES_MAX = 1
ports.PORTS = range({0}, {0} + 1)
print(ports.free_port())
"""


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> range:
    """Four ports are all there are, tried in their order; nobody has them."""
    first = free_port(following=3)
    for held in ports._held[-4:]:
        held.close()
    monkeypatch.setattr(ports, "PORTS", range(first, first + 4))
    monkeypatch.setattr(random, "sample", lambda population, count: list(population))
    return ports.PORTS


@linux
def test_a_held_port_is_given_to_nobody_else(narrow: range) -> None:
    assert free_port() == narrow[0]
    assert free_port(following=1) == narrow[1], "those that follow are held with it"
    assert free_port() == narrow[3]
    with pytest.raises(NoFreePort, match="try again"):
        free_port()


@linux
def test_nor_is_it_to_another_process(narrow: range) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CHOOSE.format(free_port())], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert "NoFreePort" in ran.stderr


@linux
def test_a_server_listens_on_a_port_that_is_held_for_it() -> None:
    port = free_port()
    for _ in range(2):  # also when it is started again
        with socket.create_server(("127.0.0.1", port)) as server:
            socket.create_connection(("127.0.0.1", port)).close()
            server.accept()[0].close()
            with pytest.raises(OSError, match="in use"):
                socket.create_server(("127.0.0.1", port))


@linux
def test_so_does_uvloop() -> None:
    async def listen() -> None:
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", free_port())
        server.close()
        await server.wait_closed()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(listen())
