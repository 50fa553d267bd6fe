"""The direct way and the way of ASGI answer alike: the same bytes, requests to the engine, counts and ends."""

from __future__ import annotations

import asyncio
import logging
import re
from itertools import pairwise
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import styx
from styx import Limits, NotSent, OutcomeUnknown, RequestRejected
from styx.cli.request_lines import RequestLines
from styx.gateway.app import Gateway
from styx.gateway.front import Entrance
from styx.http.direct_request import DirectRequest
from styx.http.room import BODY_SECONDS_MAX, HttpLimits, Room
from styx.messages import ReplyRecord
from tests.gateway.fake_engine import FakeEngine, app
from tests.gateway.ways import FRONT, Way, both, held, request
from tests.http.wire import Peer, turns

pytestmark = pytest.mark.anyio


def chunked(*parts: bytes, line: str = "POST /v1/shelf/a/add") -> bytes:
    sent = request(line, None, Transfer_Encoding="chunked")
    return sent + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def twice(name: str, value: str, other: str) -> bytes:
    return request().replace(b"\r\n\r\n", f"\r\n{name}: {value}\r\n{name}: {other}\r\n\r\n".encode(), 1)


TAKEN: Final = {
    "committed": request(),
    "by name": request(body=b'{"right": 3, "left": 2}'),
    "no body": request("POST /v1/shelf/a/key", b""),
    "no length": request("POST /v1/shelf/a/key", None),
    "no content type": request(kind=None),
    "content type of many words": request(kind="application/json; charset=utf-8"),
    "another content type": request(kind="application/x.cart+json"),
    "chunked": chunked(b"[2,", b" 3]"),
    "aborted": request("POST /v1/shelf/a/fail", b'["only <2> left"]'),
    "odd result": request("POST /v1/shelf/a/odd", b""),
    "unwritable result": request("POST /v1/shelf/a/unwritable", b""),
    "no such operator": request("POST /v1/shelve/a/add"),
    "no such function": request("POST /v1/shelf/a/subtract"),
    "empty key": request("POST /v1/shelf//add"),
    "empty function": request("POST /v1/shelf/a/"),
    "empty names": request("POST /v1///"),
    "encoded key": request("POST /v1/shelf/a%2Fb/key", b""),
    "broken encoding": request("POST /v1/shelf/a%2/key", b""),
    "encoding of no text": request("POST /v1/shelf/%ff/key", b""),
    "number as key": request("POST /v1/numbered/17/key", b""),
    "no number as key": request("POST /v1/numbered/x/key", b""),
    "wrong kind of key": request("POST /v1/shelf/1/key", b"", Styx_Key_Type="int"),
    "no JSON": request(body=b"[1, "),
    "no arguments": request(body=b"1"),
    "arguments do not fit": request(body=b'["x"]'),
    "too many arguments": request(body=b"[1, 2, 3]"),
    "key twice": request(body=b'{"left": 1, "left": 2}'),
    "no UTF-8": request("POST /v1/shelf/a/echo", b'["\xff"]'),
    "too large": request("POST /v1/shelf/a/echo", b'["%b"]' % (b"x" * 2000)),
    "too large in chunks": chunked(b'["', b"x" * 2000, b'"]', line="POST /v1/shelf/a/echo"),
    "too large an argument": request("POST /v1/shelf/a/echo", b'["%b"]' % (b"x" * 800)),
    "idempotency key": request(Idempotency_Key="once"),
    "bad idempotency key": request(Idempotency_Key="a b"),
    "timeout": request(Styx_Timeout="2.5"),
    "bad timeout": request(Styx_Timeout="0"),
    "token": request(Styx_Epoch="3"),
    "last of its connection": request(Connection="close"),
    "own page": request(Origin="http://localhost", Sec_Fetch_Site="same-origin"),
    "shared page": request(Origin="https://shop.example", Sec_Fetch_Site="cross-site"),
    "another protocol": request(Connection="upgrade", Upgrade="h2c"),
    "read outside the log of what may write": request(Styx_Freshness="latest"),
    "read at an epoch of what may write": request(Styx_At="3"),
    "call of what only reads": request("POST /v1/shelf/a/look", b"[3]"),
    "read outside the log": request("POST /v1/shelf/a/look", b"[3]", Styx_Freshness="latest"),
    "read at an epoch": request("POST /v1/shelf/a/look", b"[3]", Styx_At="3"),
    "read of no freshness": request("POST /v1/shelf/a/look", b"[3]", Styx_Freshness="newest"),
    "read of no epoch": request("POST /v1/shelf/a/look", b"[3]", Styx_At="x"),
    "get": request("GET /v1/shelf/a/look", None, kind=None),
    "get with arguments": request("GET /v1/shelf/a/look?width=3&label=two%20words", None, kind=None),
    "get with an empty query": request("GET /v1/shelf/a/look?", None, kind=None),
    "get with a bad argument": request("GET /v1/shelf/a/look?width=x", None, kind=None),
    "get with an unknown argument": request("GET /v1/shelf/a/look?wide=3", None, kind=None),
    "get with slashes in the query": request("GET /v1/shelf/a/look?label=/v1/x/y", None, kind=None),
    "get outside the log": request("GET /v1/shelf/a/look?width=3", None, Styx_Freshness="strict"),
    "get by a token": request("GET /v1/shelf/a/look", None, Styx_Epoch="3", Styx_Max_Staleness="0.5"),
    "get of what may write": request("GET /v1/shelf/a/add", None),
    "get of no operator": request("GET /v1/shelve/a/look", None),
    "get of an empty key": request("GET /v1/shelf//look", None),
    "get with a key of its own": request("GET /v1/shelf/a/look", None, Idempotency_Key="once"),
    "get with a bad timeout": request("GET /v1/shelf/a/look", None, Styx_Timeout="0"),
    "get, the last of its connection": request("GET /v1/shelf/a/look", None, Connection="close"),
    "get by a shared page": request(
        "GET /v1/shelf/a/look", None, kind=None, Origin="https://shop.example", Sec_Fetch_Site="cross-site"
    ),
    "read of an entity": request("GET /v1/shelf/a", None),
    "read of an entity by a token": request("GET /v1/shelf/a", None, Styx_Epoch="3"),
    "read of an entity outside the log": request("GET /v1/shelf/a", None, Styx_At="3"),
    "read of an entity with a bad header": request("GET /v1/shelf/a", None, Styx_Freshness="latest", Styx_At="3"),
    "read of an entity with a bad timeout": request("GET /v1/shelf/a", None, Styx_Timeout="0"),
    "read of rows": request("GET /v1/shelf/a?rows=books&x=1", None),
    "read of an empty key": request("GET /v1/shelf/", None),
    "read of an encoded key": request("GET /v1/shelf/a%2Fb", None),
    "read of a key that is no text": request("GET /v1/shelf/%ff", None),
    "read of no number": request("GET /v1/numbered/x", None),
    "read of no operator": request("GET /v1/shelve/a", None),
}
OTHERS: Final = {
    "HTTP/1.0": request(version="1.0"),
    "HTTP/1.0 kept": request(version="1.0", Connection="keep-alive"),
    "asks first": request(Expect="100-continue"),
    "strange host": request(host="strange.example"),
    "no host": request(host=None),
    "host twice": twice("Host", "localhost", "localhost"),
    "strange page": request(Origin="https://strange.example", Sec_Fetch_Site="cross-site"),
    "form": request(kind="application/x-www-form-urlencoded"),
    "preflight": request(
        "OPTIONS /v1/shelf/a/add", None, Origin="https://shop.example", Access_Control_Request_Method="POST"
    ),
    "timeout twice": twice("Styx-Timeout", "1", "2"),
    "cookie twice": twice("Cookie", "a=1", "b=2"),
    "query": request("POST /v1/shelf/a/add?x=1"),
    "fragment": request("POST /v1/shelf/a/add#x"),
    "head": request("HEAD /v1/shelf/a/look", None),
    "head of an entity": request("HEAD /v1/shelf/a", None),
    "get with a body": request("GET /v1/shelf/a/look", b"[3]"),
    "get with an empty body": request("GET /v1/shelf/a", b""),
    "get with a body in chunks": chunked(b"[3]", line="GET /v1/shelf/a/look"),
    "get with a fragment": request("GET /v1/shelf/a/look#x", None),
    "get with a header twice": twice("Cookie", "a=1", "b=2").replace(b"POST", b"GET"),
    "get from a strange page": request(
        "GET /v1/shelf/a/look", None, kind=None, Origin="https://strange.example", Sec_Fetch_Site="cross-site"
    ),
    "put": request("PUT /v1/shelf/a/add"),
    "listing": request("GET /v1/shelf?x=/a/b", None),
    "watch of a query": request("GET /v1/sql/watch", None),
    "events of a name": request("GET /v1/events/a", None),
    "load": request("POST /v1/shelf", b""),
    "bad load": request("POST /v1/shelf", b"x"),
    "too deep": request("POST /v1/shelf/a/b/add"),
    "dead": request("POST /v1/~dead/shelf/7/drop", b""),
    "events": request("POST /v1/events/a/b", b""),
    "encoded prefix": request("POST /%76%31/shelf/a/add"),
    "page": request("GET /healthz", None),
    "no page": request("POST /v2/shelf/a/add"),
    "host in the target": request("POST http://localhost/v1/shelf/a/add"),
    "another host in the target": request("POST http://strange.example/v1/shelf/a/add"),
    "no HTTP": b"POST\r\n\r\n",
    "bad length": request(body=None, Content_Length="x"),
    "bad chunk": request(body=None, Transfer_Encoding="chunked") + b"x\r\n",
    "control character": request("POST /v1/shelf/a\x7f/add"),
    "beyond ASCII": request("POST /v1/shelf/\xe9/add"),
    "empty line": b"\r\n",
}
ALL: Final = TAKEN | OTHERS


