"""The OpenAPI document of dead calls: valid, and true to what a gateway answers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import quote

import jsonschema
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from styx import App, Context, Operator, Retry
from styx.gateway.app import Gateway
from styx.gateway.openapi import openapi
from styx.testing import embedded_cluster, take_records
from tests.gateway.asgi import Answer, exchange
from tests.model.ingest_app import TOPIC, made_app, pay

pytestmark = pytest.mark.anyio

LIST, REPLAY, DROP = "/v1/~dead/{operator}", "/v1/~dead/{operator}/{id}/replay", "/v1/~dead/{operator}/{id}/drop"


def giving_app() -> App:
    giver = Operator("giver")

    @giver.register
    async def give(ctx: Context, times: int) -> None:
        for _ in range(times):
            ctx.after_commit(giver, fail, ctx.key, retry=Retry(1))

    @giver.register
    async def fail(ctx: Context) -> None:
        raise ValueError("never")

    return App("giving", [giver, Operator("quiet", key_type=(str, int))])


DOCUMENT: Any = openapi(giving_app())


def check(document: Any, path: str, method: str, answer: Answer) -> Any:
    """The answer is one that the document has; gives its body."""
    described = document["paths"][path][method]["responses"][str(answer.status)]
    if "$ref" in described:
        described = document["components"]["responses"][described["$ref"].rpartition("/")[2]]
    schema = described["content"]["application/json"]["schema"]
    jsonschema.validate(answer.json, {**schema, "components": document["components"]})
    return answer.json


def test_valid() -> None:
    OpenAPIV31SpecValidator(DOCUMENT).validate()
    assert [sorted(DOCUMENT["paths"][path]) for path in (LIST, REPLAY, DROP)] == [["get"], ["post"], ["post"]]
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    assert {
        tag for path in (LIST, REPLAY, DROP) for each in DOCUMENT["paths"][path].values() for tag in each["tags"]
    } < tags


def test_an_ingest_has_them_too() -> None:
    [operator] = [
        each for each in openapi(made_app()[0])["paths"][LIST]["get"]["parameters"] if each.get("in") == "path"
    ]
    assert operator["schema"] == {"enum": ["account", "payments"]}


async def test_answers_are_as_described() -> None:
    async with embedded_cluster(giving_app()) as cluster:
        gateway = Gateway(cluster.engine)
        await cluster.call("giver", "g", "give", 3)
        await cluster.advance(timedelta(0))
        first = check(DOCUMENT, LIST, "get", await exchange(gateway, "GET", "/v1/~dead/giver?first=2&key=g"))["result"]
        assert (len(first["calls"]), first["calls"][0]["error_message"]) == (2, "never")
        rest = await exchange(gateway, "GET", f"/v1/~dead/giver?key=g&after={quote(first['next'])}")
        assert len(check(DOCUMENT, LIST, "get", rest)["result"]["calls"]) == 1
        its_id = quote(first["calls"][0]["id"], safe="")
        for act, path in (("drop", DROP), ("replay", REPLAY)):
            for expected in (act == "drop", False):
                answer = await exchange(gateway, "POST", f"/v1/~dead/giver/{its_id}/{act}")
                assert answer.status == 200
                assert check(DOCUMENT, path, "post", answer)["result"] is expected
        other = quote(first["calls"][1]["id"], safe="")
        assert check(DOCUMENT, REPLAY, "post", await exchange(gateway, "POST", f"/v1/~dead/giver/{other}/replay"))[
            "result"
        ]


@pytest.mark.parametrize(
    ("query", "status"), [("first=0", 422), ("first=x", 422), ("first=1001", 422), ("after=x", 422), ("key=", 422)]
)
async def test_what_is_refused_is_as_described(query: str, status: int) -> None:
    async with embedded_cluster(giving_app()) as cluster:
        answer = await exchange(Gateway(cluster.engine), "GET", f"/v1/~dead/giver?{query}")
        assert answer.status == status, answer.body
        check(DOCUMENT, LIST, "get", answer)


async def test_what_is_not_there_is_as_described() -> None:
    async with embedded_cluster(giving_app()) as cluster:
        gateway = Gateway(cluster.engine)
        assert check(DOCUMENT, LIST, "get", await exchange(gateway, "GET", "/v1/~dead/nobody"))["error"]["code"]
        answer = await exchange(gateway, "POST", "/v1/~dead/giver/x/drop")
        assert answer.status == 422
        check(DOCUMENT, DROP, "post", answer)


async def test_a_foreign_record_in_the_list() -> None:
    app, ingest = made_app()
    document = openapi(app)
    async with embedded_cluster(app) as cluster:
        assert await take_records(cluster, ingest, b"\xff", pay("ada", 1)) == 1
        answer = await exchange(Gateway(cluster.engine), "GET", "/v1/~dead/payments")
        [call] = check(document, LIST, "get", answer)["result"]["calls"]
        assert call["giver"] == [TOPIC, 0]
        assert call["error_type"] == "BadRecord"
