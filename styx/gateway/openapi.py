"""The OpenAPI 3.1 description of an app: one operation for each registered function, typed by its annotations.

Built from declarations only; it promises what the gateway does, in the gateway's own words and limits.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

import msgspec

from styx.gateway.head import EVENTS, PREFIX
from styx.gateway.json_schemas import Json, Schemas
from styx.gateway.openapi_changes import changes_paths
from styx.gateway.openapi_dead import dead_paths, dead_tag
from styx.gateway.openapi_edits import edit_paths, edit_tag
from styx.gateway.openapi_events import event_operation
from styx.gateway.openapi_inlets import publish_operation
from styx.gateway.openapi_listing import list_operation
from styx.gateway.openapi_reads import EPOCH_HEADER, GONE, read_headers, read_outside, read_parameters
from styx.gateway.openapi_tables import or_rows, row_types, rows_parameter, tables_text
from styx.gateway.query import takes_text
from styx.model.app import App
from styx.model.dead_list import DeadCallsPage
from styx.model.function_spec import FunctionSpec
from styx.model.inlet import Inlet
from styx.model.limits import IDEMPOTENCY_KEY_CHARS_MAX, TIMEOUT_SECONDS_MAX
from styx.model.operator import Operator
from styx.model.partitioning import KeyType
from styx.model.signature import Signature

LOCAL: Final = "x-styx-local"
"""Marks the operations of local functions."""
CONTENDED: Final = "x-styx-contended"
"""Marks the operations of contended functions."""
READ_ONLY: Final = "x-styx-read-only"
"""Marks the operations of read-only functions."""

_JSON_TYPES: Final = {str: "string", int: "integer"}
_ERRORS: Final = {
    "400": ("BadRequest", "The body is neither a JSON array nor a JSON object, or a header or the path is malformed."),
    "401": ("Unauthenticated", "The gateway asks who it is: an API key or a token is missing, or proves nothing."),
    "403": ("Forbidden", "No rule allows it; or it came by a name or from an origin that is not allowed."),
    "404": ("NotFound", "No such operator, function or entity."),
    "409": (
        "Aborted",
        "The function raised, or broke a rule of a table (RowExists, NoSuchRow, UniqueViolation, CheckViolation, "
        "ReferenceViolation, MissingIndex, RowLimitExceeded); nothing was changed.",
    ),
    "413": ("TooLarge", "The request, a value or the result is over its size limit."),
    "415": ("UnsupportedMediaType", "The body is a form, text, or anything else but JSON."),
    "422": ("BadArguments", "The key or the arguments do not fit."),
    "429": (
        "Overloaded",
        "Too many requests are in flight, or over a limit of who sends them; try again after the given seconds.",
    ),
    "503": ("Unavailable", "Requests cannot be served now; try again after the given seconds."),
    "504": ("Timeout", "No reply in time, or none at all; the request may have committed, or may still."),
}
_INFO: Final = (
    "Every request is one serializable transaction on the entity that its key names, and takes effect exactly once. "
    "Results are JSON: bytes are base64, times ISO 8601, NaN and the infinities null."
)

_CREDENTIAL: Final = "An API key, or a token (JWT)."
_READ: Final = (
    "A transaction that only reads, in the serial order of all others, unless a header asks for a read outside the "
    "log. An entity without a state is 404 with the code unknown_entity and the place of what has read. It changes "
    "nothing and may be sent again; an Idempotency-Key counts for nothing."
)
_LOAD: Final = (
    "The body is read as it comes and sent in chunks; each chunk is one transaction, the load as a whole is not. Lines "
    "are JSON; msgpack is one array no larger than a request. With an idempotency key, the same body sent again loads "
    "nothing twice."
)


class FunctionText(msgspec.Struct, frozen=True):
    """A function's docstring: its first paragraph on one line, and the rest."""

    summary: str
    description: str


def text_of(spec: FunctionSpec) -> FunctionText:
    """The docstring of a registered function, empty where it has none."""
    first, _, rest = (inspect.getdoc(spec.func) or "").partition("\n\n")
    return FunctionText(" ".join(first.split()), rest.strip())


