"""The OpenAPI document: valid, complete, and true to the signatures."""

import json
from typing import Any

import msgspec
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from styx import App, Context, Operator
from styx.gateway.app import Gateway
from styx.gateway.openapi import openapi
from tests.gateway.asgi import exchange
from tests.gateway.fake_engine import FakeEngine, app

DOCUMENT: Any = openapi(app)


def operation(path: str) -> Any:
    return DOCUMENT["paths"][path]["post"]


def test_valid() -> None:
    OpenAPIV31SpecValidator(json.loads(json.dumps(DOCUMENT))).validate()


def test_one_operation_for_each_function_and_what_each_operator_has() -> None:
    ids = [operation["operationId"] for item in DOCUMENT["paths"].values() for operation in item.values()]
    functions = [f"{o.name}.{f}" for o in app.operators.values() for f in o.functions]
    others = [f"{name}:{what}" for name in app.operators for what in ("load", "read", "list", "changes")]
    dead = [f"dead calls:{what}" for what in ("list", "replay", "drop")]
    edits = ["edits:look", "edits:edit"]
    assert sorted(ids) == sorted([*functions, *others, *dead, *edits])


def test_a_read_gives_the_state() -> None:
    read = DOCUMENT["paths"]["/v1/paired/{key}"]["get"]
    assert read["responses"]["200"]["content"]["application/json"]["schema"]["properties"]["result"] == {}
    assert read["parameters"][0]["name"] == "key"
    assert "requestBody" not in read


def test_a_load_takes_pairs_of_key_and_state() -> None:
    body = operation("/v1/paired")["requestBody"]["content"]
    key, state = body["application/msgpack"]["schema"]["items"]["prefixItems"]
    assert key["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert state == {}


def test_docstring() -> None:
    echo = operation("/v1/shelf/{key}/echo")
    assert echo["summary"] == "Gives back what it gets."
    assert echo["description"].startswith("Values are not interpreted")
    assert operation("/v1/shelf/{key}/gather")["summary"] == "shelf.gather"


def test_a_local_function_is_marked() -> None:
    operator = Operator("own")

    @operator.register(local=True)
    async def take(ctx: Context) -> None:
        """Stays on its slot."""

    @operator.register
    async def give(ctx: Context) -> None:
        """Does not."""

    paths: Any = openapi(App("marked", [operator]))["paths"]
    assert paths["/v1/own/{key}/take"]["post"]["x-styx-local"] is True
    assert "x-styx-local" not in paths["/v1/own/{key}/give"]["post"]


def test_a_contended_function_is_marked() -> None:
    operator = Operator("queue")

    @operator.register(contended=True)
    async def take(ctx: Context) -> None:
        """In everybody's way."""

    @operator.register
    async def put(ctx: Context) -> None:
        """Not."""

    paths: Any = openapi(App("marked", [operator]))["paths"]
    assert paths["/v1/queue/{key}/take"]["post"]["x-styx-contended"] is True
    assert "x-styx-contended" not in paths["/v1/queue/{key}/put"]["post"]


def test_both_forms_of_arguments() -> None:
    body = operation("/v1/shelf/{key}/add")["requestBody"]
    positional, keyword = body["content"]["application/json"]["schema"]["anyOf"]
    left = {"type": "integer", "title": "left"}
    right = {"type": "integer", "title": "right", "default": 1}
    assert body["required"] is True
    assert positional["prefixItems"] == [left, right]
    assert (positional["minItems"], positional["maxItems"], positional["items"]) == (1, 2, False)
    assert keyword["properties"] == {"left": left, "right": right}
    assert (keyword["required"], keyword["additionalProperties"]) == (["left"], False)


def test_forms_that_a_signature_does_not_have() -> None:
    forms = operation("/v1/shelf/{key}/options")["requestBody"]["content"]["application/json"]["schema"]["anyOf"]
    assert [form["title"] for form in forms] == ["keyword"]
    assert forms[0]["additionalProperties"] == {"type": "integer"}
    gather = operation("/v1/shelf/{key}/gather")["requestBody"]["content"]["application/json"]["schema"]["anyOf"]
    assert gather[0]["items"] == {"type": "integer"}
    assert "requestBody" not in operation("/v1/shelf/{key}/key")


def test_types() -> None:
    body = operation("/v1/shelf/{key}/typed")["requestBody"]["content"]["application/json"]["schema"]["anyOf"][1]
    assert body["properties"]["raw"]["contentEncoding"] == "base64"
    assert body["properties"]["price"]["format"] == "decimal"
    assert body["properties"]["point"] == {"$ref": "#/components/schemas/Point"}
    assert "x" in DOCUMENT["components"]["schemas"]["Point"]["properties"]
    reply = operation("/v1/shelf/{key}/add")["responses"]["200"]["content"]["application/json"]["schema"]
    assert reply["properties"]["result"] == {"type": "integer"}


def test_keys() -> None:
    def key(path: str) -> Any:
        return next(p for p in operation(path)["parameters"] if p.get("name") == "key")

    assert key("/v1/shelf/{key}/key")["schema"]["type"] == "string"
    assert key("/v1/numbered/{key}/key")["schema"]["type"] == "integer"
    array = key("/v1/paired/{key}/key")["content"]["application/json"]["schema"]
    assert array["prefixItems"] == [{"type": "integer"}, {"type": "string"}]


def test_all_answers_are_described() -> None:
    statuses = {"200", "400", "401", "403", "404", "409", "413", "415", "422", "429", "503", "504"}
    assert set(operation("/v1/shelf/{key}/add")["responses"]) == statuses


def test_types_without_a_schema_and_defaults_without_json() -> None:
    operator = Operator("o.p-q")

    async def function(ctx: Context, opaque: object, number: Any = Operator) -> None: ...

    operator.register(function)
    document = openapi(App("other", operators=[operator]))
    OpenAPIV31SpecValidator(document).validate()
    body = document["paths"]["/v1/o.p-q/{key}/function"]["post"]["requestBody"]
    properties = body["content"]["application/json"]["schema"]["anyOf"][1]["properties"]
    assert properties == {"opaque": {"title": "opaque"}, "number": {"title": "number"}}


def test_an_empty_app_is_valid() -> None:
    OpenAPIV31SpecValidator(openapi(App("empty", operators=[]))).validate()


@pytest.mark.anyio
async def test_served() -> None:
    answer = await exchange(Gateway(FakeEngine()), "GET", "/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert msgspec.json.decode(answer.body) == json.loads(json.dumps(DOCUMENT))
