"""The HTTP client against a real gateway: results, every way to fail, many requests at once, and bulk loads."""

import asyncio
import math
import socket
import threading
from collections.abc import AsyncIterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

import styx
from styx import (
    App,
    ConfigurationError,
    LoadFailed,
    LoadReport,
    NotSent,
    Operator,
    OutcomeUnknown,
    RequestRejected,
    TransactionAborted,
)
from styx.client import http
from styx.client import load as load_module
from styx.client.embedded import EmbeddedClient
from styx.client.http import SENDS_MAX, HttpClient
from styx.client.http_load import ATTEMPTS_MAX
from styx.errors import MAY_HAVE_RUN
from styx.http.server import url_of
from tests.gateway.fake_engine import FakeEngine, add, numbered, paired, shelf
from tests.gateway.running import running

pytestmark = pytest.mark.anyio


async def test_call(url: str) -> None:
    async with styx.connect(url) as client:
        assert await client.call("shelf", "a", "add", 2, 3) == 5
        assert await client.call(shelf, "a", add, 2) == 3
        assert await client.call("shelf", "a", "echo", None) is None


async def test_request(url: str, engine: FakeEngine) -> None:
    async with HttpClient(url) as client:
        reply = await client.request("shelf", "a", "add", 2)
    assert reply == (3, None, 1, 7, 1, engine.requests[0].request_id)


@pytest.mark.parametrize("key", ["a/b", "..", ".", "a b+c%2F", "é\0", "?x=1#y", "[1]", "7"])
async def test_text_keys(url: str, key: str) -> None:
    async with HttpClient(url) as client:
        assert await client.call("shelf", key, "key") == repr(key)


@pytest.mark.parametrize(("operator", "key"), [("numbered", -7), ("paired", (1, "x/y")), (paired, (1, "x"))])
async def test_other_keys(url: str, operator: Any, key: Any) -> None:
    async with HttpClient(url) as client:
        assert await client.call(operator, key, "key") == repr(key)


@pytest.mark.parametrize(
    ("operator", "key"),
    [
        ("shelf", None),
        ("shelf", True),
        ("shelf", 1.0),
        ("shelf", 7),
        ("shelf", ("a",)),
        ("shelf", ""),
        ("shelf", ()),
        ("shelf", "\ud800"),
        ("numbered", "7"),
        (numbered, "7"),
        ("numbered", 2**64),
        ("paired", (1, None)),
    ],
)
async def test_bad_keys(url: str, engine: FakeEngine, operator: Any, key: Any) -> None:
    async with HttpClient(url) as client:
        with pytest.raises(RequestRejected) as caught:
            await client.call(operator, key, "key")
    assert caught.value.code == "bad_arguments"
    assert engine.requests == []


async def test_aborted(url: str) -> None:
    async with HttpClient(url) as client:
        reply = await client.request("shelf", "a", "fail", "sold <out>")
        assert reply.error == ("OutOfStock", "sold <out>", "aborted")
        assert reply.tid == 1
        with pytest.raises(TransactionAborted) as caught:
            await client.call("shelf", "a", "fail", "sold out")
    assert (caught.value.type, caught.value.message) == ("OutOfStock", "sold out")


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (("nothing", "a", "add", 1), "unknown_operator"),
        (("shelf", "a", "nothing"), "unknown_function"),
        (("shelf", "a", "add", "x"), "bad_arguments"),
        (("shelf", "a", "add"), "bad_arguments"),
        (("shelf", "a", "echo", object()), "bad_arguments"),
        (("shelf", "a", "echo", {"x": [math.nan, None]}), "bad_arguments"),
        (("shelf", "a", "echo", "x" * 1_100_000), "too_large"),
        ((None, "a", "echo"), "bad_arguments"),
        (("shelf", "a", 5), "bad_arguments"),
    ],
)
async def test_rejected(url: str, request_: Any, code: str) -> None:
    async with HttpClient(url) as client:
        reply = await client.request(*request_)
        assert reply.error is not None
        assert reply.error.code == code
        with pytest.raises(RequestRejected) as caught:
            await client.call(*request_)
    assert caught.value.code == code


async def test_null_and_finite_arguments_are_sent(url: str) -> None:
    async with HttpClient(url) as client:
        assert await client.call("shelf", "a", "echo", [None, 1.5, {"x": None}]) == [None, 1.5, {"x": None}]


async def test_typed_arguments(url: str) -> None:
    from datetime import UTC, datetime
    from decimal import Decimal

    arguments = (b"\xff", datetime(2026, 1, 2, tzinfo=UTC), Decimal("1.10"), {"x": 1, "y": 2}, {1: 2})
    async with HttpClient(url) as client:
        text = await client.call("shelf", "a", "typed", *arguments)
    assert text == repr((*arguments[:3], "POINT", {1: 2})).replace("'POINT'", "Point(x=1, y=2)")


