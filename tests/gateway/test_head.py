"""Keys and names in the path: what each stands for, and what is refused."""

import pytest

from styx.gateway.app import Gateway
from tests.gateway.asgi import post
from tests.gateway.fake_engine import FakeEngine

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/v1/shelf/a%2Fb/key", "a/b"),
        ("/v1/shelf/a+b/key", "a+b"),
        ("/v1/shelf/%25/key", "%"),
        ("/v1/shelf/%2525/key", "%25"),
        ("/v1/shelf/../key", ".."),
        ("/v1/shelf/%C3%A9/key", "é"),
        ("/v1/shelf/%00/key", "\0"),
        ("/v1/%73helf/a/%6bey", "a"),
        ("/v1/shelf/[1]/key", "[1]"),
        ("/v1/numbered/-12/key", -12),
        ("/v1/numbered/007/key", 7),
        ("/v1/numbered/9223372036854775807/key", 2**63 - 1),
        ("/v1/paired/%5B1%2C%22x%2Fy%22%5D/key", (1, "x/y")),
        ('/v1/paired/[1,"x"]/key', (1, "x")),
    ],
)
async def test_keys(gateway: Gateway, path: str, key: object) -> None:
    answer = await post(gateway, path)
    assert answer.json.get("result") == repr(key), answer.json


@pytest.mark.parametrize(
    "path",
    [
        "/v1/shelf//key",
        "/v1/shelf/" + "x" * 3000 + "/key",
        "/v1/numbered/one/key",
        "/v1/numbered/1.0/key",
        "/v1/numbered/+1/key",
        "/v1/numbered/1_0/key",
        "/v1/numbered/%201/key",
        "/v1/numbered/%D9%A3/key",
        "/v1/numbered/9223372036854775808/key",
        "/v1/numbered/" + "9" * 5000 + "/key",
        "/v1/paired/1/key",
        "/v1/paired/[1]/key",
        "/v1/paired/[1,2]/key",
        '/v1/paired/[true,"x"]/key',
        '/v1/paired/[1,"x"]]/key',
        "/v1/paired/" + "[" * 5000 + "/key",
        '/v1/paired/["1","x"]/key',
    ],
)
async def test_bad_keys(gateway: Gateway, engine: FakeEngine, path: str) -> None:
    answer = await post(gateway, path)
    assert (answer.status, answer.code) == (422, "bad_arguments")
    assert "key" in answer.json["error"]["message"]
    assert len(answer.body) < 1000
    assert engine.requests == []


@pytest.mark.parametrize("path", ["/v1/shelf/%FF/key", "/v1/shelf/%zz/key", "/v1/shelf/50%/key", "/v1/%FF/a/key"])
async def test_bad_percent_encoding(gateway: Gateway, path: str) -> None:
    answer = await post(gateway, path)
    assert (answer.status, answer.code) == (400, "bad_request")


@pytest.mark.parametrize(
    ("path", "kind", "status"),
    [
        ("/v1/shelf/1/key", "str", 200),
        ("/v1/shelf/1/key", "int", 422),
        ("/v1/shelf/[1]/key", "tuple", 422),
        ("/v1/numbered/1/key", "int", 200),
        ("/v1/numbered/1/key", "str", 422),
        ('/v1/paired/[1,"x"]/key', "tuple", 200),
        ('/v1/paired/[1,"x"]/key', "str", 422),
        ("/v1/shelf/1/key", "float", 422),
    ],
)
async def test_a_sender_can_say_the_type_of_its_key(gateway: Gateway, path: str, kind: str, status: int) -> None:
    assert (await post(gateway, path, styx_key_type=kind)).status == status
