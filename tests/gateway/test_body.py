"""A request's body: the limit of its size while it arrives, strict JSON, and arguments by annotation."""

import asyncio
from collections.abc import MutableMapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from styx import Limits, RequestRejected
from styx.errors import BadArguments
from styx.gateway import body as reading
from styx.gateway.app import Gateway
from styx.gateway.arguments import NESTING_MAX, ArgumentReader, split
from styx.gateway.body import IncomingBody
from styx.model.signature import ARGUMENTS_MAX, Signature
from tests.gateway.asgi import exchange, post
from tests.gateway.fake_engine import FakeEngine, Point, shelf

pytestmark = pytest.mark.anyio

PATH = "/v1/shelf/a/echo"

# Size ----------------------------------------------------------------------------------------------------


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine(Limits(request_bytes_max=100))


async def test_at_the_limit_and_over_it(gateway: Gateway) -> None:
    assert (await post(gateway, PATH, b'["' + b"x" * 96 + b'"]')).status == 200
    answer = await post(gateway, PATH, b'["' + b"x" * 97 + b'"]')
    assert (answer.status, answer.code) == (413, "too_large")
    assert "100 bytes" in answer.json["error"]["message"]


async def test_body_in_parts(gateway: Gateway) -> None:
    answer = await exchange(gateway, "POST", PATH, [b"[", b"", b"1", b"]"])
    assert answer.json["result"] == 1
    assert (await exchange(gateway, "POST", PATH, [b"[", b" " * 60, b" " * 60, b"]"])).status == 413


@pytest.mark.parametrize("length", ["101", "1" + "0" * 30, "9" * 5000])
async def test_announced_size_is_refused_unread(gateway: Gateway, length: str) -> None:
    answer = await exchange(gateway, "POST", PATH, [b"["] * 9, {"content-length": length, "expect": "100-continue"})
    assert (answer.status, answer.code, answer.parts_read) == (413, "too_large", 0)


@pytest.mark.parametrize("length", ["x", "-1", "", "1.0", "²"])
async def test_bad_content_length(gateway: Gateway, length: str) -> None:
    assert (await exchange(gateway, "POST", PATH, [b"[1]"], {"content-length": length})).status == 400


async def test_an_oversized_body_is_read_no_further_than_the_linger_limit(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LINGER_BYTES_MAX", 1000)
    answer = await exchange(gateway, "POST", PATH, [b" " * 101] * 100)
    assert answer.status == 413
    assert answer.parts_read <= 11


async def test_a_refused_request_is_read_to_its_end_before_it_is_answered(gateway: Gateway) -> None:
    answer = await exchange(gateway, "POST", "/v1/none/a/b", [b" " * 10] * 5)
    assert (answer.status, answer.parts_read) == (404, 5)


async def test_a_body_that_stops_arriving(
    gateway: Gateway, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LINGER_SECONDS_MAX", 0.001)
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    path = {"method": "POST", "path": PATH, "raw_path": PATH.encode()}
    await gateway({"type": "http", **path, "headers": [(b"styx-timeout", b"0.001")]}, receive, send)
    assert sent[0]["status"] == 400
    assert b"nothing was run" in sent[1]["body"]
    assert engine.requests == []


async def test_arguments_may_not_grow_over_the_limit_by_encoding() -> None:
    gateway = Gateway(FakeEngine(Limits(value_bytes_max=100)))
    assert (await post(gateway, PATH, b"[[" + b"0.5," * 9 + b"0.5]]")).status == 200
    assert (await post(gateway, PATH, b"[[" + b"0.5," * 19 + b"0.5]]")).status == 413


async def test_reading_stops_as_soon_as_it_is_too_much() -> None:
    parts = iter(range(1000))

    async def receive() -> MutableMapping[str, Any]:
        next(parts)
        return {"type": "http.request", "body": b"x" * 40, "more_body": True}

    with pytest.raises(RequestRejected):
        await IncomingBody(receive).read(100)
    assert next(parts) == 3


# JSON ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": 1, "\\u0061": 2}', "twice"),
        (b'[{"b": {"a": 1, "a": 1}}]', "twice"),
        (b'["\xff"]', "UTF-8"),
        (b'{"\xc3": 1}', "UTF-8"),
        (b'["\\ud800"]', "JSON"),
        (b"[NaN]", "JSON"),
        (b'[{"a": NaN}]', "JSON"),
        (b"[Infinity]", "JSON"),
        (b"[1] 2", "JSON"),
        (b"[1],", "JSON"),
        (b"[1", "JSON"),
        (b"['a']", "JSON"),
        (b"[01]", "JSON"),
        (b"[1,]", "JSON"),
        (b'{"a": 1,}', "JSON"),
        (b"{1: 2}", "JSON"),
        (b"\xef\xbb\xbf[1]", "JSON"),
        (b'["\x01"]', "JSON"),
        (b"\0", "JSON"),
        (b"[" * 100_000, "deep"),
        (b'{"a":' * 100_000, "deep"),
        (b"[{}," * 100_000, "deep"),
        (b"[" * (NESTING_MAX + 1) + b"]" * (NESTING_MAX + 1), "deep"),
        (b"7", "array"),
        (b"null", "array"),
        (b'"[]"', "array"),
        (b"true", "array"),
    ],
)
def test_refused(body: bytes, why: str) -> None:
    with pytest.raises(RequestRejected, match=why) as caught:
        split(body)
    assert caught.value.code == "bad_request"
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    "body",
    [
        b"[" * NESTING_MAX + b"]" * NESTING_MAX,
        b'["' + b"[" * 500 + b'"]',
        b'["\\"' + b"{" * 500 + b'"]',
        b"[" + b"[]," * 500 + b"[]]",
        b'[{"a": 1}, {"a": 1}]',
        b'["{"]',
        b"[" + b"9" * 5000 + b', {"a": ' + b"9" * 5000 + b"}]",
        '["é\U0001f600"]'.encode(),
    ],
)
def test_accepted(body: bytes) -> None:
    assert split(body)


