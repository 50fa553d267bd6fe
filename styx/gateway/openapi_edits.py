"""The part of the OpenAPI document about edits: a value is seen with its mark, and another one is put in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from styx.gateway.head import EDIT_PREFIX
from styx.gateway.json_schemas import Json
from styx.model.app import App

TAG: Final = "edits"

_TAG_TEXT: Final = "Work of a person on the value of one entity or row, by all rules of the app's types and tables."
_LOOK: Final = (
    "The value, with a mark of it, which is empty for what is not there. A value that JSON would change is refused "
    "(409)."
)
_EDIT: Final = (
    "A transaction that puts another value, or with `delete` none, if the value still has the mark that was seen. "
    "Otherwise nothing is written, and the answer is 409 with the type EditConflict."
)
_CODES: Final = ("400", "401", "403", "404", "409", "413", "422", "429", "503", "504")


def edit_tag() -> Json:
    """What the operations have in common."""
    return {"name": TAG, "description": _TAG_TEXT}


def edit_paths(app: App, committed: Callable[[Json], Json], errors: Mapping[str, tuple[str, str]]) -> Json:
    """The paths of all operators' edits. `committed` makes the answer of a result; `errors` has the names of the
    answers that refuse, by status.
    """
    mark = {"type": "string", "description": "What tells the value from others."}
    place = [
        _parameter("operator", "path", "Whose entity it is.", {"enum": [*app.operators]}),
        _parameter("key", "path", "The entity's key, as in other paths.", {"type": "string"}),
        _parameter("rows", "query", "The table of a row, with `pk`.", {"type": "string"}),
        _parameter("pk", "query", "The row's primary key, a JSON array such as [7].", {"type": "string"}),
        {"$ref": "#/components/parameters/Timeout"},
    ]
    seen = {"type": "object", "properties": {"mark": mark, "value": {}}, "required": ["mark"]}
    written = {"type": "object", "properties": {"mark": mark}, "required": ["mark"]}
    edit = {
        "type": "object",
        "properties": {"mark": mark, "value": {}, "delete": {"type": "boolean", "default": False}},
        "required": ["mark"],
        "additionalProperties": False,
    }
    look = _operation("look", "Gives a value to be edited", _LOOK, place, committed(seen), errors)
    put = _operation("edit", "Puts another value in its place", _EDIT, place, committed(written), errors)
    put["requestBody"] = {"required": True, "content": {"application/json": {"schema": edit}}}
    return {f"{EDIT_PREFIX}{{operator}}/{{key}}": {"get": look, "post": put}}


def _operation(
    what: str, summary: str, text: str, place: list[Any], done: Json, errors: Mapping[str, tuple[str, str]]
) -> Json:
    refused = {status: {"$ref": f"#/components/responses/{errors[status][0]}"} for status in _CODES}
    return {
        "operationId": f"{TAG}:{what}",
        "tags": [TAG],
        "summary": summary,
        "description": text,
        "parameters": place,
        "responses": {"200": done, **refused},
    }


def _parameter(name: str, place: str, description: str, schema: Json) -> dict[str, Any]:
    return {"name": name, "in": place, "description": description, "required": place == "path", "schema": schema}
