"""The table of answers: what a request gets back, for every way it can end."""

import asyncio
from typing import Any

import pytest

from styx import EngineFailed, Limits, NotSent, OutcomeUnknown, RequestRejected
from styx.gateway import head
from styx.gateway.app import Gateway
from tests.gateway.asgi import exchange, post
from tests.gateway.fake_engine import FakeEngine

pytestmark = pytest.mark.anyio


async def test_committed(gateway: Gateway) -> None:
    answer = await post(gateway, "/v1/shelf/a/add", b"[2, 3]")
    assert answer.status == 200
    assert answer.json == {"result": 5, "transaction": {"id": 1, "epoch": 7, "phase": 1}}
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["styx-request-id"]


async def test_keyword_arguments_and_defaults(gateway: Gateway) -> None:
    assert (await post(gateway, "/v1/shelf/a/add", b'{"right": 3, "left": 2}')).json["result"] == 5
    assert (await post(gateway, "/v1/shelf/a/add", b'{"left": 2}')).json["result"] == 3
    assert (await post(gateway, "/v1/shelf/a/add", b"[2]")).json["result"] == 3


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b" [ ] "])
async def test_no_arguments(gateway: Gateway, body: bytes) -> None:
    assert (await post(gateway, "/v1/shelf/a/key", body)).json["result"] == "'a'"


async def test_aborted(gateway: Gateway) -> None:
    answer = await post(gateway, "/v1/shelf/a/fail", b'["only <2> left"]')
    assert answer.status == 409
    assert answer.json == {
        "error": {"code": "aborted", "type": "OutOfStock", "message": "only <2> left"},
        "transaction": {"id": 1, "epoch": 7, "phase": 1},
    }


@pytest.mark.parametrize(
    ("path", "code", "named"),
    [
        ("/v1/shelve/a/add", "unknown_operator", "shelf"),
        ("/v1/healthz/a/add", "unknown_operator", "shelf"),
        ("/v1/shelf/a/subtract", "unknown_function", "add"),
        ("/v1/shelf/a/__class__", "unknown_function", "add"),
        ("/v1/shelf/a", "not_found", "/v1/OPERATOR/KEY/FUNCTION"),
        ("/v1/shelf/a/b/add", "not_found", "%2F"),
        ("/v1/shelf/a/add/", "not_found", "/v1/OPERATOR/KEY/FUNCTION"),
        ("/v1/", "not_found", "/v1/OPERATOR/KEY/FUNCTION"),
    ],
)
async def test_nothing_there(gateway: Gateway, engine: FakeEngine, path: str, code: str, named: str) -> None:
    answer = await post(gateway, path, b"[1]")
    assert (answer.status, answer.code) == (404, code)
    assert named in answer.json["error"]["message"]
    assert engine.requests == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_wrong_method(gateway: Gateway, method: str) -> None:
    answer = await exchange(gateway, method, "/v1/shelf/a/add")
    assert (answer.status, answer.code, answer.headers["allow"]) == (405, "method_not_allowed", "POST")


