"""A line for each request, and one for many."""

import asyncio
import logging
from typing import Any

import httpx
import pytest

from styx.cli import request_lines
from styx.cli.request_lines import LINES_PER_SECOND_MAX, RequestLines, request_name
from styx.gateway.app import Gateway
from tests.gateway.fake_engine import FakeEngine

pytestmark = pytest.mark.anyio


@pytest.fixture
def http(engine: FakeEngine, caplog: pytest.LogCaptureFixture) -> httpx.AsyncClient:
    caplog.set_level(logging.INFO, "styx.requests")
    application: Any = RequestLines(Gateway(engine))
    return httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://gateway")


def without_time(line: str) -> str:
    return " ".join("T" if word.replace(".", "").isdigit() and "." in word else word for word in line.split())


async def test_a_line(http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    await http.post("/v1/shelf/a/echo", json=[1])
    await http.post("/v1/shelf/a/nothing")
    await http.post("/v1/shelf/a/echo", content="{")
    await http.get("/healthz")
    lines = [without_time(record.getMessage()) for record in caplog.records]
    assert [line.split(" epoch ")[0] for line in lines] == [
        "200 shelf/a.echo T ms",
        "404 shelf/a.nothing UnknownFunction T ms",
        "400 shelf/a.echo RequestRejected T ms",
    ]
    assert " epoch " in lines[0]


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("POST", "/v1/account/alice/transfer", "account/alice.transfer"),
        ("POST", "/bank/v1/account/a%2Fb/open?x=1", "account/a/b.open"),
        ("POST", "/v1/account/%0A%1B[2J/open", "'account/\\n\\x1b[2J.open'"),
        ("POST", "/v1/account", "account (load)"),
        ("POST", "/v1/sql", "sql"),
        ("GET", "/v1/account/alice", "GET account/alice"),
        ("POST", "/v1/account/" + "a" * 1000 + "/open", "account/" + "a" * 192 + "…"),
    ],
    ids=range(7),
)
async def test_what_a_request_is_called(method: str, path: str, name: str) -> None:
    assert request_name({"method": method, "path": path, "raw_path": path.encode()}) == name


async def test_a_type_of_error_moves_no_cursor(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "styx.requests")
    scope = {"method": "POST", "path": "/v1/shelf/a/echo"}
    body = b'{"error":{"type":"Bad\\n\\u001b[2J"},"transaction":{"epoch":4}}'
    application: Any = None
    RequestLines(application).ended(scope, 409, body, 1.5)
    [record] = caplog.records
    assert record.getMessage() == "409 shelf/a.echo Bad\\n\\x1b[2J 1.5 ms epoch 4"


async def test_many_at_once_are_summed_up(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    due: list[Any] = []
    monkeypatch.setattr(loop, "time", lambda: 1.5)
    monkeypatch.setattr(loop, "call_later", lambda seconds, callback: due.append(callback))
    for _ in range(LINES_PER_SECOND_MAX + 30):
        await http.post("/v1/shelf/a/nothing")
    for _ in range(3):
        await http.post("/v1/shelf/a/echo", json=[1])
    assert len(caplog.records) == LINES_PER_SECOND_MAX
    [sum_up] = due
    sum_up()
    last = caplog.records[-1].getMessage()
    assert last.startswith("33 more requests: 30 × 404 UnknownFunction, 3 × 200; median "), last


async def test_a_large_answer_is_not_looked_into(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_lines, "BODY_BYTES_MAX", 100)
    await http.post("/v1/shelf/a/echo", json=["x" * 1000])
    [record] = caplog.records
    assert "epoch" not in record.getMessage()