@pytest.mark.parametrize("name", TAKEN)
async def test_what_goes_the_direct_way(name: str) -> None:
    direct, _ = await both(ALL[name])
    assert len(direct.taken) == 1
    assert direct.served().written.startswith(b"HTTP/1.1 ")
    assert sum(direct.served().by_status.values()) == 1


@pytest.mark.parametrize("name", OTHERS)
async def test_what_goes_by_asgi(name: str) -> None:
    direct, _ = await both(ALL[name])
    assert direct.taken == []


@pytest.mark.parametrize("target", [b"/v1/shelf/\xe9/add", b"/v1/shelf/a/add?x", b"/v1/shelf/a/add#x", b"/v1/shelf/a"])
async def test_what_is_no_path_of_a_call_is_not_taken_of_a_post(target: bytes) -> None:
    connection, headers = Way(direct=True).peer.connection, [(b"host", b"localhost")]
    direct = Gateway(FakeEngine()).direct
    assert direct.takes(DirectRequest(connection, b"POST", b"/v1/shelf/a/add", headers, keep_alive=True))
    assert not direct.takes(DirectRequest(connection, b"POST", target, headers, keep_alive=True))


@pytest.mark.parametrize("name", ALL)
async def test_behind_and_before_others(name: str) -> None:
    direct, _ = await both(request() + ALL[name] + request("POST /v1/shelf/b/add", b"[7]"))
    assert direct.taken


