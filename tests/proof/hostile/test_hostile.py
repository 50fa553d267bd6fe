"""The hostile suite, small, on `styx dev` and on a cluster; and that it finds a server which does what it must not."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import Any

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.child import ChildProcess
from proof.hostile.__main__ import Options, attack, main
from proof.hostile.bank import BankFailed
from proof.hostile.requests import behind_one_another, send_wrong, wrong_requests
from proof.hostile.target import target_of, targets_of
from proof.large.places import ready
from styx.gateway.front import Front
from styx.gateway.tls import GatewayTls
from styx.process.ports import free_port
from tests.gateway.fake_engine import FakeEngine
from tests.gateway.running import running
from tests.real_services import RealKafka
from tests.transport.conftest import Authority

PATH = "/v1/shelf/a/add"


@pytest.mark.anyio
async def test_a_gateway_refuses_what_is_wrong() -> None:
    engine = FakeEngine()
    async with running(engine) as server:
        target = target_of(server.url, [], None)
        assert " refused: " in await send_wrong(target, PATH, 1)
        await behind_one_another(target, PATH)
    assert [request.function for request in engine.requests if request.idempotency_key] == []


@pytest.mark.anyio
async def test_a_gateway_with_tls_refuses_it_too(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "shop")
    files = authority.files("gateway", "localhost")
    front = Front(tls=GatewayTls(Path(files.certificate), Path(files.key)))
    async with running(FakeEngine(), front=front) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        target = target_of(url, [], str(authority.certificate))
        assert "none within another one" in await behind_one_another(target, PATH)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\n{}",
        b"",
    ],
)
async def test_a_server_that_answers_wrongly_is_found(said: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(said)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(BankFailed):
            await send_wrong(target_of(f"http://127.0.0.1:{port}", [], None), PATH, 1)


def test_addresses() -> None:
    assert target_of("http://127.0.0.1:1/prefix/", ["A: b"], None)[:2] == ("127.0.0.1", 1)
    assert target_of("http://[::1]:7", [], None).place == "[::1]:7"
    assert [each.place for each in targets_of(["[::1]:7", "a:8"])] == ["[::1]:7", "a:8"]
    names = [wrong.name for wrong in wrong_requests(target_of("http://h:1", [], None), PATH, 1)]
    assert len(names) == len(set(names))


def test_no_address_is_tried_but_those_that_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert main(["--url", f"http://127.0.0.1:{free_port()}", "--connections", "1", "--seconds", "0.1"]) == 1
    assert "FAILED" in capsys.readouterr().err


@pytest.mark.slow
def test_on_dev(tmp_path: Path) -> None:
    port = free_port()
    said: list[str] = []

    async def run() -> None:
        arguments = [
            "-m",
            "styx",
            "dev",
            "examples.bank:app",
            "--port",
            str(port),
            "--data-dir",
            str(tmp_path / "data"),
        ]
        dev = await ChildProcess.start("dev", arguments, {"PYTHONPATH": str(Path(__file__).parents[3])}, tmp_path)
        try:
            await ready(f"http://127.0.0.1:{port}", dev)
            await attack(Options(f"http://127.0.0.1:{port}", [], connections=300, seconds=2.0), said.append)
            dev.check()
            assert "Traceback" not in dev.log.read_text()
        finally:
            await dev.kill()

    asyncio.run(run())
    assert "audit" in said[-1]


@pytest.mark.slow
def test_on_a_cluster(kafka: RealKafka, tmp_path: Path) -> None:
    name = f"hostile-{secrets.token_hex(4)}"
    options = ClusterOptions(
        app="examples.bank:app",
        name=name,
        kafka=kafka.bootstrap,
        store=f"file://{tmp_path}/store",
        directory=tmp_path,
        slots=4,
    )
    said: list[str] = []

    async def run() -> Any:
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            ports = [cluster.coordinator_port, cluster.facts_port, *cluster.worker_ports]
            targets = [f"127.0.0.1:{port}" for port in ports]
            await attack(Options(cluster.http_url, targets, cluster.url, name, 300, 2.0), said.append)
            cluster.check()

    asyncio.run(run())
    assert "audit" in said[-1]
    for log in tmp_path.glob("*.log"):
        text = log.read_text("utf-8", "replace")
        assert "UNPICKLED" not in text
        assert "Traceback" not in text
