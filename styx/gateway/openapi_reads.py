"""The description of reads outside the log in OpenAPI: their headers, and what differs in their answers."""

from __future__ import annotations

from typing import Any, Final

from styx.model.freshness import EPOCH_MAX, LEVELS

Json = dict[str, Any]

GONE: Final = (
    "Gone",
    "A read outside the log at the end of an epoch that is not kept any more; read at a later one, or without Styx-At.",
)
_EPOCH: Final = {"type": "integer", "minimum": 0, "exclusiveMaximum": EPOCH_MAX}
_PARAMETERS: Final[dict[str, tuple[str, str, Json]]] = {
    "Freshness": (
        "Styx-Freshness",
        "Makes it a read outside the log, of the state at the end of one epoch: the newest that is there, one that the "
        "session's token allows, or one with all that was answered before.",
        {"type": "string", "enum": list(LEVELS)},
    ),
    "At": ("Styx-At", "Makes it a read outside the log, at the end of this epoch.", _EPOCH),
    "Epoch": (
        "Styx-Epoch",
        "The session's token: the largest Styx-Epoch of its answers. A read with it alone is one outside the log, with "
        "the freshness `session`; a call ignores it.",
        _EPOCH,
    ),
    "MaxStaleness": (
        "Styx-Max-Staleness",
        "Makes it a read outside the log, which is refused (503) if its state was replaced longer ago, in seconds.",
        {"type": "number", "minimum": 0},
    ),
}
EPOCH_HEADER: Final[Json] = {
    "description": "The epoch of the transaction, or at whose end a read outside the log has read: a session's token.",
    "schema": _EPOCH,
}


def read_headers() -> Json:
    """The components by which a request asks for a read outside the log."""
    return {
        component: {"name": name, "in": "header", "description": text, "schema": schema}
        for component, (name, text, schema) in _PARAMETERS.items()
    }


def read_parameters() -> list[Json]:
    """References to them."""
    return [{"$ref": f"#/components/parameters/{component}"} for component in _PARAMETERS]


def read_outside(responses: Json) -> Json:
    """The responses of an operation that can be a read outside the log: with `read` in place of `transaction`."""
    committed = responses["200"]
    (media,) = committed["content"].values()
    schema = media["schema"]
    read = {"type": "object", "properties": {"epoch": _EPOCH}, "required": ["epoch"]}
    either = {**schema, "properties": {**schema["properties"], "read": read}, "required": ["result"]}
    done = {**committed, "content": {"application/json": {"schema": either}}}
    gone = {"$ref": f"#/components/responses/{GONE[0]}"}
    return dict(sorted({**responses, "200": done, "410": gone}.items()))