@pytest.mark.parametrize("name", ALL)
async def test_byte_by_byte(name: str) -> None:
    """A body that comes later than its headers goes by ASGI, and so do the answers that need no body."""
    sent = ALL[name]
    await both(*(sent[at : at + 1] for at in range(len(sent))), request())


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(st.sampled_from(sorted(ALL)), min_size=1, max_size=6),
    cuts=st.lists(st.floats(0, 1), max_size=6),
)
async def test_any_requests_cut_anywhere(names: list[str], cuts: list[float]) -> None:
    sent = b"".join(ALL[name] for name in names)
    places = sorted({0, len(sent), *(int(cut * len(sent)) for cut in cuts)})
    await both(*(sent[begin:end] for begin, end in pairwise(places)))


_TEXT = st.text("abc/%2F~.-_?#é\x7f ", max_size=8)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(
        st.sampled_from(["shelf", "numbered", "a", "add", "echo", "key", "look", "look?width=2", "a?rows=x", "", "17"])
        | _TEXT,
        max_size=4,
    ),
    body=st.binary(max_size=12) | st.sampled_from([b"", b"[1]", b'{"left":1}', b'{"a":[{}]}', b'["\\ud800"]']),
    headers=st.lists(
        st.tuples(
            st.sampled_from(
                [
                    *("Styx-Timeout", "Idempotency-Key", "Styx-Key-Type", "Styx-Epoch", "Styx-At", "Origin", "X-Other"),
                    *("Sec-Fetch-Site", "Connection", "Expect", "Host", "Content-Type", "Styx-Max-Staleness", "Cookie"),
                ]
            ),
            st.sampled_from(["", "1", "int", "str", "close", "x y", "localhost", "https://shop.example", "none"]),
        ),
        max_size=3,
    ),
    method=st.sampled_from(["POST", "POST", "POST", "GET", "GET", "PUT"]),
)
async def test_any_request(names: list[str], body: bytes, headers: list[tuple[str, str]], method: str) -> None:
    target = "/v1/" + "/".join(names)
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost"]
    if method == "GET":
        body = b""
    else:
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name}: {value}" for name, value in headers]
    await both("\r\n".join([*lines, "", ""]).encode("latin-1") + body, request())


