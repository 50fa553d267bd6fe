"""TLS: both sides must show a certificate of the cluster's authority."""

from __future__ import annotations

import asyncio
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from styx.errors import ConfigurationError
from styx.transport import Refusal, Refused, Security, TlsFiles, dial, listener
from tests.transport.conftest import Authority
from tests.transport.peers import SECRET, End, assert_serves, connected, hello_of, listening, raw_peer, until

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="session")
def tls_files(authority: Authority) -> TlsFiles:
    return authority.files("worker")


@pytest.fixture
def tls(tls_files: TlsFiles) -> Security:
    return Security(SECRET, "c1", tls_files)


async def test_payloads_pass_in_order(tls: Security) -> None:
    async with connected(tls) as (dialed, accepted):
        a, b = End(dialed), End(accepted)
        sent = [bytes([number % 256]) * (number * 7 % 5000 + 1) for number in range(500)] + [bytes(5_000_000)]
        for payload in sent:
            dialed.send(payload)
            accepted.send(payload)
        assert await a.until_received(len(sent)) == sent
        assert await b.until_received(len(sent)) == sent
        assert dialed._transport.get_extra_info("ssl_object").version() in ("TLSv1.2", "TLSv1.3")
        dialed.close()
        assert await b.until_lost() == "closed by the peer"
        assert await a.until_lost() == "closed here"


async def test_certificates_do_not_replace_the_secret(tls: Security) -> None:
    async with listening(tls) as (serving, connections):
        with pytest.raises(Refused) as caught:
            await dial(serving.address, replace(tls, secret=b"wrong"), hello_of("a"), 30)
        assert caught.value.refusal is Refusal.SECRET
        await assert_serves(serving, connections, tls)


async def test_a_peer_of_another_authority(tls: Security, authority: Authority, other_authority: Authority) -> None:
    foreign = other_authority.files("worker")
    # One that checks nobody's certificate but shows a foreign one, and one that trusts the foreign authority only.
    trusting = replace(foreign, authority=authority.certificate)
    async with listening(tls) as (serving, connections):
        for files in (foreign, trusting):
            with pytest.raises(Refused, match="TLS") as caught:
                await dial(serving.address, replace(tls, tls=files), hello_of("a"), 30)
            assert caught.value.refusal in (Refusal.TLS, Refusal.HUNG_UP)
        await until(lambda: serving.refused == 2)
        assert connections.empty()
        await assert_serves(serving, connections, tls)


async def test_one_side_without_tls(tls: Security, security: Security) -> None:
    async with listening(tls) as (serving, connections):
        with pytest.raises(Refused, match="TLS, or neither"):
            await dial(serving.address, security, hello_of("a"), 30)
        await until(lambda: serving.refused == 1)
        await assert_serves(serving, connections, tls)
    async with listening(security) as (serving, connections):
        with pytest.raises(Refused) as caught:
            await dial(serving.address, tls, hello_of("a"), 30)
        assert caught.value.refusal in (Refusal.TLS, Refusal.HUNG_UP)
        await until(lambda: serving.refused == 1)
        await assert_serves(serving, connections, security)


async def test_host_names_count_only_if_asked_for(tls: Security, authority: Authority) -> None:
    async with listening(tls) as (serving, connections):
        await assert_serves(serving, connections, tls)  # its certificate names another host
        checking = replace(tls, tls=authority.files("checking", check_hostname=True))
        with pytest.raises(Refused, match=r"TLS failed.*not valid for '127\.0\.0\.1'"):
            await dial(serving.address, checking, hello_of("a"), 30)


async def test_a_stalled_tls_handshake_is_bounded_too(tls: Security, monkeypatch: Any) -> None:
    monkeypatch.setattr(listener, "UNAUTHENTICATED_MAX", 2)
    monkeypatch.setattr(listener, "CROWDED_HANDSHAKE_SECONDS_MAX", 0.05)
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS_MAX", 1000.0)
    async with (
        listening(tls) as (serving, connections),
        raw_peer(serving) as one,
        raw_peer(serving) as two,
        raw_peer(serving) as three,
    ):
        await assert_serves(serving, connections, tls)
        assert serving.refused >= 2
        assert await one.read_to_end() == b""
        assert await two.read_to_end() == b""
        three.send(b"GET / HTTP/1.1\r\n\r\n")
        await three.read_to_end()
        await until(lambda: serving.handshakes == 0)


async def test_a_slow_tls_handshake_ends(tls: Security, monkeypatch: Any) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS_MAX", 0.05)
    async with listening(tls) as (serving, _), raw_peer(serving) as raw:
        assert await raw.read_to_end() == b""
        await until(lambda: serving.refused == 1)
        await asyncio.sleep(0)


def replace_file(files: TlsFiles, what: str, path: Path) -> TlsFiles:
    paths: dict[str, Any] = {what: path}
    return replace(files, **paths)


@pytest.mark.parametrize("what", ["certificate", "key", "authority"])
def test_files_that_are_missing_or_wrong(tls_files: TlsFiles, tmp_path: Path, what: str) -> None:
    broken = tmp_path / "broken.pem"
    security = Security(SECRET, "c1", replace_file(tls_files, what, broken))
    for context in (security.listener_context, security.dialer_context):
        with pytest.raises(ConfigurationError, match=rf"the TLS {what} .*broken\.pem cannot be read: No such file"):
            context()
    broken.write_text("no certificate")
    for context in (security.listener_context, security.dialer_context):
        with pytest.raises(ConfigurationError, match=r"broken\.pem.* PEM certificate"):
            context()


def test_a_key_of_another_certificate(tls_files: TlsFiles, authority: Authority) -> None:
    mixed = replace(tls_files, key=authority.files("second").key)
    with pytest.raises(ConfigurationError, match="are not a PEM certificate and its unencrypted key"):
        Security(SECRET, "c1", mixed).listener_context()


def test_an_encrypted_key_is_refused_without_asking_the_terminal(tls_files: TlsFiles, tmp_path: Path) -> None:
    encrypted = tmp_path / "encrypted.key"
    command = ["openssl", "pkcs8", "-topk8", "-in", tls_files.key, "-out", encrypted, "-passout", "pass:abcd"]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(ConfigurationError, match="unencrypted key"):
        Security(SECRET, "c1", replace(tls_files, key=encrypted)).listener_context()


@pytest.mark.parametrize(("secret", "cluster"), [(b"", "c1"), ("text", "c1"), (b"secret", ""), (b"secret", None)])
def test_a_security_that_is_none(secret: Any, cluster: Any) -> None:
    with pytest.raises(ConfigurationError):
        Security(secret, cluster)


def test_the_secret_is_not_printed(security: Security) -> None:
    assert "horse" not in repr(security)