def openapi(app: App) -> Json:
    """The document, ready to be encoded as JSON."""
    schemas = Schemas(_annotations(app))
    paths: Json = {}
    for operator in app.operators.values():
        for spec in operator.functions.values() if operator.served else ():
            path = f"{PREFIX}{quote(operator.name)}/{{key}}/{quote(spec.name)}"
            paths[path] = {"post": _operation(operator, spec, schemas)}
            if spec.read_only:
                paths[path]["get"] = _get_operation(operator, spec, schemas)
        if isinstance(operator, Inlet):
            value, responses = schemas.of(operator.event.type), {status: name for status, (name, _) in _ERRORS.items()}
            operation = publish_operation(operator, value, _committed({"type": "null"}), responses)
            paths[f"{PREFIX}{EVENTS}/{quote(operator.event.name)}"] = {"post": operation}
            continue
        paths[f"{PREFIX}{quote(operator.name)}/{{key}}"] = {"get": _read_operation(app, operator, schemas)}
        paths[f"{PREFIX}{quote(operator.name)}"] = {"get": _list_operation(app, operator, schemas)}
        if operator.served:
            paths[f"{PREFIX}{quote(operator.name)}"]["post"] = _load_operation(operator, schemas)
            paths |= changes_paths(app, operator, schemas, _ERRORS)
    for event in app.events.values():
        path = f"{PREFIX}{EVENTS}/{quote(event.name)}"
        paths[path] = {**paths.get(path, {}), "get": event_operation(event, schemas, _ERRORS)}
    paths |= dead_paths(app, schemas, _committed({"type": "boolean"}), _ERRORS)
    paths |= edit_paths(app, _committed, _ERRORS)
    return {
        "openapi": "3.1.0",
        "info": {"title": app.name, "version": "1", "description": _INFO},
        "tags": [*(_tag(operator) for operator in app.operators.values()), dead_tag(), edit_tag()],
        "paths": paths,
        # Which of them a gateway asks for is its operator's choice: none, on loopback.
        "security": [{}, {"Bearer": []}],
        "components": {
            "securitySchemes": {"Bearer": {"type": "http", "scheme": "bearer", "description": _CREDENTIAL}},
            "schemas": schemas.components,
            "parameters": {**_header_parameters(), **read_headers()},
            "responses": {
                name: _error_response(status, text) for status, (name, text) in {**_ERRORS, "410": GONE}.items()
            },
        },
    }


def _annotations(app: App) -> Iterator[Any]:
    """Every type that the document shows."""
    for operator in app.operators.values():
        yield Any if operator.state_type is None else operator.state_type
        yield from row_types(operator, app).values()
        for spec in operator.functions.values() if operator.served else ():
            yield spec.signature.result_type
            yield from (p.annotation for p in spec.signature.parameters)
    yield DeadCallsPage
    yield from (event.type for event in app.events.values())


def _tag(operator: Operator) -> Json:
    text = tables_text(operator)
    return {"name": operator.name, "description": text} if text else {"name": operator.name}


def _operation(operator: Operator, spec: FunctionSpec, schemas: Schemas) -> Json:
    text, signature = text_of(spec), spec.signature
    operation: Json = {
        "operationId": f"{operator.name}.{spec.name}",
        "tags": [operator.name],
        "summary": text.summary or f"{operator.name}.{spec.name}",
        "parameters": [
            _key_parameter(operator.key_type),
            {"$ref": "#/components/parameters/IdempotencyKey"},
            {"$ref": "#/components/parameters/Timeout"},
        ],
        "responses": {
            "200": _committed(schemas.of(signature.result_type)),
            **{status: {"$ref": f"#/components/responses/{name}"} for status, (name, _) in _ERRORS.items()},
        },
    }
    if text.description:
        operation["description"] = text.description
    if signature.parameters:
        operation["requestBody"] = _body(signature, schemas)
    if spec.local:
        operation[LOCAL] = True
    if spec.contended:
        operation[CONTENDED] = True
    if spec.read_only:
        operation[READ_ONLY] = True
    return operation


