"""The part of the OpenAPI document about events that are posted."""

from __future__ import annotations

from typing import Any, Final

from styx.gateway.status import STATUS_OF_CODE
from styx.model.inlet import Inlet

Json = dict[str, Any]

_PUBLISH: Final = (
    "Emits the event in a transaction of its own. A request that is sent again with what tells repetitions emits once."
)
_SIGNED: Final = " The request is signed: its signature is checked, and without one nothing is emitted."
_CODES: Final = (
    *("bad_request", "unauthenticated", "forbidden", "not_found"),
    *("too_large", "bad_arguments", "unavailable"),
)
"""How a request can be refused."""


def publish_operation(inlet: Inlet, value: Json, committed: Json, responses: dict[str, str]) -> Json:
    """The operation that posts an inlet's event. `value` is the schema of its values, `committed` the answer's;
    `responses` are the names of the shared answers by status.
    """
    event = inlet.event
    header = inlet.once_header
    once: Json = {"$ref": "#/components/parameters/IdempotencyKey"}
    if header is not None:
        once = {"name": header, "in": "header", "required": True, "schema": {"type": "string"}}
    statuses = sorted({str(STATUS_OF_CODE[code]) for code in _CODES} & responses.keys())
    return {
        "operationId": f"publish:{event.name}",
        "tags": [inlet.name],
        "summary": f"Publishes {event.name}, version {event.version}",
        "description": _PUBLISH + ("" if inlet.verify is None else _SIGNED),
        "parameters": [once, {"$ref": "#/components/parameters/Timeout"}],
        "requestBody": {"required": True, "content": {"application/json": {"schema": value}}},
        "responses": {
            "200": committed,
            **{status: {"$ref": f"#/components/responses/{responses[status]}"} for status in statuses},
        },
    }