async def test_a_body_that_comes_later_has_its_time() -> None:
    head, body = request()[:-6], request()[-6:]
    for way in Way(direct=True), Way(direct=False):
        await way.send(head)
        assert b" 408 " in await way.peer.after(BODY_SECONDS_MAX + 1)
        assert (way.taken, way.engine.requests) == ([], [])
    direct, _ = await both(head, body)
    assert direct.taken == []


# While an engine holds a request ---------------------------------------------------------------------------


async def test_answers_keep_their_order_and_calls_run_one_after_the_other() -> None:
    sent = [request(), request("POST /v1/shelf/b/add", b"[7]"), ALL["page"], request("POST /v1/shelf/c/add", b"[8]")]
    for way in await held(b"".join(sent)):
        assert len(way.engine.requests) == 1
        assert way.peer.wire.written == b""
        way.engine.release()
        await turns()
        await turns()
        written = way.served().written
        assert [b'"result":5' in written, b'"result":8' in written, b'"result":9' in written] == [True] * 3
        answers = re.findall(rb'"result":\d|"status":"ok"', written)
        assert answers == [b'"result":5', b'"result":8', b'"status":"ok"', b'"result":9']
        assert not way.peer.wire.paused


async def test_bytes_that_are_no_request_behind_one_under_way() -> None:
    for way in await held(request() + b"\0\0"):
        assert way.peer.wire.written == b""
        way.engine.release()
        await turns()
        assert [way.peer.wire.written.count(b" 200 OK"), way.peer.wire.written.count(b" 400 ")] == [1, 1]
        assert way.peer.wire.ended


async def test_a_client_that_has_gone(caplog: pytest.LogCaptureFixture) -> None:
    """Its transaction runs, and its answer counts."""
    ways = await held(request())
    for way in ways:
        way.peer.wire.abort()
        await turns()
        way.engine.release()
        await turns()
        assert way.peer.wire.written == b""
        assert (way.gateway.metrics.in_flight, way.gateway.metrics._by_status) == (0, {200: 1})
        assert not way.peer.state.tasks
    assert not caplog.records