@pytest.mark.parametrize("body", [b"[1, ", b"1", b"null", b'"x"', b" ", b"x=1"])
async def test_body_is_no_arguments(gateway: Gateway, engine: FakeEngine, body: bytes) -> None:
    answer = await post(gateway, "/v1/shelf/a/add", body)
    assert (answer.status, answer.code) == (400, "bad_request")
    assert engine.requests == []


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b'["x"]', "left"),
        (b'[1, "x"]', "right"),
        (b"[]", "left"),
        (b"[1, 2, 3]", "left"),
        (b'{"left": 1, "middle": 2}', "middle"),
        (b'{"left": null}', "left"),
        (b"[18446744073709551616]", "arguments"),
    ],
)
async def test_arguments_do_not_fit(gateway: Gateway, engine: FakeEngine, body: bytes, named: str) -> None:
    answer = await post(gateway, "/v1/shelf/a/add", body)
    assert (answer.status, answer.code) == (422, "bad_arguments")
    assert named in answer.json["error"]["message"]
    assert engine.requests == []


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("unknown_operator", 404),
        ("unknown_function", 404),
        ("bad_request", 400),
        ("bad_arguments", 422),
        ("too_large", 413),
        ("overloaded", 429),
        ("unavailable", 503),
        ("never heard of", 500),
    ],
)
async def test_codes_of_the_engine(gateway: Gateway, engine: FakeEngine, code: str, status: int) -> None:
    engine.reply_error = (code, "SomeError", "why")
    answer = await post(gateway, "/v1/shelf/a/key")
    assert answer.status == status
    assert answer.json["error"] == {"code": code, "type": "SomeError", "message": "why"}
    assert answer.json["transaction"]["id"] == 1
    assert ("retry-after" in answer.headers) == (status in (429, 503))


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (RequestRejected("overloaded", "full"), 429, "overloaded"),
        (RequestRejected("unavailable", "gone"), 503, "unavailable"),
        (NotSent("nobody is there"), 503, "unavailable"),
    ],
)
async def test_refused_by_the_engine(
    gateway: Gateway, engine: FakeEngine, error: Exception, status: int, code: str
) -> None:
    engine.error = error
    answer = await post(gateway, "/v1/shelf/a/key")
    assert (answer.status, answer.code, answer.headers["retry-after"]) == (status, code, "1")


@pytest.mark.parametrize(
    "error", [OutcomeUnknown("the disk is full"), EngineFailed("the disk is full"), RuntimeError("the disk is full")]
)
async def test_an_outcome_that_nobody_knows_is_never_told_as_nothing(
    gateway: Gateway, engine: FakeEngine, error: Exception
) -> None:
    """Whatever ends the waiting for a reply once the engine has the request."""
    engine.outcome = error
    answer = await post(gateway, "/v1/shelf/a/key")
    assert (answer.status, answer.code) == (504, "unknown")
    assert "may have committed" in answer.json["error"]["message"]
    assert "retry-after" not in answer.headers
    request_id = answer.headers["styx-request-id"]
    assert answer.json["request_id"] == answer.json["error"]["request_id"] == request_id
    assert engine.requests[0].request_id == request_id