def _get_operation(operator: Operator, spec: FunctionSpec, schemas: Schemas) -> Json:
    """The call of a read-only function by GET: as by POST, with the arguments in the query."""
    operation = _operation(operator, spec, schemas)
    operation.pop("requestBody", None)
    named = [p for p in spec.signature.parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    operation["operationId"] += ":get"
    operation["parameters"] = [
        _key_parameter(operator.key_type),
        *(_query_parameter(parameter, schemas) for parameter in named),
        *read_parameters(),
        {"$ref": "#/components/parameters/Timeout"},
    ]
    operation["responses"] = read_outside(operation["responses"])
    return operation


def _query_parameter(parameter: inspect.Parameter, schemas: Schemas) -> Json:
    schema = _parameter_schema(parameter, schemas)
    form = (
        {"schema": schema}
        if takes_text(parameter.annotation)
        else {"content": {"application/json": {"schema": schema}}}
    )
    return {"name": parameter.name, "in": "query", "required": _is_required(parameter), **form}


def _read_operation(app: App, operator: Operator, schemas: Schemas) -> Json:
    state = schemas.of(Any if operator.state_type is None else operator.state_type)
    read = or_rows(operator, state, lambda row: {"type": "array", "items": schemas.of(row)}, app)
    errors = {
        status: {"$ref": f"#/components/responses/{name}"} for status, (name, _) in _ERRORS.items() if status != "413"
    }
    return {
        "operationId": f"{operator.name}:read",
        "tags": [operator.name],
        "summary": f"Reads one entity of {operator.name}",
        "description": _READ,
        "parameters": [
            _key_parameter(operator.key_type),
            *rows_parameter(
                operator, "The table whose rows are read, all that the entity has, in place of its state.", app
            ),
            *read_parameters(),
            {"$ref": "#/components/parameters/Timeout"},
        ],
        "responses": read_outside({"200": _committed(read), **errors}),
    }


def _list_operation(app: App, operator: Operator, schemas: Schemas) -> Json:
    state = schemas.of(Any if operator.state_type is None else operator.state_type)
    return list_operation(
        app, operator, _key_schema(operator.key_type), or_rows(operator, state, schemas.of, app), _ERRORS, EPOCH_HEADER
    )


def _load_operation(operator: Operator, schemas: Schemas) -> Json:
    parameters = [
        {
            "name": "replace",
            "in": "query",
            "description": "Whether an entity that exists is overwritten; without it, one ends the load.",
            "schema": {"type": "boolean", "default": False},
        },
        *rows_parameter(operator, "The table whose rows are loaded, by all its rules, in place of states."),
        {"$ref": "#/components/parameters/IdempotencyKey"},
        {"$ref": "#/components/parameters/Timeout"},
    ]
    key, state = _key_schema(operator.key_type), schemas.of(Any if operator.state_type is None else operator.state_type)
    value = or_rows(operator, state, schemas.of)
    pair = {"type": "array", "prefixItems": [key, value], "items": False, "minItems": 2, "maxItems": 2}
    count = {"type": "integer", "description": "Pairs that are loaded for certain."}
    done = _response("All are loaded.", {"type": "object", "properties": {"loaded": count}, "required": ["loaded"]})
    failed = _response("A pair was refused; those before it may be loaded.", _load_failure(count))
    codes = [status for status in _ERRORS if status not in ("409", "413", "422")]
    return {
        "operationId": f"{operator.name}:load",
        "tags": [operator.name],
        "summary": f"Loads many entities of {operator.name}",
        "description": _LOAD,
        "parameters": parameters,
        "requestBody": {
            "required": True,
            "content": {
                "application/x-ndjson": {"schema": {"description": "On each line one pair.", **pair}},
                "application/msgpack": {"schema": {"type": "array", "items": pair}},
            },
        },
        "responses": {
            "200": done,
            **{status: {"$ref": f"#/components/responses/{_ERRORS[status][0]}"} for status in codes},
            **dict.fromkeys(("409", "413", "422"), failed),
        },
    }


def _load_failure(count: Json) -> Json:
    fields = {name: {"type": "string"} for name in ("code", "type", "message")}
    return {
        "type": "object",
        "properties": {
            "error": {"type": "object", "properties": fields, "required": ["code", "message"]},
            "loaded": count,
            "pair": {"type": "integer", "description": "The place of the refused pair in the body, from 0."},
        },
        "required": ["error"],
    }


def _body(signature: Signature, schemas: Schemas) -> Json:
    forms = [_keyword_form(signature, schemas)]
    if not any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in signature.parameters):
        forms.insert(0, _positional_form(signature, schemas))
    needed = any(_is_required(p) for p in signature.parameters)
    return {"required": needed, "content": {"application/json": {"schema": {"anyOf": forms}}}}


