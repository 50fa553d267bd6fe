"""A cluster with everything on, on real Kafka and a real S3 server, and a scan of its ports: health, and no more."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]
import pytest

from styx.process.ports import free_port
from styx.testing.patience import PATIENCE_SECONDS
from tests.cli.served import STYX, unset, up
from tests.cli.test_up_process import APP
from tests.real_services import RealKafka, RealMinio
from tests.transport.conftest import Authority

pytestmark = pytest.mark.slow
HEALTH = ("/healthz", "/readyz")
PATHS = (
    *("/", "/docs", "/openapi.json", "/metrics", "/status", "/errors", "/debug", "/favicon.ico", "/v1/account"),
    *("/v1/account/ada", "/v1/account/ada/credit", "/healthz/", "/healthz/../metrics", "//metrics", "/%6detrics"),
)
METHODS = ("GET", "POST", "PUT", "OPTIONS", "HEAD", "DELETE")
ODD = (b"\x00" * 64, b"\xff" * 64, b"styx\n" * 10, b"\x00\x00\x00\x10" + b"x" * 16, b"GET\r\n\r\n", b"PING\r\n")
SILENCE_SECONDS = 3.0
"""How long a scanner listens to who says nothing and does not hang up either; longer changes nothing."""


class Guarded(NamedTuple):
    """A cluster: `listening` has the ports by process, `key` opens the gateway, `environment` is that of commands."""

    listening: dict[str, list[int]]
    gateway: int
    key: str
    directory: Path
    environment: dict[str, str]


@pytest.fixture(scope="module")
def cluster(kafka: RealKafka, minio: RealMinio, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    directory = tmp_path_factory.mktemp("guarded")
    files = Authority(directory, "cluster").files("all", "localhost")
    (directory / "shop.py").write_text(APP.format(name="guarded"))
    (directory / "policy.toml").write_text('[[allow]]\nkeys = ["admin"]\ncall = ["*"]\nsee = ["metrics"]\n')
    environment = {
        **unset(),
        "STYX_S3_ENDPOINT": f"http://{minio.endpoint}",
        "STYX_S3_ACCESS_KEY": minio.access_key,
        "STYX_S3_SECRET_KEY": minio.secret_key,
        "STYX_TLS_CERTIFICATE": str(files.certificate),
        "STYX_TLS_KEY": str(files.key),
        "STYX_TLS_AUTHORITY": str(files.authority),
    }
    added = subprocess.run([*STYX, "keys", "add", "admin"], cwd=directory, check=True, capture_output=True, text=True)
    port = free_port()
    words = ["--workers", "2", "--slots", "4", "--port", str(port), "--host", "0.0.0.0"]
    words += ["--log", f"kafka://{kafka.bootstrap}", "--store", "s3://styx/guarded", "--api-keys", "keys.json"]
    words += ["--policy", "policy.toml", "--rate-limit", "1000", "--in-flight-limit", "100"]
    words += ["--tls-cert", str(files.certificate), "--tls-key", str(files.key)]
    with up(directory, environment, *words) as (process, _):
        commands = {**environment, "STYX_CA": str(files.authority)}
        yield Guarded(_listening(process.pid), port, added.stdout.strip(), directory, commands)


def _listening(pid: int) -> dict[str, list[int]]:
    """Ports by what a process is; the supervisor's is "up"."""
    found: dict[str, list[int]] = {}
    parent = psutil.Process(pid)
    for process in [parent, *parent.children(recursive=True)]:
        words = process.cmdline()
        role = words[words.index("styx") + 1] if "styx" in words else "other"
        ports = [each.laddr.port for each in process.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
        found.setdefault(role, []).extend(ports)
    return found


def _said(port: int, data: bytes, tls: bool, patience_s: float = PATIENCE_SECONDS) -> bytes:
    """What a scanner that sends `data` is told before it is hung up on, or for as long as it has patience."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    said = b""
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), patience_s) as plain,
        context.wrap_socket(plain) if tls else contextlib.nullcontext(plain) as connection,
    ):
        connection.sendall(data)
        while part := connection.recv(65_536):
            said += part
    return said


def _request(method: str, path: str, headers: str = "") -> bytes:
    body = "[1]" if method == "POST" else ""
    return (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{headers}"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def test_nothing_but_health_answers_without_credentials(cluster: Guarded) -> None:
    listening = cluster.listening
    assert cluster.gateway in listening["gateway"]
    assert (len(listening["coordinator"]), len(listening["worker"]), listening["up"]) == (2, 4, [])
    healthy = set()
    places = [(role, port, tls) for role, ports in listening.items() for port in ports for tls in (False, True)]
    for role, port, tls in places:
        if _is_healthy(port, tls):
            healthy.add(role)
            _scan_http(port, tls, cluster.key)
    scans = [partial(_said, port, data, tls, SILENCE_SECONDS) for _, port, tls in places for data in ODD]
    with ThreadPoolExecutor(len(scans)) as scanners:  # at once, for many are silent
        for answer in scanners.map(lambda scan: scan(), scans):
            assert len(answer) < 300, answer
            assert b" 200 " not in answer
            for word in (b"guarded", b"account", cluster.key.encode()):
                assert word not in answer
    assert healthy == {"gateway", "coordinator", "worker"}


def _is_healthy(port: int, tls: bool) -> bool:
    answers = [_said(port, _request("GET", path), tls) for path in HEALTH]
    found = [answer for answer in answers if answer.startswith(b"HTTP/1.1 200 ")]
    assert all(len(answer.partition(b"\r\n\r\n")[2]) < 30 for answer in found), answers
    return len(found) == len(HEALTH)


def _scan_http(port: int, tls: bool, key: str) -> None:
    for method, path in [(method, path) for method in METHODS for path in PATHS]:
        answer = _said(port, _request(method, path), tls)
        assert answer.split()[1] in (b"400", b"401", b"403"), (method, path, answer)
    for wrong in ("Bearer x", "Basic YTpi", f"Bearer {key}x", f"Bearer {'0' * 64}"):
        for path in ("/metrics", "/status", "/errors", "/v1/account/ada/credit"):
            answer = _said(port, _request("GET", path, f"Authorization: {wrong}\r\n"), tls)
            assert answer.split()[1] == b"401", (path, answer)


def test_with_credentials_it_works(cluster: Guarded) -> None:
    def styx(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {**cluster.environment, **more}
        return subprocess.run(
            [*STYX, *words],
            cwd=cluster.directory,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )

    call = ("call", "account", "ada", "credit", "5", "--url", f"https://localhost:{cluster.gateway}")
    assert "unauthenticated" in styx(*call).stderr
    done = styx(*call, STYX_API_KEY=cluster.key)
    assert done.stdout == "5\n", done
    status = styx("status", "--json")
    assert json.loads(status.stdout)["phase"] == "running", status
    assert styx("errors").returncode == 0
    # Elsewhere, without the secret of styx up, a command has nothing to show.
    alone = subprocess.run(
        [*STYX, "status", "--url", json.loads(_facts(cluster))["facts_url"]],
        cwd=cluster.directory.parent,
        env=cluster.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert alone.returncode == 1
    assert "asks for a token: set STYX_SECRET" in alone.stderr


def _facts(cluster: Guarded) -> str:
    return (cluster.directory / ".styx/run/guarded/cluster.json").read_text()


def test_the_store_asks_for_a_key(minio: RealMinio) -> None:
    port = int(minio.endpoint.rpartition(":")[2])
    for method, path in (
        ("GET", "/"),
        ("GET", "/styx"),
        ("GET", "/styx/guarded"),
        ("PUT", "/styx/x"),
        ("GET", "/minio/"),
    ):
        answer = _said(port, _request(method, path), False)
        assert answer.split()[1] in (b"400", b"403"), (method, path, answer)
