"""TLS of a gateway on a real socket: clients, old versions, and certificates that change under open connections."""

import asyncio
import shutil
import socket
import ssl
from pathlib import Path

import pytest

import styx
from styx import ConfigurationError, NotSent
from styx.gateway.front import Front
from styx.gateway.tls import GatewayTls
from tests.gateway.fake_engine import FakeEngine
from tests.gateway.running import running
from tests.transport.conftest import Authority

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "shop")


@pytest.fixture
def files(authority: Authority, tmp_path: Path) -> tuple[Path, Path]:
    """Copies, which a test may replace."""
    made = authority.files("gateway", "localhost")
    paths = tmp_path / "tls.crt", tmp_path / "tls.key"
    shutil.copy(made.certificate, paths[0])
    shutil.copy(made.key, paths[1])
    return paths


def front(files: tuple[Path, Path]) -> Front:
    return Front(tls=GatewayTls(*files))


def by_name(url: str) -> str:
    assert url.startswith("https://127.0.0.1:")
    return url.replace("127.0.0.1", "localhost")


async def test_clients_that_trust_its_authority(files: tuple[Path, Path], authority: Authority) -> None:
    async with running(FakeEngine(), front=front(files)) as server:
        async with styx.connect(by_name(server.url), ca_file=authority.certificate) as client:
            assert await client.call("shelf", "a", "add", 2, 3) == 5
        for url, trusted in ((by_name(server.url), None), (server.url, authority.certificate)):
            async with styx.connect(url, ca_file=trusted) as client:
                with pytest.raises(NotSent, match=r"(?i)certificate"):
                    await client.call("shelf", "a", "add", 2, 3)


def certificate_seen(url: str, authority: Authority, **versions: ssl.TLSVersion) -> tuple[bytes, str]:
    """What the server shows, and the version of TLS; raises `OSError`."""
    context = ssl.create_default_context(cafile=authority.certificate)
    for name, version in versions.items():
        setattr(context, name, version)
    port = int(url.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as tls,
    ):
        return tls.getpeercert(binary_form=True) or b"", tls.version() or ""


@pytest.mark.filterwarnings("ignore:.*TLSv1:DeprecationWarning")
async def test_tls_before_1_2_is_not_spoken(files: tuple[Path, Path], authority: Authority) -> None:
    async with running(FakeEngine(), front=front(files)) as server:
        assert (await asyncio.to_thread(certificate_seen, server.url, authority))[1] == "TLSv1.3"
        old = {"maximum_version": ssl.TLSVersion.TLSv1_2}
        assert (await asyncio.to_thread(lambda: certificate_seen(server.url, authority, **old)))[1] == "TLSv1.2"
        older = {"minimum_version": ssl.TLSVersion.TLSv1, "maximum_version": ssl.TLSVersion.TLSv1_1}
        with pytest.raises(OSError, match=r"(?i)ssl|reset"):
            await asyncio.to_thread(lambda: certificate_seen(server.url, authority, **older))


async def test_a_new_certificate_without_losing_a_connection(
    files: tuple[Path, Path], authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    engine, options = FakeEngine(), front(files)
    assert options.tls is not None
    async with running(engine, front=options) as server:
        url = by_name(server.url)
        first, _ = await asyncio.to_thread(certificate_seen, url, authority)
        async with styx.connect(url, ca_file=authority.certificate) as client:
            assert await client.call("shelf", "a", "add", 1, 1) == 2
            engine.hold()
            under_way = client.submit("shelf", "a", "add", 2, 2)
            await engine.arrived()
            # One of the two files is there before the other.
            new = authority.files("next", "localhost")
            shutil.copy(new.certificate, files[0])
            options.tls.poll()
            assert "stays in use" in caplog.text
            assert (await asyncio.to_thread(certificate_seen, url, authority))[0] == first
            shutil.copy(new.key, files[1])
            options.tls.poll()
            second, _ = await asyncio.to_thread(certificate_seen, url, authority)
            assert second != first
            engine.release()
            assert (await under_way).result == 4
            assert await client.call("shelf", "a", "add", 3, 3) == 6


def test_files_that_are_no_pair(files: tuple[Path, Path], authority: Authority, tmp_path: Path) -> None:
    other = authority.files("other", "localhost")
    for certificate, key in ((files[0], Path(other.key)), (tmp_path / "none", files[1]), (files[1], files[1])):
        with pytest.raises(ConfigurationError, match="not a PEM certificate and its unencrypted key"):
            GatewayTls(certificate, key)