def _positional_form(signature: Signature, schemas: Schemas) -> Json:
    positional = [p for p in signature.parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    form: Json = {"title": "positional", "type": "array", "minItems": signature.required}
    if positional:  # an empty prefixItems is not allowed
        form["prefixItems"] = [_parameter_schema(p, schemas) for p in positional]
    if signature.variadic is None:
        form["items"] = False
        form["maxItems"] = len(positional)
    else:
        form["items"] = schemas.of(signature.variadic.annotation)
    return form


def _keyword_form(signature: Signature, schemas: Schemas) -> Json:
    named = [p for p in signature.parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return {
        "title": "keyword",
        "type": "object",
        "properties": {p.name: _parameter_schema(p, schemas) for p in named},
        "required": [p.name for p in named if _is_required(p)],
        "additionalProperties": False if signature.rest is None else schemas.of(signature.rest.annotation),
    }


def _parameter_schema(parameter: inspect.Parameter, schemas: Schemas) -> Json:
    schema = schemas.of(parameter.annotation)
    if "$ref" not in schema:
        schema.setdefault("title", parameter.name)
    if parameter.default is not parameter.empty:
        try:
            schema["default"] = msgspec.json.decode(msgspec.json.encode(parameter.default))
        except Exception:  # noqa: BLE001 - any object can be a default; one without a JSON form is not shown
            pass
    return schema


def _is_required(parameter: inspect.Parameter) -> bool:
    variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not variadic


def _key_parameter(key_type: KeyType) -> Json:
    parameter: Json = {"name": "key", "in": "path", "required": True}
    if key_type.scalar is str:
        return {**parameter, "description": "The entity's key.", "schema": {"type": "string", "minLength": 1}}
    if key_type.scalar is int:
        schema = {"type": "integer", "format": "int64"}
        return {**parameter, "description": "The entity's key in decimal form.", "schema": schema}
    text = "The entity's key as a JSON array, percent-encoded."
    return {**parameter, "description": text, "content": {"application/json": {"schema": _key_schema(key_type)}}}


def _key_schema(key_type: KeyType) -> Json:
    if key_type.scalar is not None:
        return {"type": _JSON_TYPES[key_type.scalar]}
    parts = [{"type": _JSON_TYPES[part]} for part in key_type.parts]
    size = len(parts)
    return {"type": "array", "prefixItems": parts, "items": False, "minItems": size, "maxItems": size}


def _header_parameters() -> Json:
    return {
        "IdempotencyKey": {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "The same key of the same sender gives the first reply again and runs nothing.",
            "schema": {
                "type": "string",
                "minLength": 1,
                "maxLength": IDEMPOTENCY_KEY_CHARS_MAX,
                "pattern": "^[!-~]+$",
            },
        },
        "Timeout": {
            "name": "Styx-Timeout",
            "in": "header",
            "description": "Seconds to wait for the reply.",
            "schema": {"type": "number", "exclusiveMinimum": 0, "maximum": TIMEOUT_SECONDS_MAX},
        },
    }


def _place() -> Json:
    names = ("id", "epoch", "phase")
    return {
        "type": "object",
        "description": "The transaction's place in the serial order, which is by epoch, phase and id.",
        "properties": {name: {"type": "integer"} for name in names},
        "required": list(names),
    }


def _committed(result: Json) -> Json:
    schema = {
        "type": "object",
        "properties": {"result": result, "transaction": _place()},
        "required": ["result", "transaction"],
    }
    return _response("Committed.", schema)


def _error_response(status: str, text: str) -> Json:
    fields = {name: {"type": "string"} for name in ("code", "type", "message")}
    schema: Json = {
        "type": "object",
        "properties": {
            "error": {"type": "object", "properties": fields, "required": ["code", "message"]},
            "transaction": _place(),
        },
        "required": ["error"],
    }
    if status == "504":
        schema["properties"]["request_id"] = {"type": "string"}
    response = _response(text, schema)
    if status in ("429", "503"):
        response["headers"]["Retry-After"] = {"description": "Seconds.", "schema": {"type": "integer"}}
    return response


def _response(text: str, schema: Json) -> Json:
    header = {"description": "The request's id, for logs.", "schema": {"type": "string"}}
    return {
        "description": text,
        "headers": {"Styx-Request-Id": header, "Styx-Epoch": EPOCH_HEADER},
        "content": {"application/json": {"schema": schema}},
    }