async def test_idempotency_key(url: str) -> None:
    async with HttpClient(url) as client:
        assert await client.call("shelf", "a", "add", 1, idempotency_key="once") == 2
        assert await client.call("shelf", "a", "add", 5, idempotency_key="once") == 2
        for bad in ("", "a b", "x" * 257, "é", "a\r\nX: y"):
            with pytest.raises(RequestRejected, match="bad_request"):
                await client.call("shelf", "a", "add", 1, idempotency_key=bad)


async def test_timeout(url: str, engine: FakeEngine) -> None:
    engine.hold()
    async with HttpClient(url) as client:
        with pytest.raises(TimeoutError, match="may still commit"):
            await client.call("shelf", "a", "key", timeout=0.001)
        assert engine.requests
        for bad in (0, -1, math.nan, 601, "x", None, True):
            with pytest.raises(ValueError, match="timeout"):
                await client.request("shelf", "a", "key", timeout=bad)  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="timeout"):
                client.submit("shelf", "a", "key", timeout=bad)  # type: ignore[arg-type]


async def test_submit_sends_without_being_awaited(url: str, engine: FakeEngine) -> None:
    async with HttpClient(url) as client:
        waiting = client.submit("shelf", "a", "add", 1)
        await engine.arrived()
        assert (await waiting).result == 2


async def test_closing_leaves_nothing_behind(url: str, engine: FakeEngine) -> None:
    engine.hold()
    async with HttpClient(url) as client:
        waiting = client.submit("shelf", "a", "key")
        await engine.arrived()
    engine.release()
    with pytest.raises(OutcomeUnknown, match="closed before the reply came"):
        await waiting
    with pytest.raises(ConfigurationError, match="async with"):
        await client.request("shelf", "a", "key")


async def test_hundreds_at_once(url: str, engine: FakeEngine) -> None:
    async with HttpClient(url) as client:
        replies = await asyncio.gather(*(client.request("shelf", "a", "add", n) for n in range(500)))
    assert [reply.result for reply in replies] == list(range(1, 501))
    assert len({reply.request_id for reply in replies}) == 500


async def test_requests_in_flight_are_bounded(url: str, engine: FakeEngine) -> None:
    engine.hold()
    async with HttpClient(url) as client:
        client._in_flight_max = 1
        first = client.submit("shelf", "a", "key")
        await engine.arrived()
        reply = await client.request("shelf", "a", "key")
        assert reply.error is not None
        assert reply.error.code == "overloaded"
        engine.release()
        assert (await first).error is None


async def test_no_gateway_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with HttpClient(f"http://127.0.0.1:{port}") as client:
        with pytest.raises(NotSent, match="is the gateway running") as caught:
            await client.call("shelf", "a", "key")
    assert isinstance(caught.value, RequestRejected)
    assert isinstance(caught.value, ConnectionError)
    assert caught.value.code == "unavailable"


UNKNOWN = b'{"error":{"code":"unknown","type":"OutcomeUnknown","message":"it failed"}}'
LOST = b'{"error":{"code":"not_found","message":"lost"}}'


