"""Everything that is not a transaction: health, readiness, metrics, unknown routes."""

import asyncio
from types import SimpleNamespace

import httpx
import pytest

from styx.gateway.app import Gateway
from styx.reports.mistakes import Mistakes
from tests.gateway.fake_engine import FakeEngine

pytestmark = pytest.mark.anyio


@pytest.fixture
def http(gateway: Gateway) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(gateway, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://gateway")


async def test_healthz_while_the_engine_may_recover(http: httpx.AsyncClient, engine: FakeEngine) -> None:
    engine.unavailable_reason = "Kafka is away"
    assert (await http.get("/healthz")).status_code == 200
    engine.broken_reason = "replies are not read any more"
    answer = await http.get("/healthz")
    assert (answer.status_code, answer.json()["error"]["message"]) == (503, "replies are not read any more")


async def test_each_answer_is_the_last_on_its_connection_while_it_drains(
    http: httpx.AsyncClient, engine: FakeEngine, gateway: Gateway
) -> None:
    asked = ["/v1/shelf/a/key", "/v1/shelf/a/nothing", "/v1/shelf", "/healthz", "/nothing"]
    for path in asked:
        assert "connection" not in (await http.post(path)).headers
    engine.hold()
    under_way = asyncio.create_task(http.post("/v1/shelf/a/key"))
    await engine.arrived()
    gateway.draining = True
    engine.release()
    for answer in [await under_way, *[await http.post(path) for path in asked]]:
        assert answer.headers["connection"] == "close"
    assert (await under_way).status_code == 200


async def test_readyz(http: httpx.AsyncClient, engine: FakeEngine, gateway: Gateway) -> None:
    assert (await http.get("/readyz")).status_code == 200
    engine.unavailable_reason = "the engine is starting"
    answer = await http.get("/readyz")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "starting" in answer.json()["error"]["message"]
    engine.unavailable_reason = "no disk"
    assert (await http.get("/readyz")).json()["error"]["message"] == "no disk"
    engine.unavailable_reason, gateway.draining = None, True
    assert "shutting down" in (await http.get("/readyz")).json()["error"]["message"]


async def test_metrics(http: httpx.AsyncClient) -> None:
    await http.post("/v1/shelf/a/key")
    await http.post("/v1/shelf/a/nothing")
    answer = await http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert "engine_up 1" in lines
    assert 'styx_gateway_requests_total{status="200"} 1.0' in lines
    assert 'styx_gateway_requests_total{status="404"} 1.0' in lines
    assert "styx_gateway_request_seconds_count 2.0" in lines
    assert 'styx_gateway_request_seconds_bucket{le="+Inf"} 2.0' in lines
    assert "styx_gateway_in_flight 0.0" in lines


@pytest.mark.parametrize("path", ["/nothing", "/v1", "/docs/", "/healthz/x", "/v2/shelf/a/key"])
async def test_unknown_routes_are_json(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"])
async def test_other_methods(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.post(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method_not_allowed")
    assert "GET" in answer.headers["allow"]
    assert (await http.head(path)).status_code == 200


async def test_root_leads_to_the_docs(http: httpx.AsyncClient) -> None:
    answer = await http.get("/", follow_redirects=True)
    assert answer.url.path == "/docs"
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]


async def test_a_fault_is_json(http: httpx.AsyncClient, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "metrics", None)
    answer = await http.get("/metrics")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")


async def test_errors_of_an_engine_that_runs_here(http: httpx.AsyncClient, engine: FakeEngine) -> None:
    answer = await http.get("/errors")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    engine.reports = SimpleNamespace(mistakes=Mistakes())  # type: ignore[attr-defined]
    answer = await http.get("/errors")
    assert (answer.status_code, answer.json()) == (200, {"total": 0, "mistakes": []})
