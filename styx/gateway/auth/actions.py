"""The action of a request, in the words of rules: a call, a read, a load, or a page. It is read from the request's
first line.

The path is parsed exactly as the gateway's endpoints do it, so that the allowed action is the one that runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from styx.errors import RequestRejected
from styx.gateway import address

CALL: Final = "call"
READ: Final = "read"
LOAD: Final = "load"
SEE: Final = "see"
PAGES: Final = {
    "/": "docs",
    "/docs": "docs",
    "/openapi.json": "docs",
    "/metrics": "metrics",
    "/errors": "errors",
    "/status": "status",
}
"""Pages by path, with their names in rules."""
_SEGMENTS: Final = {("POST", 5): CALL, ("GET", 4): READ, ("HEAD", 4): READ, ("POST", 3): LOAD}
"""By method, and by parts of a path below `/v1/`, the empty one before its first slash included."""


class Action(NamedTuple):
    """`target` is OPERATOR.FUNCTION of a call, OPERATOR of a read or a load, or a page; `key` the entity's, as text."""

    kind: str
    target: str
    key: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"


def action_of(scope: Mapping[str, Any]) -> Action | None:
    """What an ASGI request asks for; None for what is no request of ours."""
    path = address.path(scope)
    if not address.is_request(scope):
        page = PAGES.get(path)
        return Action(SEE, page) if page is not None and scope["method"] in ("GET", "HEAD") else None
    segments = address.raw_path(scope).split("/")
    kind = _SEGMENTS.get((scope["method"], len(segments)))
    try:
        names = [address.decoded(segment) for segment in segments[2:]]
    except RequestRejected:
        return None
    if kind is None or not all(names):
        return None
    if kind == CALL:
        return Action(CALL, f"{names[0]}.{names[2]}", names[1])
    return Action(kind, names[0], names[1] if kind == READ else None)
