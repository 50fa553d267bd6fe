"""A person signs in by OpenID Connect: a real nginx, a real oauth2-proxy with the options that docs/operations.md gives
it, and a provider that lets everybody in.
"""

import asyncio
import json
import re
import shlex
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from styx.process.ports import free_port
from styx.testing.patience import PATIENCE_SECONDS
from tests.docs.snippets import ROOT
from tests.gateway.auth.signers import Signer, jwks
from tests.gateway.test_behind_nginx import NAME, NGINX, Proxied, proxied
from tests.local_http import Handler, serving

OAUTH2_PROXY = shutil.which("oauth2-proxy")
SIGNER = Signer("k1", "RS256")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.skipif(NGINX is None or OAUTH2_PROXY is None, reason="nginx or oauth2-proxy is not installed"),
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def provider() -> Iterator[str]:
    """The issuer's URL. Whoever comes is alice, a teller."""
    nonces: list[str] = []

    class Provider(Handler):
        def do_GET(self) -> None:
            parts = urllib.parse.urlsplit(self.path)
            said = {name: values[0] for name, values in urllib.parse.parse_qs(parts.query).items()}
            if parts.path == "/authorize":
                nonces.append(said.get("nonce", ""))
                self.say(302, Location=f"{said['redirect_uri']}?code=c&state={urllib.parse.quote(said['state'])}")
            elif parts.path == "/keys":
                self._page(jwks(SIGNER))
            else:
                ends = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
                urls = {name: f"{issuer}/{path}" for name, path in ends.items()}
                self._page({"issuer": issuer, **urls, "id_token_signing_alg_values_supported": ["RS256"]})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            claims: dict[str, Any] = {
                "iss": issuer,
                "aud": "CLIENT-ID",
                "email": "alice@example.com",
                "email_verified": True,
            }
            token = SIGNER.token(**claims, role="teller", nonce=nonces[-1])
            self._page({"access_token": "a", "token_type": "Bearer", "expires_in": 600, "id_token": token})

        def _page(self, page: object) -> None:
            self.say(200, json.dumps(page).encode(), Content_Type="application/json")

    with serving(Provider) as address:
        issuer = f"http://{address}"
        yield issuer


@contextmanager
def oauth2_proxy(folder: Path, issuer: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Where it listens, and its process."""
    (folder / "client").write_text("a-secret-of-the-client")
    text = (ROOT / "docs/operations.md").read_text().replace("\\\n", " ")
    (command,) = re.findall(r"^    (oauth2-proxy --provider .*)$", text, re.MULTILINE)
    address = f"127.0.0.1:{free_port()}"
    for there, here in (
        ("https://login.example.com", issuer),
        ("--client-secret-file FILE", f"--client-secret-file {folder}/client"),
        ("127.0.0.1:4180", address),
    ):
        assert there in command
        command = command.replace(there, here)
    with (
        (folder / "oauth2-proxy.log").open("wb") as log,
        subprocess.Popen(
            [str(OAUTH2_PROXY), *shlex.split(command)[1:]],
            stdout=log,
            stderr=log,
            env={"OAUTH2_PROXY_COOKIE_SECRET": "0123456789abcdef0123456789abcdef"},
        ) as process,
    ):
        try:
            yield address, process
        finally:
            process.terminate()


async def _listens(address: str, process: subprocess.Popen[bytes]) -> None:
    async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as client:
        while True:
            try:
                await client.get(f"http://{address}/ping")
            except httpx.ConnectError:
                assert process.poll() is None, "it ended before it listened"
                await asyncio.sleep(0.1)
            else:
                return


class Browser:
    """Follows redirects between the proxy and the provider, and keeps the proxy's cookies."""

    def __init__(self, proxy: Proxied) -> None:
        self._proxy = proxy
        self._cookies: dict[str, str] = {}

    @property
    def cookies(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self._cookies.items())

    async def open(self, url: str) -> httpx.Response:
        for _ in range(10):
            parts = urllib.parse.urlsplit(url)
            if parts.hostname in (None, NAME):
                path = urllib.parse.urlunsplit(("", "", parts.path, parts.query, ""))
                answer = await self._proxy.ask("GET", path, cookie=self.cookies, accept="text/html")
                for header in answer.headers.get_list("set-cookie"):
                    name, _, value = header.partition(";")[0].partition("=")
                    self._cookies[name] = value
            else:
                async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as client:
                    answer = await client.get(url)
            if answer.status_code not in (302, 307):
                return answer
            url = answer.headers["location"]
        raise AssertionError(f"it never ends: {url}")


async def test_a_person_signs_in_and_uses_the_app(tmp_path: Path, provider: str) -> None:
    with oauth2_proxy(tmp_path, provider) as (sessions, process):
        await _listens(sessions, process)
        tokens = {"signing_keys": f"{provider}/keys", "issuer": provider, "audiences": ("CLIENT-ID",)}
        async with proxied(tmp_path, sessions, **tokens) as proxy:
            browser = Browser(proxy)
            page = await browser.open("/styx/docs")
            assert (page.status_code, "shelf" in page.text) == (200, True), page.text[:500]
            own = {"cookie": browser.cookies, "origin": f"https://{NAME}", "sec-fetch-site": "same-origin"}
            assert (await proxy.ask("POST", "/styx/v1/shelf/a%2Fb/key", [], **own)).json()["result"] == "'a/b'"
            assert (await proxy.ask("POST", "/styx/v1/shelf/a/add", [1, 2], **own)).status_code == 403
            stranger = await proxy.ask("POST", "/styx/v1/shelf/a/key", [], **(own | {"origin": "https://evil.example"}))
            assert (stranger.status_code, stranger.json()["error"]["code"]) == (403, "forbidden_origin")
            assert (
                await proxy.ask("POST", "/styx/v1/shelf/a/key", [], cookie="_oauth2_proxy=forged")
            ).status_code == 302