async def test_a_fault_before_the_engine_has_it(
    gateway: Gateway, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(headers: object) -> str:
        raise RuntimeError("a fault")

    monkeypatch.setattr(head, "idempotency_key", broken)
    answer = await post(gateway, "/v1/shelf/a/key")
    assert (answer.status, answer.code, engine.requests) == (500, "internal", [])
    assert "nothing was run" in answer.json["error"]["message"]


async def test_a_fault_behind_the_gateway_is_answered_and_logged(
    gateway: Gateway, engine: FakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine.error = ZeroDivisionError("secret")
    answer = await post(gateway, "/v1/shelf/a/key")
    assert (answer.status, answer.code) == (504, "unknown")
    assert b"secret" not in answer.body
    assert "ZeroDivisionError" in caplog.text


async def test_unavailable(gateway: Gateway, engine: FakeEngine) -> None:
    engine.unavailable_reason = "the log's disk is full"
    answer = await post(gateway, "/v1/shelf/a/key")
    assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "unavailable", "1")
    assert answer.json["error"]["message"] == "the log's disk is full"
    engine.unavailable_reason = None
    assert (await post(gateway, "/v1/shelf/a/key")).status == 200


async def test_requests_in_flight_are_bounded() -> None:
    engine = FakeEngine(Limits(in_flight_max=1))
    gateway = Gateway(engine)
    engine.hold()
    first = asyncio.create_task(post(gateway, "/v1/shelf/a/key"))
    await engine.arrived()
    answer = await post(gateway, "/v1/shelf/a/key")
    assert (answer.status, answer.code, answer.headers["retry-after"]) == (429, "overloaded", "1")
    engine.release()
    assert (await first).status == 200
    assert (await post(gateway, "/v1/shelf/a/key")).status == 200
    engine.in_flight = 1  # another client's
    assert (await post(gateway, "/v1/shelf/a/key")).status == 429


async def test_no_reply_in_time(gateway: Gateway, engine: FakeEngine) -> None:
    engine.hold()
    answer = await post(gateway, "/v1/shelf/a/key", styx_timeout="0.001")
    assert (answer.status, answer.code) == (504, "timeout")
    request_id = answer.headers["styx-request-id"]
    assert answer.json["request_id"] == answer.json["error"]["request_id"] == request_id
    assert engine.requests[0].request_id == request_id
    assert b"styx_gateway_in_flight 0.0" in (await exchange(gateway, "GET", "/metrics")).body


async def test_default_timeout(engine: FakeEngine) -> None:
    engine.hold()
    assert (await post(Gateway(engine, timeout_seconds=0.001), "/v1/shelf/a/key")).status == 504


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1e3", "x", "", "601", "1 s", "0.0000000001", "9" * 999])
async def test_bad_timeouts(gateway: Gateway, value: str) -> None:
    answer = await post(gateway, "/v1/shelf/a/key", styx_timeout=value)
    assert (answer.status, answer.code) == (400, "bad_request")
    assert "Styx-Timeout" in answer.json["error"]["message"]


async def test_idempotency_key(gateway: Gateway, engine: FakeEngine) -> None:
    first = await post(gateway, "/v1/shelf/a/add", b"[1]", idempotency_key="once")
    again = await post(gateway, "/v1/shelf/a/add", b"[5]", idempotency_key="once")
    assert first.json == again.json
    assert [request.idempotency_key for request in engine.requests] == ["once", "once"]
    assert first.headers["styx-request-id"] != again.headers["styx-request-id"]


@pytest.mark.parametrize("value", ["", "a b", "x" * 257, "\xe9", "tab\t"])
async def test_bad_idempotency_keys(gateway: Gateway, engine: FakeEngine, value: str) -> None:
    answer = await post(gateway, "/v1/shelf/a/key", idempotency_key=value)
    assert (answer.status, answer.code) == (400, "bad_request")
    assert engine.requests == []


async def test_longest_idempotency_key(gateway: Gateway) -> None:
    assert (await post(gateway, "/v1/shelf/a/key", idempotency_key="x" * 256)).status == 200


async def test_cancelled_by_the_server(gateway: Gateway, engine: FakeEngine) -> None:
    engine.hold()
    task = asyncio.create_task(post(gateway, "/v1/shelf/a/key"))
    await engine.arrived()
    task.cancel()
    answer = await task
    assert (answer.status, answer.code) == (504, "unknown")


async def test_cancelled_by_the_server_before_the_body_has_come(engine: FakeEngine) -> None:
    answers: list[Any] = []

    async def receive() -> Any:
        reading.set()
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        answers.append(message)

    reading = asyncio.Event()
    scope = {"type": "http", "method": "POST", "path": "/v1/shelf/a/key", "headers": [], "query_string": b""}
    task = asyncio.ensure_future(Gateway(engine)(scope, receive, send))
    await reading.wait()
    task.cancel()
    await task
    assert (answers[0]["status"], engine.requests) == (503, [])
    assert b"nothing was run" in answers[1]["body"]


async def test_client_hangs_up_before_the_body_ends(gateway: Gateway, engine: FakeEngine) -> None:
    answer = await exchange(gateway, "POST", "/v1/shelf/a/key", [b"[", None])
    assert (answer.status, engine.requests) == (0, [])
    metrics = (await exchange(gateway, "GET", "/metrics")).body
    assert b'styx_gateway_requests_total{status="499"} 1.0' in metrics
    assert b"styx_gateway_in_flight 0.0" in metrics


async def test_result_that_is_not_json_is_still_committed(gateway: Gateway) -> None:
    answer = await post(gateway, "/v1/shelf/a/unwritable")
    assert answer.status == 200
    assert answer.json["result"] is None
    assert "committed" in answer.json["result_error"]
    assert answer.json["transaction"]["id"] == 1
