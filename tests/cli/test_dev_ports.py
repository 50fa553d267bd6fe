"""On which addresses `styx dev` listens, and what those who reach it there are told: loopback alone unless it is told
otherwise, IPv4 and IPv6 alike.
"""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.cli.served import STYX
from tests.cli.test_dev_process import BANK, Dev, dev

pytestmark = pytest.mark.slow
PATHS = ("/", "/docs", "/metrics", "/errors", "/status", "/openapi.json", "/v1/account/a", "/none")


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bank.py").write_text(BANK)
    return tmp_path


def port_of(running: Dev) -> int:
    (found,) = re.findall(r"://\S+:(\d+)", running.lines[0])
    return int(found)


def listening(pid: int) -> set[tuple[str, int]]:
    first = psutil.Process(pid)
    found = set()
    for process in [first, *first.children(recursive=True)]:
        for each in process.net_connections():
            # Whatever receives without having been asked: TCP that listens, any UDP.
            if each.status == psutil.CONN_LISTEN or each.type == socket.SOCK_DGRAM:
                found.add((each.laddr.ip, each.laddr.port))
    return found


def status(address: str, port: int, path: str, *headers: str) -> int:
    lines = [f"GET {path} HTTP/1.1", f"Host: {'[::1]' if ':' in address else address}:{port}", "Connection: close"]
    with socket.create_connection((address, port)) as connection:
        connection.sendall("\r\n".join([*lines, *headers, "", ""]).encode())
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    return int(answer.split()[1])


def test_nobody_but_this_machine_reaches_it() -> None:
    with dev() as running:
        port = port_of(running)
        assert listening(running.process.pid) == {("127.0.0.1", port)}
    with dev("--host", "::1") as running:
        port = port_of(running)
        assert listening(running.process.pid) == {("::1", port)}
        assert status("::1", port, "/metrics") == 200


@pytest.mark.parametrize(("host", "addresses"), [("0.0.0.0", ["127.0.0.1"]), ("::", ["::1"])])
def test_elsewhere_with_keys(host: str, addresses: list[str], directory: Path) -> None:
    added = subprocess.run([*STYX, "keys", "add", "admin"], check=True, capture_output=True, text=True)
    with dev("--host", host, "--api-keys", "keys.json") as running:
        port = port_of(running)
        assert listening(running.process.pid) == {(host, port)}
        for address in addresses:
            for path in PATHS:
                assert status(address, port, path) == 401, path
                assert status(address, port, path, "Authorization: Bearer x") == 401, path
            assert status(address, port, "/healthz") == 200
            assert status(address, port, "/metrics", f"Authorization: Bearer {added.stdout.strip()}") == 200
        with open(f"/proc/{running.process.pid}/cmdline") as words:
            assert added.stdout.strip() not in words.read()
        assert added.stdout.strip() not in "".join(running.lines)