@pytest.mark.parametrize(
    ("answer", "error", "why"),
    [
        (b"", OutcomeUnknown, "broke before"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", OutcomeUnknown, "broke before"),
        (b"HTTP/1.1 502 Bad\r\nContent-Length: 6\r\n\r\n<html>", OutcomeUnknown, "502 without a reply"),
        (b"HTTP/1.1 500 Bad\r\nContent-Length: %d\r\n\r\n%b" % (len(LOST), LOST), OutcomeUnknown, "500 without"),
        (b"HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n", OutcomeUnknown, "408 without"),
        (b"HTTP/1.1 404 No\r\nContent-Length: %d\r\n\r\n%b" % (len(LOST), LOST), NotSent, "404 without"),
        (b"HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", NotSent, "301 without"),
        (
            b"HTTP/1.1 504 No\r\nContent-Length: %d\r\n\r\n%b" % (len(UNKNOWN), UNKNOWN),
            OutcomeUnknown,
            "^it failed; the",
        ),
        (b"garbage\r\n\r\n", OutcomeUnknown, "broke before"),
    ],
)
async def test_an_answer_that_is_no_reply_says_whether_the_request_may_have_run(
    answer: bytes, error: type[Exception], why: str
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"[]")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, HttpClient(url_of(server.sockets[0])) as client:
        with pytest.raises(error, match=why) as caught:
            await client.request("shelf", "a", "key")
    assert isinstance(caught.value, ConnectionError)
    assert str(caught.value).count(MAY_HAVE_RUN) == (error is OutcomeUnknown)


@pytest.mark.parametrize("idempotency_key", [None, "k"])
async def test_requests_under_way_when_the_client_is_closed(
    url: str, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, idempotency_key: str | None
) -> None:
    """One that a gateway has, one that waits for its connection, and one that has not begun."""
    monkeypatch.setattr(http, "CONNECTIONS_MAX", 1)
    client = await HttpClient(url).__aenter__()
    engine.hold()
    first = client.submit("shelf", "a", "key", idempotency_key=idempotency_key)
    await engine.arrived()
    second = client.submit("shelf", "a", "key", idempotency_key=idempotency_key)
    await asyncio.sleep(0)
    third = client.submit("shelf", "a", "key", idempotency_key=idempotency_key)
    await client.close()
    ended = await asyncio.gather(first, second, third, return_exceptions=True)
    assert [type(error) for error in ended] == [OutcomeUnknown, OutcomeUnknown, NotSent]
    assert len(engine.requests) == 1
    with pytest.raises(styx.ConfigurationError, match="async with"):
        client.submit("shelf", "a", "key")


async def test_an_outcome_that_the_gateway_does_not_know(url: str, engine: FakeEngine) -> None:
    engine.outcome = OutcomeUnknown("the disk is full")
    async with HttpClient(url) as client:
        with pytest.raises(OutcomeUnknown, match="the disk is full; the request may have committed") as caught:
            await client.call("shelf", "a", "key", idempotency_key="k")
    assert caught.value.request_id == engine.requests[0].request_id
    assert len(engine.requests) == 1  # and the client has not asked again by itself


@pytest.mark.parametrize(
    ("idempotency_key", "closed", "sent"),
    [("k", 1, 2), ("k", SENDS_MAX - 1, SENDS_MAX), ("k", SENDS_MAX, SENDS_MAX), (None, 1, 1)],
)
async def test_a_connection_that_closes_instead_of_an_answer(
    idempotency_key: str | None, closed: int, sent: int
) -> None:
    """As a kept-alive one may, whose gateway has ended."""
    bodies: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"[]")
        bodies.append(head)
        if len(bodies) > closed:
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"result":5}')
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, HttpClient(url_of(server.sockets[0])) as client:
        request = client.call("shelf", "a", "key", idempotency_key=idempotency_key)
        if idempotency_key is not None and closed < SENDS_MAX:
            assert await request == 5
        else:
            with pytest.raises(ConnectionError, match="broke before"):
                await request
    assert len(bodies) == sent


