"""A request's body as strict JSON, split into arguments that are still encoded.

It refuses faults that decoders accept silently: repeated object keys, invalid UTF-8 in unread values, and nesting that
would reach the interpreter's recursion limit later.
"""

from __future__ import annotations

import json
from array import array
from itertools import accumulate
from typing import Any, Final

import msgspec

from styx.errors import RequestRejected
from styx.values.codec import shown

NESTING_MAX: Final = 128
"""Arrays and objects inside each other; the same on every Python version."""

_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""Up and down, as signed bytes."""
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

_array = msgspec.json.Decoder(list[msgspec.Raw])
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


def split(body: bytes) -> list[msgspec.Raw] | dict[str, msgspec.Raw]:
    """The elements of a JSON array or the members of a JSON object.

    Raises `RequestRejected` (`bad_request`) saying what is wrong with the body.
    """
    try:
        if not body.isascii():
            body.decode()
        _check_nesting(body)
        if b"{" in body:
            # Only the standard library reports repeated keys. parse_int: float has no limit on digits.
            json.loads(body, object_pairs_hook=_unique, parse_int=float)
        return _object.decode(body) if body.lstrip(b" \t\r\n")[:1] == b"{" else _array.decode(body)
    except msgspec.ValidationError:
        raise _bad("a request's body must be a JSON array or a JSON object of arguments, or nothing") from None
    except UnicodeDecodeError as error:
        raise _bad(f"the body is not valid UTF-8: {error.reason} at byte {error.start}") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise _bad(f"the body is not valid JSON: {_why(body, error)}") from None


def _why(body: bytes, error: ValueError) -> str:
    """msgspec takes half of a pair for the end of the data; the standard library takes it as it is."""
    if b"\\u" in body and isinstance(error, msgspec.DecodeError):
        try:
            json.loads(body, parse_int=float)
        except (ValueError, RecursionError):
            return str(error)
        return "a string has half of a surrogate pair, an escape from \\ud800 to \\udfff that stands alone"
    return str(error)


def _unique(pairs: list[tuple[str, Any]]) -> None:
    names = {name for name, _ in pairs}
    if len(names) != len(pairs):
        for name, _ in pairs:
            if name not in names:
                raise ValueError(f"an object has the key {shown(name)} twice")
            names.remove(name)


def _check_nesting(body: bytes) -> None:
    """In time linear in the body's length, whatever is in it. What is no JSON may pass: the decoder says it better."""
    if body.count(b"[") + body.count(b"{") <= NESTING_MAX:
        return
    # Escaped backslashes first: a quote behind one that is left is escaped itself, and every other one is a string's.
    quoted = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = b"".join(quoted.split(b'"')[::2]).translate(_STEPS, _NO_BRACKETS)
    if max(accumulate(array("b", brackets)), default=0) > NESTING_MAX:
        raise _too_deep()


def _too_deep() -> RequestRejected:
    return _bad(f"the body nests arrays and objects more than {NESTING_MAX} deep")


def _bad(message: str) -> RequestRejected:
    return RequestRejected("bad_request", message)
