"""The part of the OpenAPI document about dead calls: they are listed, tried again and dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from styx.gateway.head import DEAD_PREFIX
from styx.gateway.json_schemas import Json, Schemas
from styx.model.app import App
from styx.model.dead_list import DEAD_CALLS_DEFAULT, DEAD_CALLS_PAGE_MAX, DeadCallsPage

TAG: Final = "dead calls"

_TAG_TEXT: Final = (
    "Calls that were given for later and given up after their last attempt, and foreign records that could become no "
    "call. They are kept until they are tried again or dropped."
)
_LIST: Final = (
    "Those of each partition that were given up first come first. A page is one transaction for each partition, so it "
    "is not one moment."
)
_REPLAY: Final = "It is given anew, with all its attempts, and made by the version of the app that runs then."
_GONE: Final = " False: it is not there any more."
_LIST_CODES: Final = ("400", "401", "403", "404", "409", "422", "429", "503", "504")
_CODES: Final = ("400", "401", "403", "404", "422", "429", "503", "504")


def dead_tag() -> Json:
    """What the operations have in common."""
    return {"name": TAG, "description": _TAG_TEXT}


def dead_paths(app: App, schemas: Schemas, committed: Json, errors: Mapping[str, tuple[str, str]]) -> Json:
    """The paths of all operators' dead calls. `committed` is the answer to what is done to one; `errors` has the names
    of the answers that refuse, by status.
    """
    operator = _parameter("operator", "path", "Whose entities gave the calls.", {"enum": [*app.operators]})
    one = f"{DEAD_PREFIX}{{operator}}/{{id}}"
    place = [
        operator,
        _parameter("id", "path", "The call's `id` in the list.", {"type": "string"}),
        {"$ref": "#/components/parameters/Timeout"},
    ]
    return {
        f"{DEAD_PREFIX}{{operator}}": {"get": _list(operator, schemas, errors)},
        f"{one}/replay": {"post": _act("replay", "Tries a dead call again", _REPLAY, place, committed, errors)},
        f"{one}/drop": {"post": _act("drop", "Drops a dead call", "", place, committed, errors)},
    }


def _list(operator: Json, schemas: Schemas, errors: Mapping[str, tuple[str, str]]) -> Json:
    size = {"type": "integer", "minimum": 1, "maximum": DEAD_CALLS_PAGE_MAX, "default": DEAD_CALLS_DEFAULT}
    page = {"type": "object", "properties": {"result": schemas.of(DeadCallsPage)}, "required": ["result"]}
    return {
        "operationId": "dead calls:list",
        "tags": [TAG],
        "summary": "Lists dead calls of an operator",
        "description": _LIST,
        "parameters": [
            operator,
            _parameter("key", "query", "The entity that gave them, as in a path; without it all.", {"type": "string"}),
            _parameter("after", "query", "`next` of the page before.", {"type": "string"}),
            _parameter("first", "query", "How many, at most.", size),
            {"$ref": "#/components/parameters/Timeout"},
        ],
        "responses": {
            "200": {"description": "A page of them.", "content": {"application/json": {"schema": page}}},
            **_refused(_LIST_CODES, errors),
        },
    }


def _act(
    what: str, summary: str, text: str, place: list[Json], committed: Json, errors: Mapping[str, tuple[str, str]]
) -> Json:
    return {
        "operationId": f"dead calls:{what}",
        "tags": [TAG],
        "summary": summary,
        "description": (text + _GONE).strip(),
        "parameters": place,
        "responses": {"200": committed, **_refused(_CODES, errors)},
    }


def _refused(codes: tuple[str, ...], errors: Mapping[str, tuple[str, str]]) -> Json:
    return {status: {"$ref": f"#/components/responses/{errors[status][0]}"} for status in codes}


def _parameter(name: str, place: str, description: str, schema: Json) -> dict[str, Any]:
    return {"name": name, "in": place, "description": description, "required": place == "path", "schema": schema}
