"""A function's result as JSON: bytes as base64, times as ISO 8601, other keys of a dict as strings.

NaN and the infinities have no JSON form and become null. It never fails on a value that can be written some way.
"""

from __future__ import annotations

from typing import Any

import msgspec

from styx.values.codec import ext_hook

_decoder = msgspec.msgpack.Decoder(ext_hook=ext_hook)
_encoder = msgspec.json.Encoder()


class ResultNotJson(Exception):
    """The result cannot be written as JSON; its message says why."""


def result_json(data: bytes) -> bytes:
    """The JSON of an encoded result; raises `ResultNotJson`."""
    if not data:
        return b"null"
    try:
        value = _decoder.decode(data)
        try:
            return _encoder.encode(value)
        except TypeError:
            return _encoder.encode(_with_text_keys(value))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ResultNotJson(str(error)) from None


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {_key_text(key): _with_text_keys(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_text_keys(item) for item in value]
    return value


def _key_text(key: Any) -> Any:
    """None, true, false and composite keys as their JSON text; the encoder knows what to do with all others."""
    if key is None or isinstance(key, bool | list | tuple):
        return _encoder.encode(key).decode()
    return key
