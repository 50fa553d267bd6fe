"""Whatever is sent, a healthy gateway's answer says what was wrong with it, and never that the gateway failed."""

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from styx.gateway.app import Gateway
from tests.gateway.asgi import exchange
from tests.gateway.fake_engine import FakeEngine, app

STATUSES = {200, 307, 400, 404, 405, 409, 413, 422}

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
_arguments = st.lists(_json) | st.dictionaries(st.sampled_from(["value", "left", "right", "name", "loud", "x"]), _json)
_bodies = (
    st.binary()
    | _arguments.map(lambda value: json.dumps(value).encode())
    | _json.map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
)
_segments = st.text(st.characters(codec="ascii")) | st.sampled_from(["%2F", "%FF", "1", "-1", "[1,%22x%22]", "..", "%"])
_operators = st.sampled_from([*app.operators, "shelf", "shelf"]) | _segments
_functions = st.sampled_from([f for o in app.operators.values() for f in o.functions]) | _segments
_headers = st.dictionaries(
    st.sampled_from(["idempotency-key", "content-length", "content-type", "styx-key-type", "expect", "x"]),
    st.text(st.characters(codec="latin-1")),
    max_size=2,
)


async def _exchange(method: str, path: str, parts: list[bytes], headers: dict[str, str]) -> Any:
    return await exchange(Gateway(FakeEngine()), method, path, parts, headers)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(operator=_operators, key=_segments, function=_functions, body=_bodies, headers=_headers)
def test_requests(operator: str, key: str, function: str, body: bytes, headers: dict[str, str]) -> None:
    answer = asyncio.run(_exchange("POST", f"/v1/{operator}/{key}/{function}", [body], headers))
    assert answer.status in STATUSES, answer
    assert isinstance(json.loads(answer.body), dict)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(arguments=_arguments, function=st.sampled_from(list(app.operators["shelf"].functions)))
def test_well_formed_arguments(arguments: Any, function: str) -> None:
    answer = asyncio.run(_exchange("POST", f"/v1/shelf/a/{function}", [json.dumps(arguments).encode()], {}))
    assert answer.status in STATUSES, answer


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "X"]), path=st.text(st.characters(codec="ascii")), body=st.binary()
)
def test_any_path(method: str, path: str, body: bytes) -> None:
    answer = asyncio.run(_exchange(method, "/" + path, [body], {}))
    assert answer.status in STATUSES, answer