async def test_a_gateway_that_is_gone_when_it_is_sent_again() -> None:
    """Then it is not certain that nothing was sent."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"[]")
        server.close()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with HttpClient(url_of(server.sockets[0])) as client:
        with pytest.raises(ConnectionError, match="may have committed") as caught:
            await client.request("shelf", "a", "key", idempotency_key="k")
    assert not isinstance(caught.value, RequestRejected)


async def test_a_gateway_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "ANSWER_MARGIN_SECONDS", 0.0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, HttpClient(url_of(server.sockets[0])) as client:
        with pytest.raises(TimeoutError, match=r"no answer within 0\.001 s"):
            await client.request("shelf", "a", "key", timeout=0.001)


async def test_a_result_that_has_no_json(url: str) -> None:
    async with HttpClient(url) as client:
        with pytest.raises(styx.StyxError, match="committed"):
            await client.call("shelf", "a", "unwritable")


class Item(msgspec.Struct):
    price: Decimal


plain = Operator("plain")
item = Operator("item", key_type=(int, str), state_type=Item)
shop = App("shop", [plain, item])


@pytest.fixture(scope="module")
async def served_shop() -> AsyncIterator[tuple[EmbeddedClient, str]]:
    async with styx.embedded(shop) as client, running(client.engine) as server:
        yield client, server.url


@pytest.fixture
def there(served_shop: tuple[EmbeddedClient, str]) -> EmbeddedClient:
    return served_shop[0]


@pytest.fixture
def shop_url(served_shop: tuple[EmbeddedClient, str]) -> str:
    return served_shop[1]


async def test_loaded_values_arrive_as_what_they_are(there: EmbeddedClient, shop_url: str) -> None:
    values: dict[str, Any] = {
        "values-1": {1: b"\xff", "x": [1.5, None, (1, 2)]},
        "values-2": datetime(2026, 1, 2),  # noqa: DTZ001 - a state may be one
        "values-3": float("inf"),
    }
    async with HttpClient(shop_url) as client:
        assert await client.load("plain", values.items()) == LoadReport(3, 1)
        assert await client.load(item, [((1, "a"), Item(Decimal("1.50")))]) == LoadReport(1, 1)
    assert there.entity(plain, "values-1") == {1: b"\xff", "x": [1.5, None, [1, 2]]}
    assert [there.entity(plain, key) for key in ("values-2", "values-3")] == [values["values-2"], values["values-3"]]
    assert there.entity(item, (1, "a")) == Item(Decimal("1.50"))


async def test_a_load_of_many(there: EmbeddedClient, shop_url: str) -> None:
    async with HttpClient(shop_url) as client:
        report = await client.load(plain, ((f"many-{n}", n) for n in range(10_000)))
    assert report == LoadReport(10_000, 3)
    assert there.entity(plain, "many-9999") == 9999


async def test_a_loaded_key_that_exists_is_named(there: EmbeddedClient, shop_url: str) -> None:
    await there.load(plain, [("exists-5000", 0)])
    async with HttpClient(shop_url) as client:
        with pytest.raises(LoadFailed) as caught:
            await client.load(plain, [(f"exists-{n}", n) for n in range(9000)])
        failed = caught.value
        assert (failed.type, failed.code, failed.key, failed.index) == ("KeyExists", "aborted", "exists-5000", 5000)
        assert failed.loaded == sum(str(key).startswith("exists-") for _, key in there.state()) - 1
        assert (await client.load(plain, [("exists-5000", 1)], replace=True)).loaded == 1


async def test_a_loaded_value_that_does_not_fit_is_named(shop_url: str) -> None:
    async with HttpClient(shop_url) as client:
        with pytest.raises(LoadFailed, match=r"pair 1: .*item.*cannot be loaded") as caught:
            await client.load("item", [((2, "a"), {"price": "1"}), ((2, "b"), {"price": []})])
        assert (caught.value.code, caught.value.key) == ("bad_arguments", (2, "b"))
        with pytest.raises(LoadFailed, match="pair 0: BadArguments: plain"):
            await client.load("plain", [("a", {1, 2})])
        with pytest.raises(LoadFailed, match="pair 0: BadKey"):
            await client.load("plain", [(1.5, 1)])  # type: ignore[list-item]
        with pytest.raises(LoadFailed, match="has no operator") as caught:
            await client.load("plane", [("a", 1)])
        assert caught.value.code == "unknown_operator"


async def test_an_answer_to_a_load_that_is_lost_is_asked_for_again(
    there: EmbeddedClient, shop_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_module, "REPEAT_WAIT_FIRST_SECONDS", 0.0)
    lost = 0
    original = HttpClient._exchange

    async def exchange(self: HttpClient, *arguments: Any) -> Any:
        nonlocal lost
        answer = await original(self, *arguments)
        lost += 1
        if lost % 2:
            raise ConnectionError("the connection broke")
        return answer

    monkeypatch.setattr(HttpClient, "_exchange", exchange)
    async with HttpClient(shop_url) as client:
        assert (await client.load(plain, [(f"lost-{n}", n) for n in range(9000)])).loaded == 9000
    assert lost == 6, "each message was answered twice and loaded once"


async def test_a_load_tries_a_gateway_that_is_away_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module, "REPEAT_WAIT_FIRST_SECONDS", 0.0)
    attempts = 0
    original = HttpClient._exchange

    async def exchange(self: HttpClient, *arguments: Any) -> Any:
        nonlocal attempts
        attempts += 1
        return await original(self, *arguments)

    monkeypatch.setattr(HttpClient, "_exchange", exchange)
    async with HttpClient("http://127.0.0.1:1") as client:
        with pytest.raises(LoadFailed, match="is the gateway running there") as caught:
            await client.load("plain", [("a", 1)])
    assert (caught.value.code, attempts) == ("unavailable", ATTEMPTS_MAX)


async def test_a_load_of_a_client_that_is_not_open(shop_url: str) -> None:
    with pytest.raises(ConfigurationError, match="not open"):
        await HttpClient(shop_url).load("plain", [("a", 1)])


async def test_a_load_of_the_blocking_client(there: EmbeddedClient, shop_url: str) -> None:
    done: list[Any] = []

    def load() -> None:
        with styx.connect_sync(shop_url) as client:
            done.append(client.load(plain, [(f"sync-{n}", n) for n in range(100)]))
            try:
                client.load(plain, [("sync-7", 7)])
            except LoadFailed as failed:
                done.append(failed.key)

    thread = threading.Thread(target=load)
    thread.start()
    while thread.is_alive():  # noqa: ASYNC110 - the thread has no event to wait for
        await asyncio.sleep(0.01)
    assert done == [LoadReport(100, 1), "sync-7"]
    assert there.entity(plain, "sync-99") == 99


@pytest.mark.parametrize("told", ["9" * 5000, str(2**53), "-1", "²", "", "7x"])
def test_what_is_no_token_does_not_spoil_the_session(told: str) -> None:
    client = HttpClient("http://127.0.0.1:1")
    client._answered("41")
    client._answered(told)
    assert client.epoch == 41
