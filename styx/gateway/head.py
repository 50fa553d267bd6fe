"""The head of a request, which is its line and its headers: the path as names and a key, and the options in headers.

A path is `/v1/{operator}/{key}/{function}` for a call, `/v1/{operator}/{key}` for a read, and `/v1/{operator}` for a
bulk load and for a listing. Paths of dead calls begin with `/v1/~dead/`, of edits with `/v1/~edit/`, of changes with
`/v1/~changes/`. A path is parsed as it was sent, because a key may contain an encoded slash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from styx.errors import BadKey, RequestRejected
from styx.gateway.auth.identity import Identity
from styx.model.event import RESERVED_OPERATOR
from styx.model.limits import IDEMPOTENCY_KEY_CHARS_MAX, TIMEOUT_SECONDS_MAX
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.values.codec import shown

PREFIX: Final = "/v1/"
EVENTS: Final = RESERVED_OPERATOR
"""In the place of an operator: `/v1/events/NAME` reads the events of an app that declares some, and takes them."""
EVENTS_PREFIX: Final = f"{PREFIX}{EVENTS}/"
"""What is posted to it and a name is an event."""
SQL_PATH: Final = "/v1/sql"
"""Where a server that answers in SQL takes queries."""
SQL_WATCH_PATH: Final = f"{SQL_PATH}/watch"
OWN_PREFIX: Final = f"{PREFIX}~"
"""Begins the gateway's own paths: no operator's name begins with `~`."""
DEAD_PREFIX: Final = "/v1/~dead/"
"""Begins the paths of dead calls; no operator's name begins with `~`."""
CHANGES_PREFIX: Final = "/v1/~changes/"
"""Begins the paths of the change feed, likewise."""

EDIT_PREFIX: Final = "/v1/~edit/"
"""Begins the paths of edits."""

_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_KEY_KINDS: Final = {b"str": str, b"int": int, b"tuple": None}
_VISIBLE = re.compile(rb"[\x21-\x7e]{1,%d}+" % IDEMPOTENCY_KEY_CHARS_MAX)
_OF_READS: Final = (b"styx-freshness", b"styx-at", b"styx-epoch", b"styx-max-staleness")
_OF_CALLS: Final = (b"idempotency-key", b"styx-timeout", b"styx-key-type", b"content-type", b"host", b"authorization")
_ONCE = frozenset((*_OF_CALLS, *_OF_READS))
_SECONDS = re.compile(rb"[0-9]{1,9}+(\.[0-9]{1,9}+)?+")


class Address(NamedTuple):
    """The names in a path: all three for a call, no function for a read, only the operator for a bulk load or a
    listing. `key` is the text form of the key.
    """

    operator: str
    key: str | None = None
    function: str | None = None


class DeadAddress(NamedTuple):
    """The names in a path of dead calls: the operator alone for a list of them; else one call's id, and `act` is
    `replay` or `drop`.
    """

    operator: str
    call_id: str | None = None
    act: str | None = None


class EditAddress(NamedTuple):
    """The names in a path of an edit; `key` is the text form of the key."""

    operator: str
    key: str


class ChangesAddress(NamedTuple):
    """The names in a path of the change feed; no table: all of the operator."""

    operator: str
    table: str | None = None


# The path --------------------------------------------------------------------------------------------------


def path(scope: Mapping[str, Any]) -> str:
    """The request's path, decoded, below the prefix under which the application is mounted (`root_path`)."""
    below: str = scope["path"]
    root: str = scope.get("root_path", "")
    return below[len(root) :] if root and below.startswith(root + "/") else below


def raw_path(scope: Mapping[str, Any]) -> str:
    """The same path as it was sent, with its percent-encoding."""
    sent = scope.get("raw_path")
    if sent is None:
        return quote(path(scope), safe="/")
    # Bytes beyond ASCII are not allowed in a URL. They are kept here, and fail later as names or keys, with a message.
    text: str = sent.decode("latin-1")
    if not scope.get("root_path"):
        return text
    below = path(scope)
    # The prefix may be encoded in a different way, and some servers leave it out here.
    n_prefix = 0 if below == scope["path"] else scope["root_path"].count("/")
    found = "/" + "/".join(text.split("/")[n_prefix + 1 :])
    return next((raw for raw in (found, text) if unquote(raw) == below), quote(below, safe="/"))


def request_path(scope: Mapping[str, Any]) -> str | None:
    """The raw path of a call, a read or a load; None for a path that was not sent with a literal `/v1/` at its
    beginning. The reason is that proxies may have rules about `/v1/`, which would not match `/%76%31/`.
    """
    sent = raw_path(scope)
    return sent if sent.startswith(PREFIX) and path(scope).startswith(PREFIX) else None


def parse(sent: str) -> Address | None:
    """The address in a `request_path`, or None if it has another shape.

    Raises `RequestRejected` (`bad_request`) for percent-encoding that is not UTF-8 or incomplete.
    """
    names = sent.removeprefix(PREFIX).split("/")
    if len(names) > len(Address._fields) or names == [""]:
        return None
    return Address(*[name if name.isascii() and "%" not in name else _decoded(name) for name in names])