async def test_draining_closes_the_connection_after_the_answer() -> None:
    ways = await held(request(Origin="https://shop.example", Sec_Fetch_Site="cross-site"))
    for way in ways:
        way.gateway.draining = True
        way.engine.release()
        await turns()
        assert way.peer.wire.closed
        assert b"\r\nconnection: close\r\n" in way.peer.wire.written
    assert ways[0].served() == ways[1].served()


@pytest.mark.parametrize(
    "more", [b"", request("POST /v1/shelf/b/add", b"[7]"), ALL["page"]], ids=["one", "two", "page"]
)
async def test_shutdown_answers_what_is_under_way(more: bytes) -> None:
    ways = await held(request() + more)
    for way in ways:
        way.peer.connection.shutdown()
        assert not way.peer.wire.closed
        way.engine.release()
        await turns()
        await turns()
        assert way.peer.wire.written.count(b" 200 OK") == 1 + bool(more)
        assert way.peer.wire.written.count(b"connection: close") == 1
        assert way.peer.wire.closed
    assert ways[0].served() == ways[1].served()


async def test_shutdown_closes_what_waits_at_once() -> None:
    for way in await both(request()):
        way.peer.connection.shutdown()
        assert way.peer.wire.closed


async def test_the_end_of_the_grace_period_is_answered() -> None:
    ways = await held(request())
    for way in ways:
        for task in way.peer.state.tasks:
            task.cancel(msg="the grace period is over")
        await turns()
        assert b'"code":"unknown"' in way.peer.wire.written
        assert b"the gateway is shutting down" in way.peer.wire.written
        assert not way.peer.state.tasks
        way.engine.release()  # nobody hears of the reply any more
        await turns()
    assert ways[0].served() == ways[1].served()


async def test_a_reply_that_comes_as_the_grace_period_ends_is_the_only_answer() -> None:
    way, _ = await held(request())
    (task,) = way.peer.state.tasks
    task.cancel(msg="the grace period is over")
    under_way: Any = way.taken[0].cancelled.__self__  # type: ignore[union-attr]
    under_way.set_result(ReplyRecord("id", 1, 1, 7, 1, b"\x05"))
    await turns()
    assert way.peer.wire.written.count(b"HTTP/1.1 ") == 1
    assert way.gateway.metrics.in_flight == 0
    way.engine.release()
    await turns()


async def test_no_reply_in_time() -> None:
    ways = await held(request(Styx_Timeout="0.001"))
    for way in ways:
        for _ in range(100):
            if way.peer.wire.written:
                break
            await turns()
        assert b'"message":"no reply within 0.001 s; the request may still commit"' in way.peer.wire.written
        way.engine.release()
        await turns()
    assert ways[0].served() == ways[1].served()


@pytest.mark.parametrize("name", ["get outside the log", "read of an entity outside the log", "read outside the log"])
async def test_a_read_outside_the_log_that_does_not_end(name: str) -> None:
    sent = ALL[name].replace(b"\r\n", b"\r\nStyx-Timeout: 0.001\r\n", 1)
    ways = await held(sent)
    for way in ways:
        for _ in range(100):
            if way.peer.wire.written:
                break
            await turns()
        assert b"the read has not ended within 0.001 s; nothing was changed" in way.peer.wire.written
        assert all(waiting.cancelled() for waiting in way.engine.held or ()), "the engine need not go on"
        way.engine.release()
        await turns()
    assert ways[0].served() == ways[1].served()