def test_parts_are_left_as_they_were() -> None:
    assert split(b' [1.10, "x"]\n') == [msgspec.Raw(b"1.10"), msgspec.Raw(b'"x"')]
    assert split(b' {"a": [1 ,2]}') == {"a": msgspec.Raw(b"[1 ,2]")}


# Arguments -----------------------------------------------------------------------------------------------


def read(function: str, body: bytes) -> Any:
    """What the function would be called with: through the gateway's encoding and the engine's decoding."""
    signature = shelf.functions[function].signature
    return signature.decode(ArgumentReader(signature).read(body, 2**20))


TYPED = b'"AP8=", "2026-01-02T03:04:05Z", 1.10, {"x": 1}, {"1": 2}'


@pytest.mark.parametrize(
    "body",
    [
        b"[" + TYPED + b"]",
        b'{"counts": {"1": 2}, "point": {"x": 1}, "price": 1.10, "when": "2026-01-02T03:04:05Z", "raw": "AP8="}',
    ],
)
def test_types_arrive(body: bytes) -> None:
    positional, named = read("typed", body)
    expected = (b"\0\xff", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), Decimal("1.10"), Point(1), {1: 2})
    assert (tuple(positional) or tuple(named[n] for n in ("raw", "when", "price", "point", "counts"))) == expected


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, -(2**63)])
def test_large_integers_arrive(number: int) -> None:
    assert read("echo", b"[%d]" % number) == ((number,), {})


def test_an_exact_decimal_of_any_length_arrives() -> None:
    digits = b"1." + b"123456789" * 20
    positional, _ = read("typed", b"[" + TYPED.replace(b"1.10", digits) + b"]")
    assert positional[2] == Decimal(digits.decode())


def test_variadic_arguments() -> None:
    assert read("gather", b"[1, 2, 3]") == ((1, 2, 3), {})
    with pytest.raises(BadArguments, match="'others'"):
        read("gather", b'[1, 2, "x"]')
    with pytest.raises(BadArguments, match=str(ARGUMENTS_MAX + 1)):
        read("gather", b"[" + b"1," * ARGUMENTS_MAX + b"1]")


def test_keyword_only_and_rest() -> None:
    assert read("options", b'{"name": "a", "loud": true, "x": 1}') == ([], {"name": "a", "loud": True, "x": 1})
    for body, why in [
        (b'["a"]', "takes"),
        (b"", "takes"),
        (b'{"name": "a"}', "lacks loud"),
        (b'{"name": "a", "loud": true, "ctx": 1}', "ctx"),
        (b'{"name": "a", "loud": true, "x": "y"}', "argument 'x'"),
    ]:
        with pytest.raises(BadArguments, match=why):
            read("options", body)


def test_an_error_of_the_apps_own_types_is_a_misfit() -> None:
    with pytest.raises(BadArguments, match="x is below zero"):
        read("typed", b"[" + TYPED.replace(b'"x": 1', b'"x": -1') + b"]")


def test_many_unknown_names_make_a_short_message() -> None:
    names = b",".join(b'"%d": 1' % number for number in range(1000))
    with pytest.raises(BadArguments) as caught:
        read("add", b'{"left": 1, ' + names + b"}")
    assert len(str(caught.value)) < 300


def test_a_positional_only_argument_left_out_before_one_given() -> None:
    async def function(ctx: Any, a: int = 1, b: int = 2, c: int = 3, /) -> None: ...

    signature = Signature("f", function)
    assert signature.decode(msgspec.msgpack.encode({"b": 5})) == ([1, 5], {})
    assert signature.decode(msgspec.msgpack.encode({})) == ([], {})