def published(sent: str, method: str) -> str | None:
    """The name of the event that a request publishes; None if it publishes none. Raises as `parse`."""
    if method != "POST" or not sent.startswith(EVENTS_PREFIX):
        return None
    asked = parse(sent)
    return None if asked is None or asked.function is not None else asked.key


def parse_dead(sent: str) -> DeadAddress | None:
    """The address in a `request_path` that begins with `DEAD_PREFIX`, or None if it has another shape; raises as
    `parse`.
    """
    names = [_decoded(name) for name in sent.removeprefix(DEAD_PREFIX).split("/")]
    if "" in names or not (len(names) == 1 or (len(names) == 3 and names[2] in ("replay", "drop"))):
        return None
    return DeadAddress(*names)


def parse_edit(sent: str) -> EditAddress | None:
    """The address in a `request_path` that begins with `EDIT_PREFIX`, or None if it has another shape; raises as
    `parse`.
    """
    names = [_decoded(name) for name in sent.removeprefix(EDIT_PREFIX).split("/")]
    return EditAddress(*names) if len(names) == 2 and all(names) else None


def parse_changes(sent: str) -> ChangesAddress | None:
    """The address in a `request_path` that begins with `CHANGES_PREFIX`, or None if it has another shape; raises as
    `parse`.
    """
    names = [_decoded(name) for name in sent.removeprefix(CHANGES_PREFIX).split("/")]
    return None if "" in names or len(names) > len(ChangesAddress._fields) else ChangesAddress(*names)


def _decoded(name: str) -> str:
    if name.isascii() and _BAD_ESCAPE.search(name) is None:
        try:
            return unquote(name, errors="strict")
        except UnicodeDecodeError:
            pass
    raise RequestRejected(
        "bad_request",
        f"{shown(name)} in the path is not percent-encoded UTF-8: encode every byte but letters, digits and -._~",
    )


# Headers ---------------------------------------------------------------------------------------------------


def check_once(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuses a request that repeats a header with a single value: another server might use the other value.

    Raises `RequestRejected` (`bad_request`).
    """
    seen: set[bytes] = set()
    for name, _ in headers:
        if name in seen and name in _ONCE:
            raise RequestRejected("bad_request", f"the header {name.decode('ascii').title()} stands there twice")
        seen.add(name)


def served(operator: Operator) -> Operator:
    """The operator if gateways serve it; raises `RequestRejected` (`forbidden`)."""
    if not operator.served:
        raise RequestRejected(
            "forbidden",
            f"the functions of {operator.name!r} are the engine's own: an event is posted to {EVENTS_PREFIX}NAME, and "
            "records of topics come by `styx ingest`",
        )
    return operator


def key_of(text: str, operator: Operator, headers: Mapping[bytes, bytes]) -> Key:
    """The checked key from its text form, and of the type in `Styx-Key-Type` (`str`, `int` or `tuple`), if it was sent.

    Raises `BadKey`.
    """
    if not text:
        raise BadKey(f"the key of operator {operator.name!r} is empty; the path is {PREFIX}OPERATOR/KEY/FUNCTION")
    kind = headers.get(b"styx-key-type")
    if kind is not None and _KEY_KINDS.get(kind, kind) is not operator.key_type.scalar:
        sent = shown(kind.decode("latin-1"))
        raise BadKey(f"operator {operator.name!r} has keys of type {operator.key_type.name}, got {sent} {shown(text)}")
    return operator.key_type.parse(text, operator.name)


def idempotency_key(headers: Mapping[bytes, bytes], identity: Identity | None) -> str:
    """The key under which the reply is remembered, empty without the header; raises `RequestRejected` (`bad_request`).

    Each identity has separate keys: its fingerprint comes first, then a blank, which no key in a header can contain.
    """
    value = headers.get(b"idempotency-key")
    if value is None:
        return ""
    if _VISIBLE.fullmatch(value) is None:
        raise RequestRejected(
            "bad_request",
            f"Idempotency-Key must be 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters without blanks, "
            f"got {shown(value.decode('latin-1'))}",
        )
    if identity is None:
        return value.decode("ascii")
    own = f"{identity.fingerprint} {value.decode('ascii')}"
    # Two blanks, so that the digest of a long key never equals a short key.
    return own if len(own) <= IDEMPOTENCY_KEY_CHARS_MAX else f"{identity.fingerprint}  {blake2b(value).hexdigest()}"


def timeout_seconds(headers: Mapping[bytes, bytes], default: float) -> float:
    """How long to wait for the reply, in seconds; raises `RequestRejected` (`bad_request`)."""
    value = headers.get(b"styx-timeout")
    if value is None:
        return default
    if _SECONDS.fullmatch(value) is None or not 0 < float(value) <= TIMEOUT_SECONDS_MAX:
        raise RequestRejected(
            "bad_request",
            f"Styx-Timeout must be seconds above 0 and up to {TIMEOUT_SECONDS_MAX:.0f}, such as 2.5, "
            f"got {shown(value.decode('latin-1'))}",
        )
    return float(value)
