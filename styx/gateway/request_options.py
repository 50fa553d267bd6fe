"""The headers that change how a request is run: `Idempotency-Key` and `Styx-Timeout`. Bad ones are refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b

from styx.errors import RequestRejected
from styx.gateway.auth.identity import Identity
from styx.model.limits import IDEMPOTENCY_KEY_CHARS_MAX, TIMEOUT_SECONDS_MAX
from styx.values.codec import shown

_VISIBLE = re.compile(rb"[\x21-\x7e]{1,%d}+" % IDEMPOTENCY_KEY_CHARS_MAX)
_ONCE = frozenset((b"idempotency-key", b"styx-timeout", b"styx-key-type", b"content-type", b"host", b"authorization"))
_SECONDS = re.compile(rb"[0-9]{1,9}+(\.[0-9]{1,9}+)?+")


def check_once(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuses a request that has a header twice which can have one meaning only: another server might take the other
    one. Raises `RequestRejected` (`bad_request`).
    """
    seen: set[bytes] = set()
    for name, _ in headers:
        if name in seen and name in _ONCE:
            raise RequestRejected("bad_request", f"the header {name.decode('ascii').title()} stands there twice")
        seen.add(name)


def idempotency_key(headers: Mapping[bytes, bytes], identity: Identity | None) -> str:
    """The key under which the reply is remembered, empty without the header; raises `RequestRejected` (`bad_request`).

    A key belongs to whoever used it: with an `identity` that comes first, then a blank, which no header's key can hold.
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
    # Two blanks: what stands for a long key is nobody's short one.
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
