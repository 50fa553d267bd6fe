"""The part of the OpenAPI document about listings: pages of an operator's entities, or of the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from styx.gateway.json_schemas import Json
from styx.gateway.openapi_reads import GONE, read_parameters
from styx.gateway.openapi_tables import rows_parameter
from styx.model.app import App
from styx.model.entity_list import LIST_DEFAULT, LIST_MAX
from styx.model.operator import Operator

_TEXT: Final = (
    "Entities that have a value, or rows, in order of their keys: texts by code point, numbers by size. A page is read "
    "outside the log, at the end of one epoch; with that epoch as Styx-At, all pages are of one moment. The key of a "
    "row is that of its entity, and then the primary key."
)
_PREFIX: Final = (
    "Only keys that begin with it: a text, or a JSON array of the first parts of a key of several parts, of which the "
    "last may be the beginning of a text."
)
_CODES: Final = ("400", "401", "403", "404", "409", "422", "429", "503", "504")


def list_operation(
    app: App, operator: Operator, key: Json, value: Json, errors: Mapping[str, tuple[str, str]], epoch: Json
) -> Json:
    """The listing of an operator. `key` and `value` are the schemas of an entry, `errors` the names of the answers that
    refuse, by status; `epoch` is that of `Styx-Epoch`.
    """
    limit = {"type": "integer", "minimum": 1, "maximum": LIST_MAX, "default": LIST_DEFAULT}
    rows = rows_parameter(operator, "The table whose rows are listed, of all entities, in place of states.", app)
    row_key = {"type": "array", "items": {"type": ["string", "integer"]}}
    entry = {
        "type": "object",
        "properties": {"key": {"anyOf": [key, row_key]} if rows else key, "value": value},
        "required": ["key"],
    }
    page = {
        "type": "object",
        "properties": {"entries": {"type": "array", "items": entry}, "after": {"type": ["string", "null"]}},
        "required": ["entries", "after"],
    }
    read = {"type": "object", "properties": {"epoch": {"type": "integer"}}, "required": ["epoch"]}
    schema = {"type": "object", "properties": {"result": page, "read": read}, "required": ["result", "read"]}
    codes = {status: {"$ref": f"#/components/responses/{errors[status][0]}"} for status in _CODES}
    done = {
        "description": "A page.",
        "headers": {"Styx-Epoch": epoch},
        "content": {"application/json": {"schema": schema}},
    }
    return {
        "operationId": f"{operator.name}:list",
        "tags": [operator.name],
        "summary": f"Lists entities of {operator.name}",
        "description": _TEXT,
        "parameters": [
            _parameter("prefix", _PREFIX, {"type": "string"}),
            _parameter("after", "Only keys behind this one: `after` of the page before.", {"type": "string"}),
            _parameter("limit", "How many, at most; fewer if their values have more than 4 MiB.", limit),
            _parameter("values", "False: keys alone.", {"type": "boolean", "default": True}),
            *rows,
            *read_parameters(),
            {"$ref": "#/components/parameters/Timeout"},
        ],
        "responses": dict(sorted({"200": done, **codes, "410": {"$ref": f"#/components/responses/{GONE[0]}"}}.items())),
    }


def _parameter(name: str, description: str, schema: Json) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "required": False, "schema": schema}
