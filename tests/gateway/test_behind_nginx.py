"""A gateway behind a real nginx, as `examples/nginx/styx.conf` has it: TLS and sign-in at the proxy, path prefixes, and
whose address counts. In place of oauth2-proxy stands what it answers nginx with.
"""

import asyncio
import json
import logging
import shutil
import ssl
import subprocess
import urllib.parse
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from styx.gateway.auth import api_keys
from styx.gateway.auth.access import AccessOptions
from styx.gateway.auth.api_keys import new_key, utc_now
from styx.gateway.auth.limits import FAILURES_AT_ONCE_MAX
from styx.gateway.front import Front
from styx.process.ports import free_port
from styx.testing.patience import PATIENCE_SECONDS
from tests.gateway.auth.signers import AUDIENCE, ISSUER, Signer, jwks
from tests.gateway.fake_engine import FakeEngine
from tests.gateway.running import running
from tests.local_http import Handler, serving
from tests.transport.conftest import Authority

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
EXAMPLE = Path(__file__).parents[2] / "examples/nginx/styx.conf"
NAME = "shop.example.com"
SIGNER = Signer("k1", "RS256")
RULES = """
[[allow]]
keys = ["program"]
call = ["*"]
[[allow]]
claims = {role = "teller"}
call = ["shelf.key"]
see = ["docs"]
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def sessions() -> Iterator[str]:
    """HOST:PORT of who answers as oauth2-proxy does with --set-authorization-header; the cookie names the role."""

    class Sessions(Handler):
        def do_GET(self) -> None:
            role = self.headers.get("Cookie", "").partition("session=")[2]
            if role:
                self.say(202, Authorization=f"Bearer {SIGNER.token(role=role, filler='x' * 6_000)}")
            else:
                self.say(401)

    with serving(Sessions) as address:
        yield address


class Proxied:
    """A client of nginx; `key` is an API key of the gateway behind it."""

    def __init__(self, port: int, authority: Path, key: str) -> None:
        self.url = f"https://{NAME}:{port}"
        self.key = key
        self._context = ssl.create_default_context(cafile=authority)
        self._port = port

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        sent = {"host": NAME} | {name.replace("_", "-"): value for name, value in headers.items()}
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            sent["Content-Type"] = "application/json"
        async with httpx.AsyncClient(verify=self._context, timeout=PATIENCE_SECONDS) as client:
            url = httpx.URL(f"https://127.0.0.1:{self._port}{path}")
            more = {"sni_hostname": NAME}
            return await client.request(method, url, content=content, headers=sent, extensions=more)


@asynccontextmanager
async def proxied(folder: Path, sessions: str, **tokens: Any) -> AsyncIterator[Proxied]:
    """nginx, with `sessions` in place of oauth2-proxy; `tokens` are other options of the gateway's access."""
    files = Authority(folder, "shop").files("proxy", NAME)
    key, entry = new_key("program", utc_now())
    api_keys.change_file(folder / "keys.json", lambda keys: [entry])
    (folder / "jwks.json").write_text(json.dumps(jwks(SIGNER)))
    (folder / "rules.toml").write_text(RULES)
    own = {"signing_keys": str(folder / "jwks.json"), "issuer": ISSUER, "audiences": (AUDIENCE,)}
    access = AccessOptions(api_keys=folder / "keys.json", policy=folder / "rules.toml", **(own | tokens))
    front = Front(allowed_hosts=(NAME,), access=access, trusted_proxies=("127.0.0.1",))
    port = free_port()
    async with running(FakeEngine(), front=front) as gateway:
        example = EXAMPLE.read_text()
        for there, here in (
            ("127.0.0.1:8080", urllib.parse.urlsplit(gateway.url).netloc),
            ("127.0.0.1:4180", sessions),
            ("listen 443", f"listen 127.0.0.1:{port}"),
            ("/etc/nginx/shop.crt", str(files.certificate)),
            ("/etc/nginx/shop.key", str(files.key)),
        ):
            assert there in example
            example = example.replace(there, here)
        temporary = "".join(
            f"{each}_temp_path {folder}/{each};\n" for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (folder / "nginx.conf").write_text(
            f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
            f"events {{ }}\nhttp {{\naccess_log {folder}/access.log;\n{temporary}{example}}}\n"
        )
        words = [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
        checked = await asyncio.to_thread(subprocess.run, [*words, "-t"], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr
        process = await asyncio.create_subprocess_exec(*words)
        try:
            found = Proxied(port, folder / "shop.pem", key)
            await _answers(found, process)
            yield found
        finally:
            process.terminate()
            await process.wait()


async def _answers(proxied: Proxied, process: asyncio.subprocess.Process) -> None:
    while True:
        assert process.returncode is None
        try:
            await proxied.ask("GET", "/api/healthz")
        except httpx.ConnectError:
            await asyncio.sleep(0.05)
        else:
            return


async def test_programs(tmp_path: Path, sessions: str) -> None:
    async with proxied(tmp_path, sessions) as proxy:
        right = {"authorization": f"Bearer {proxy.key}"}
        assert (await proxy.ask("GET", "/api/readyz")).status_code == 200
        refused = await proxy.ask("POST", "/api/v1/shelf/a/add", [1, 2])
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, 'Bearer realm="styx"')
        assert (await proxy.ask("POST", "/api/v1/shelf/a/add", [1, 2], **right)).json()["result"] == 3
        # A slash, a percent sign and what is no ASCII arrive as they were sent.
        for key in ("a/b", "..a", "50%", "%2F", "é", "a b", "?x", "//", "a;b"):
            path = f"/api/v1/shelf/{urllib.parse.quote(key, safe='')}/key"
            answer = await proxy.ask("POST", path, [], **right)
            assert (answer.status_code, answer.json()["result"]) == (200, repr(key)), answer.text
        for wrong in ("elsewhere.example", f"{NAME}.evil.example"):
            # nginx has one server here, which takes any name; the gateway does not.
            other = await proxy.ask("POST", "/api/v1/shelf/a/add", [1, 2], **right, host=wrong)
            assert (other.status_code, other.json()["error"]["code"]) == (403, "forbidden_host")


async def test_people_who_signed_in(tmp_path: Path, sessions: str) -> None:
    async with proxied(tmp_path, sessions) as proxy:
        stranger = await proxy.ask("GET", "/styx/docs")
        assert (stranger.status_code, stranger.headers["location"]) == (302, f"{proxy.url}/oauth2/start?rd=/styx/docs")
        own = {"cookie": "session=teller", "origin": f"https://{NAME}", "sec-fetch-site": "same-origin"}
        assert (await proxy.ask("GET", "/styx/docs", cookie="session=teller")).status_code == 200
        assert (await proxy.ask("POST", "/styx/v1/shelf/a%2Fb/key", [], **own)).json()["result"] == "'a/b'"
        assert (await proxy.ask("POST", "/styx/v1/shelf/a/add", [1, 2], **own)).status_code == 403, "no rule for it"
        guest = await proxy.ask("POST", "/styx/v1/shelf/a/key", [], cookie="session=guest")
        assert (guest.status_code, guest.json()["error"]["code"]) == (403, "forbidden")
        # A key beside no session is none, and one beside a session is replaced by the person's token.
        forged = {"authorization": f"Bearer {proxy.key}"}
        assert (await proxy.ask("POST", "/styx/v1/shelf/a/key", [], **forged)).status_code == 302
        assert (await proxy.ask("POST", "/styx/v1/shelf/a/add", [1, 2], **own, **forged)).status_code == 403
        assert (await proxy.ask("GET", "/oauth2/auth", cookie="session=teller")).status_code == 404, (
            "nobody gets a token"
        )


async def test_a_stranger_s_page_cannot_use_the_session(tmp_path: Path, sessions: str) -> None:
    """The browser sends the cookie with what another site has it send; the gateway refuses that."""
    async with proxied(tmp_path, sessions) as proxy:
        for said in (
            {"origin": "https://evil.example"},
            {"origin": "null"},
            {"origin": f"https://{NAME}", "sec-fetch-site": "same-site"},
            {"sec-fetch-site": "cross-site"},
        ):
            answer = await proxy.ask("POST", "/styx/v1/shelf/a/key", [], cookie="session=teller", **said)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden_origin"), said


async def test_addresses_are_the_clients(tmp_path: Path, sessions: str, caplog: pytest.LogCaptureFixture) -> None:
    """What a client says in X-Forwarded-For is replaced: failing under other names helps nobody."""
    async with proxied(tmp_path, sessions) as proxy:
        with caplog.at_level(logging.WARNING, "styx.audit"):
            answers = [
                await proxy.ask("GET", "/api/metrics", authorization="Bearer x", x_forwarded_for=f"10.0.0.{number}")
                for number in range(FAILURES_AT_ONCE_MAX + 1)
            ]
        assert [each.status_code for each in answers] == [401] * FAILURES_AT_ONCE_MAX + [429]
        assert "retry-after" in answers[-1].headers
        assert json.loads(caplog.records[-1].getMessage())["client"] == "127.0.0.1"