@pytest.mark.parametrize("name", ["get outside the log", "read of an entity outside the log", "read of an entity"])
async def test_the_end_of_the_grace_period_while_a_read_waits(name: str) -> None:
    ways = await held(ALL[name])
    for way in ways:
        for task in way.peer.state.tasks:
            task.cancel(msg="the grace period is over")
        await turns()
        assert b"the gateway is shutting down" in way.peer.wire.written
        assert not way.peer.state.tasks
        way.engine.release()
        await turns()
    assert ways[0].served() == ways[1].served()


async def test_the_wait_without_a_header() -> None:
    for way in await held(request(), seconds=0.001):
        for _ in range(100):
            if way.peer.wire.written:
                break
            await turns()
        assert b"no reply within 0.001 s" in way.peer.wire.written


async def test_requests_in_flight_are_bounded() -> None:
    ways = await held(request(), limits=Limits(in_flight_max=1))
    for way in ways:
        second = Peer(way.peer.connection.app, way.peer.connection._room, way.peer.connection._direct)
        assert b" 429 " in await second.send(request())
        way.engine.release()
        await turns()
        assert way.gateway.metrics._by_status == {200: 1, 429: 1}


@pytest.mark.parametrize(
    "error",
    [
        RequestRejected("overloaded", "full"),
        NotSent("nobody is there"),
        OutcomeUnknown("the disk is full"),
        RuntimeError("secret"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("when", ["error", "outcome"])
@pytest.mark.parametrize("name", ["committed", "get", "get outside the log", "read of an entity", "read at an epoch"])
async def test_what_an_engine_raises(error: Exception, when: str, name: str) -> None:
    ways = Way(direct=True), Way(direct=False)
    for way in ways:
        setattr(way.engine, when, error)
        await way.send(ALL[name])
        assert b"secret" not in way.peer.wire.written
    assert ways[0].served() == ways[1].served()
    assert ways[0].served().written


async def test_an_engine_that_cannot_serve() -> None:
    ways = Way(direct=True), Way(direct=False)
    for way in ways:
        way.engine.unavailable_reason = "the log's disk is full"
        await way.send(request())
        assert b"retry-after: 1" in way.peer.wire.written
    assert ways[0].served() == ways[1].served()


async def test_a_client_that_does_not_read_goes_by_asgi_which_waits() -> None:
    for way in Way(direct=True), Way(direct=False):
        way.peer.connection.pause_writing()
        await way.send(request())
        assert (way.taken, way.peer.wire.written, len(way.engine.requests)) == ([], b"", 1)
        way.peer.connection.resume_writing()
        await turns()
        assert way.peer.wire.written.count(b" 200 OK") == 1


# With lines for a terminal -----------------------------------------------------------------------------------


async def test_lines_for_a_terminal(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "styx.requests")
    told = []
    for direct in (True, False):
        way = Way(direct=direct, around=RequestLines)
        await way.send(request(), request("POST /v1/shelf/a/fail", b'["no"]'), ALL["no JSON"])
        assert len(way.taken) == (3 if direct else 0)
        told.append([re.sub(r"[0-9.]+ ms", "T ms", record.getMessage()) for record in caplog.records])
        caplog.clear()
    assert told[0] == told[1]
    assert told[0][0] == "200 shelf/a.add T ms epoch 7"
    assert len(told[0]) == 3


async def test_pipelined_calls_of_an_embedded_engine_are_all_answered() -> None:
    """An engine gives its replies in the middle of its work, when it takes no further request."""
    async with styx.embedded(app) as client:
        entrance = Entrance(Gateway(client.engine), FRONT, FRONT.rules("localhost", "127.0.0.1"))
        peer = Peer(entrance.application, Room(HttpLimits(1, 75.0)), entrance.direct)
        peer.connection.data_received(b"".join(request(body=b"[%d, 0]" % number) for number in range(5)))
        async with asyncio.timeout(5):
            while peer.connection._in_flight:
                await turns()
        assert re.findall(rb'"result":(\d)', peer.wire.written) == [b"0", b"1", b"2", b"3", b"4"]
