"""The path of a request, `/v1/{operator}/{key}/{function}`, as the names and the key that it stands for; and those of
a read, `/v1/{operator}/{key}`, and of a bulk load, `/v1/{operator}`.

It parses the path as it was sent, because a key may contain an encoded slash.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from styx.errors import BadKey, RequestRejected
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.values.codec import shown

PREFIX: Final = "/v1/"

_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_SEGMENTS: Final = 5  # an empty one before the first slash, v1, operator, key, function
_READ_SEGMENTS: Final = 4
_LOAD_SEGMENTS: Final = 3
_KEY_KINDS: Final = {b"str": str, b"int": int, b"tuple": None}


class Address(NamedTuple):
    """The three segments: names decoded, the key as its text form."""

    operator: str
    key: str
    function: str


def path(scope: Any) -> str:
    """The request's path, decoded, below the prefix under which the application is mounted (`root_path`)."""
    below: str = scope["path"]
    root: str = scope.get("root_path", "")
    return below[len(root) :] if root and below.startswith(root + "/") else below


def raw_path(scope: Any) -> str:
    """As `path`, as it was sent: percent-encoding included."""
    sent = scope.get("raw_path")
    if sent is None:
        return quote(path(scope), safe="/")
    # Bytes beyond ASCII are no URL; kept one to one here, they fail as names or keys with a message.
    text: str = sent.decode("latin-1")
    if not scope.get("root_path"):
        return text
    below = path(scope)
    # The prefix may be encoded in another way than ours, and some servers leave it out here.
    n_prefix = 0 if below == scope["path"] else scope["root_path"].count("/")
    found = "/" + "/".join(text.split("/")[n_prefix + 1 :])
    return next((raw for raw in (found, text) if unquote(raw) == below), quote(below, safe="/"))


def is_request(scope: Any) -> bool:
    """Whether the path begins with `/v1/`, and was sent so: proxies may have rules about it, and do not know it as
    `/%76%31/`.
    """
    return path(scope).startswith(PREFIX) and raw_path(scope).startswith(PREFIX)


def parse(path: str) -> Address | None:
    """The address in a path, or None if it has another shape.

    Raises `RequestRejected` (`bad_request`) for percent-encoding that is not UTF-8 or incomplete.
    """
    segments = path.split("/")
    if len(segments) != _SEGMENTS:
        return None
    return Address(decoded(segments[2]), decoded(segments[3]), decoded(segments[4]))


def parse_load(path: str) -> str | None:
    """The operator's name in a bulk load's path, `/v1/{operator}`, or None; raises as `parse`."""
    segments = path.split("/")
    return decoded(segments[2]) if len(segments) == _LOAD_SEGMENTS and segments[2] else None


def parse_read(path: str) -> tuple[str, str] | None:
    """The operator's name and the key's text form in a read's path, `/v1/{operator}/{key}`, or None; as `parse`."""
    segments = path.split("/")
    return (decoded(segments[2]), decoded(segments[3])) if len(segments) == _READ_SEGMENTS else None


def key_of(text: str, operator: Operator, kind: bytes | None) -> Key:
    """The key from its text form; `kind` is the sender's `Styx-Key-Type` (`str`, `int` or `tuple`), if it said.

    Raises `BadKey`.
    """
    if not text:
        raise BadKey(f"the key of operator {operator.name!r} is empty; the path is {PREFIX}OPERATOR/KEY/FUNCTION")
    if kind is not None and _KEY_KINDS.get(kind, kind) is not operator.key_type.scalar:
        sent = shown(kind.decode("latin-1"))
        raise BadKey(f"operator {operator.name!r} has keys of type {operator.key_type.name}, got {sent} {shown(text)}")
    return operator.key_type.parse(text, operator.name)


def decoded(segment: str) -> str:
    if "%" not in segment:
        if segment.isascii():
            return segment
    elif segment.isascii() and _BAD_ESCAPE.search(segment) is None:
        try:
            return unquote(segment, errors="strict")
        except UnicodeDecodeError:
            pass
    raise RequestRejected(
        "bad_request",
        f"{shown(segment)} in the path is not percent-encoded UTF-8: encode every byte but letters, digits and -._~",
    )
