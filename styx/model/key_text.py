"""A key of any kind as text, its JSON, and back: what names an entity where its operator does not matter."""

from __future__ import annotations

from typing import Any

import msgspec

from styx.errors import BadKey
from styx.model.limits import KEY_BYTES_MAX
from styx.values.codec import shown

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(str | int | list[str | int]).decode


def text_of(key: Any) -> str:
    """A key as text; raises `BadKey`."""
    try:
        if _is_key(key):
            text: bytes = _encode(key)
            if len(text) <= KEY_BYTES_MAX:
                return text.decode()
    except ValueError:  # msgspec's, and that of a text that is not valid Unicode
        pass
    raise BadKey(
        f"ctx.emit(…, key=…) takes a str, an int of 64 bits or a tuple of them, of at most {KEY_BYTES_MAX} bytes: got "
        f"{shown(key)}"
    )


def _is_key(key: Any) -> bool:
    kind = type(key)
    if kind is tuple or kind is list:
        for part in key:
            if not _is_part(part):
                return False
        return len(key) > 0
    return _is_part(key)


def _is_part(part: Any) -> bool:
    if type(part) is int:
        return -(2**63) <= part < 2**63
    return type(part) is str


def key_of(text: str) -> str | int | list[str | int]:
    """The key that `text_of` was given; a tuple as a list."""
    key: str | int | list[str | int] = _decode(text)
    return key
