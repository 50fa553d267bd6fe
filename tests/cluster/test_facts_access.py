"""Who may read a process's facts: by token beyond this machine, and no stranger's page on it."""

import asyncio
import json
import logging
import urllib.error
import urllib.request
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from styx import ConfigurationError
from styx.cluster import facts_server as facts_server_module
from styx.cluster.facts_access import FactsAccess, given_token, token_of, tokens_for
from styx.cluster.facts_server import FactsAddress, Page, facts_server, well
from styx.gateway.auth.audit import LINES_AT_ONCE
from styx.gateway.auth.limits import FAILURES_AT_ONCE_MAX
from styx.testing.patience import PATIENCE_SECONDS

SECRET, TOKEN = b"s" * 32, "t" * 32
CLIENTS = count()
PAGES = ("/metrics", "/status", "/errors", "/other", "/", "/healthz/", "//healthz")


def refused(access: FactsAccess, path: str, headers: Mapping[str, str], method: str = "GET") -> int | None:
    said = [(name.encode(), value.encode()) for name, value in headers.items()]
    found = access.refusal(method, path, "1.1", said, client=f"10.0.0.{next(CLIENTS)}")
    return None if found is None else found.status


def test_on_this_machine_programs_are_served_and_pages_are_not() -> None:
    access = FactsAccess("127.0.0.1")
    for path in PAGES:
        assert refused(access, path, {"host": "localhost:8081"}) is None
        assert refused(access, path, {"host": "evil.example"}) == 403
        assert refused(access, path, {"host": "localhost:8081", "origin": "http://localhost:1"}) == 403
        assert refused(access, path, {"host": "localhost:8081", "sec-fetch-site": "cross-site"}) == 403


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "10.0.0.1"])
def test_with_tokens_nothing_but_health_is_told_without(host: str) -> None:
    access = FactsAccess(host, (TOKEN, "u" * 32))
    for path in PAGES:
        for token in (TOKEN, "u" * 32):
            assert refused(access, path, {"host": "coordinator:8081", "authorization": f"Bearer {token}"}) is None
        for wrong in ("", "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[1:]}", TOKEN):
            assert refused(access, path, {"host": "coordinator:8081", "authorization": wrong}) == 401
        assert refused(access, path, {}) == 401
    for path in ("/healthz", "/readyz"):
        assert refused(access, path, {"host": "10.1.2.3"}) is None
        assert refused(access, path, {"host": "10.1.2.3"}, "POST") == 401


def test_two_headers_are_none() -> None:
    twice = [(b"authorization", b"Bearer " + TOKEN.encode())] * 2
    assert FactsAccess("0.0.0.0", (TOKEN,)).refusal("GET", "/metrics", "1.1", twice) is not None


def test_who_fails_too_often_has_to_wait() -> None:
    access, wrong = FactsAccess("0.0.0.0", (TOKEN,)), [(b"authorization", b"Bearer x")]
    statuses = []
    for _ in range(FAILURES_AT_ONCE_MAX + 2):
        found = access.refusal("GET", "/metrics", "1.1", wrong, "10.0.0.1", 7.0)
        assert found is not None
        statuses.append((found.status, found.code, found.retry_s is None))
    assert statuses == [(401, "unauthenticated", True)] * FAILURES_AT_ONCE_MAX + [(429, "rate_limited", False)] * 2
    right = [(b"authorization", b"Bearer " + TOKEN.encode())]
    assert access.refusal("GET", "/metrics", "1.1", right, "10.0.0.1", 7.0) is None
    nothing = access.refusal("GET", "/metrics", "1.1", [], "10.0.0.1", 7.0)
    assert nothing is not None
    assert nothing.status == 401


def test_refusals_without_a_line_are_told_of_with_the_next_request(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = 100.0
    monkeypatch.setattr(facts_server_module, "time", SimpleNamespace(monotonic=lambda: now_s))
    application = facts_server_module._Application({"/healthz": lambda: well(None)}, FactsAccess("0.0.0.0", (TOKEN,)))

    async def send(_: object) -> None: ...

    def ask(path: str) -> None:
        scope = {"method": "GET", "path": path, "headers": [], "client": ("10.0.0.1", 5)}
        asyncio.run(application(scope, None, send))

    with caplog.at_level(logging.WARNING, "styx.audit"):
        for _ in range(int(LINES_AT_ONCE) + 5):
            ask("/metrics")
        ask("/healthz")
        assert len(caplog.records) == LINES_AT_ONCE
        now_s += 1
        ask("/healthz")
        ask("/healthz")
    assert len(caplog.records) == LINES_AT_ONCE + 1
    assert json.loads(caplog.records[-1].getMessage())["left_out"] == 5


def test_which_tokens_are_asked_for(tmp_path: Path) -> None:
    own = token_of(SECRET)
    assert SECRET.decode() not in own
    assert tokens_for("127.0.0.1", SECRET, {}) == tokens_for("localhost", SECRET, {}) == ()
    assert tokens_for("0.0.0.0", SECRET, {}) == tokens_for("10.0.0.1", SECRET, {}) == (own,)
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    for environment in ({"STYX_FACTS_TOKEN": TOKEN}, {"STYX_FACTS_TOKEN_FILE": str(file)}):
        assert tokens_for("127.0.0.1", SECRET, environment) == (TOKEN, own)


@pytest.mark.parametrize("text", ["short", "a b" * 20, "é" * 20, "a\nb" * 20])
def test_what_is_no_token(text: str) -> None:
    with pytest.raises(ConfigurationError, match="STYX_FACTS_TOKEN is no token"):
        given_token({"STYX_FACTS_TOKEN": text})
    with pytest.raises(ConfigurationError, match="cannot be read"):
        given_token({"STYX_FACTS_TOKEN_FILE": "/none"})


def test_over_http(caplog: pytest.LogCaptureFixture) -> None:
    def get(url: str, token: str = "") -> tuple[int, str | None]:
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                return answer.status, None
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["retry-after"] or error.headers["www-authenticate"]

    async def main() -> None:
        pages = {"/healthz": lambda: well(None), "/metrics": lambda: Page(b"a 1\n")}
        async with facts_server(FactsAddress("127.0.0.1", 0, (TOKEN,)), pages) as url:
            for path, token, status in (("/metrics", "", 401), ("/metrics", TOKEN, 200), ("/healthz", "", 200)):
                assert (await asyncio.to_thread(get, f"{url}{path}", token))[0] == status
            assert await asyncio.to_thread(get, f"{url}/none") == (401, 'Bearer realm="styx"')
            told = [await asyncio.to_thread(get, f"{url}/metrics", "guess") for _ in range(FAILURES_AT_ONCE_MAX + 1)]
            assert told[-1][0] == 429
            assert 1 <= int(told[-1][1] or 0) <= 5

    with caplog.at_level(logging.WARNING, "styx.audit"):
        asyncio.run(main())
    line = json.loads(caplog.records[-1].getMessage())
    assert (line["status"], line["code"], line["client"], line["method"]) == (429, "rate_limited", "127.0.0.1", "GET")
    assert "guess" not in caplog.text
