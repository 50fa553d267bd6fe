"""When the engine's app is replaced, the gateway's routes and descriptions are those of the new version at once."""

import pytest

from styx import App, Context, Operator
from styx.gateway.app import Gateway
from tests.gateway.asgi import exchange, post
from tests.gateway.fake_engine import FakeEngine

pytestmark = pytest.mark.anyio


async def test_replaced_app(engine: FakeEngine, gateway: Gateway) -> None:
    assert (await post(gateway, "/v1/shelf/a/echo", b'["text"]')).json["result"] == "text"
    assert b"gather" in (await exchange(gateway, "GET", "/openapi.json")).body
    assert b"gather" in (await exchange(gateway, "GET", "/docs")).body

    shelf = Operator("shelf", key_type=int)

    @shelf.register
    async def echo(ctx: Context, value: int) -> int:
        return value

    engine.app = App("shop", operators=[shelf])
    assert (await post(gateway, "/v1/shelf/a/echo", b"[1]")).status == 422
    assert (await post(gateway, "/v1/shelf/1/echo", b'["text"]')).code == "bad_arguments"
    assert (await post(gateway, "/v1/shelf/1/echo", b"[1]")).json["result"] == 1
    assert (await post(gateway, "/v1/shelf/1/gather", b"[1]")).status == 404
    for path in ("/openapi.json", "/docs"):
        answer = (await exchange(gateway, "GET", path)).body
        assert b"echo" in answer
        assert b"gather" not in answer
