"""The description of the change feed in OpenAPI: `GET /v1/~changes/OPERATOR` and `GET /v1/~changes/OPERATOR/TABLE`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from styx.gateway.head import CHANGES_PREFIX
from styx.gateway.json_schemas import Json, Schemas
from styx.gateway.openapi_reads import GONE
from styx.gateway.openapi_tables import row_types
from styx.model.app import App
from styx.model.operator import Operator

_STREAM: Final = (
    "Server-sent events, one or more for each epoch with changes. `id` is an epoch: all changes up to its end have "
    "come. An event with `more` has no id, and further ones of its epoch follow. An id without data says that the "
    "epochs up to it have no further changes. A comment comes when nothing else does. A connection that breaks is "
    "opened again with the last id, and no change is missed."
)
_CODES: Final = ("400", "401", "403", "404", "429", "503")
_NAME: Final = {"type": ["string", "integer", "array"]}


def changes_paths(app: App, operator: Operator, schemas: Schemas, errors: Mapping[str, tuple[str, str]]) -> Json:
    """The paths of an operator that functions are called of; `errors` has the names of the answers that refuse, by
    status.
    """
    value = schemas.of(Any if operator.state_type is None else operator.state_type)
    rows = {name: schemas.of(kind) for name, kind in row_types(operator, app).items()}
    path = f"{CHANGES_PREFIX}{quote(operator.name)}"
    state = _change({"key": _NAME, "value": value})
    of_rows = [_row_change({"const": name}, row) for name, row in rows.items()]
    changes = {"anyOf": [state, *of_rows]} if of_rows else state
    name = f"{operator.name}:changes"
    paths = {path: {"get": _operation(name, operator, "its entities and their rows", changes, [], errors)}}
    if rows:
        table = {"name": "table", "in": "path", "required": True, "schema": {"type": "string", "enum": list(rows)}}
        of_table = _operation(
            f"{name} of a table", operator, "the rows of a table", {"anyOf": of_rows}, [table], errors
        )
        paths[f"{path}/{{table}}"] = {"get": of_table}
    return paths


def _operation(
    name: str, operator: Operator, of: str, change: Json, more: list[Json], errors: Mapping[str, tuple[str, str]]
) -> Json:
    epoch = {"type": "integer", "minimum": 0}
    event = {
        "type": "object",
        "properties": {
            "epoch": epoch,
            "changes": {"type": "array", "items": change},
            "more": {"type": "boolean", "description": "Whether further changes of this epoch follow."},
        },
        "required": ["epoch", "changes"],
    }
    codes = {status: {"$ref": f"#/components/responses/{errors[status][0]}"} for status in _CODES}
    done = {"description": "They follow.", "content": {"text/event-stream": {"schema": event}}}
    return {
        "operationId": name,
        "tags": [operator.name],
        "summary": f"Follows the changes of {operator.name}: {of}",
        "description": _STREAM,
        "parameters": [
            *more,
            _parameter("from", "query", "The first epoch that is wanted; without it, those from now on.", epoch),
            _parameter("Last-Event-ID", "header", "The last id that came, which counts more than `from`.", epoch),
        ],
        "responses": dict(sorted({"200": done, **codes, "410": {"$ref": f"#/components/responses/{GONE[0]}"}}.items())),
    }


def _change(properties: Json) -> Json:
    deleted = {"const": True, "description": "In place of a value."}
    return {"type": "object", "properties": {**properties, "deleted": deleted}, "required": ["key"]}


def _row_change(table: Json, row: Json) -> Json:
    change = _change({"table": table, "key": _NAME, "row_key": _NAME, "value": row})
    return {**change, "required": ["table", "key", "row_key"]}


def _parameter(name: str, place: str, description: str, schema: Json) -> Json:
    return {"name": name, "in": place, "description": description, "required": False, "schema": schema}
