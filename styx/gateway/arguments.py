"""The arguments in a request's body: within the size limit, split as strict JSON, and decoded.

Decoders accept silently what is refused here: repeated object keys, invalid UTF-8 in unread values, and nesting that
would reach the interpreter's recursion limit later. JSON has no bytes, datetimes or Decimals; a function's annotations
say which of them a string is, and msgpack keeps the difference. The engine checks arguments again, because requests
also arrive in other ways.
"""

from __future__ import annotations

import json
import types
from array import array
from itertools import accumulate
from typing import Any, Final

import msgspec

from styx.errors import BadArguments, RequestRejected, ValueTooLarge, describe
from styx.model.request import encode_arguments
from styx.model.signature import NO_ARGUMENTS, Signature
from styx.values.codec import shown
from styx.values.custom_types import dec_hook

NESTING_MAX: Final = 128
"""Arrays and objects inside each other; the same on every Python version."""

_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""Maps brackets to steps of the nesting, up or down, as signed bytes."""
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_DECODERS_KEPT_MAX: Final = 64

Decoder = msgspec.json.Decoder[Any]

_array = msgspec.json.Decoder(list[msgspec.Raw])
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


# Size --------------------------------------------------------------------------------------------------------


def check_announced(announced: bytes | None, bytes_max: int) -> None:
    """Raises `RequestRejected` for the `Content-Length` of a body over the limit, or one that is no number."""
    if announced is not None:
        if not announced.isdigit():
            raise _bad("Content-Length is not a number")
        # Longer than any limit is compared as text: int() refuses thousands of digits.
        if len(announced) > len(str(2**63)) or int(announced) > bytes_max:
            raise too_large(bytes_max)


def check_size(size: int, bytes_max: int) -> None:
    """Raises `RequestRejected` for a body of so many bytes that it is over the limit."""
    if size > bytes_max:
        raise too_large(bytes_max)


def too_large(bytes_max: int) -> RequestRejected:
    """The refusal of a body of more than `bytes_max` bytes."""
    return RequestRejected("too_large", f"the request's body is over the limit of {bytes_max} bytes: send less")


# JSON ------------------------------------------------------------------------------------------------------


def split(body: bytes) -> list[msgspec.Raw] | dict[str, msgspec.Raw]:
    """The elements of a JSON array or the members of a JSON object.

    Raises `RequestRejected` (`bad_request`), which names the fault of the body.
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
    """The reason why a body is no JSON. msgspec takes half of a surrogate pair for the end of the data, and the
    standard library accepts it.
    """
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
    """Checks the nesting in linear time. A body that is no JSON may pass, because the decoder's error is better."""
    if body.count(b"[") + body.count(b"{") <= NESTING_MAX:
        return
    # Escaped backslashes are removed first, then escaped quotes. Every quote that is left begins or ends a string.
    quoted = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = b"".join(quoted.split(b'"')[::2]).translate(_STEPS, _NO_BRACKETS)
    if max(accumulate(array("b", brackets)), default=0) > NESTING_MAX:
        raise _too_deep()


def _too_deep() -> RequestRejected:
    return _bad(f"the body nests arrays and objects more than {NESTING_MAX} deep")


def _bad(message: str) -> RequestRejected:
    return RequestRejected("bad_request", message)


# Arguments -------------------------------------------------------------------------------------------------


class ArgumentReader:
    """Reads one function's arguments; keeps the decoders it has made."""

    __slots__ = ("_named", "_positional", "_signature", "_what")

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self._what = f"{signature.function}: the arguments"
        self._positional: dict[int, Decoder] = {}
        self._named: dict[str, Decoder] = {}

    def read(self, body: bytes, bytes_max: int) -> bytes:
        """The msgpack of the arguments in a JSON body; an empty body has none.

        Raises `RequestRejected` (`bad_request`) for a body that is no JSON array or object, `BadArguments` naming the
        parameter that does not fit the signature, and `ValueTooLarge` for more than `bytes_max` bytes of msgpack.
        """
        if not body:
            self._signature.positional_types(0)
            return NO_ARGUMENTS
        parts = split(body)
        arguments = self._read_positional(body, len(parts)) if isinstance(parts, list) else self._read_named(parts)
        encoded = encode_arguments(arguments, self._what)
        if len(encoded) > bytes_max:
            raise ValueTooLarge(
                f"the arguments of {self._signature.function} have {len(encoded)} bytes encoded; the limit is "
                f"{bytes_max}: send less"
            )
        return encoded

    def _read_positional(self, body: bytes, count: int) -> tuple[Any, ...]:
        decoder = self._positional.get(count)
        if decoder is None:
            decoder = self._decoder(types.GenericAlias(tuple, self._signature.positional_types(count)), "the arguments")
            if len(self._positional) < _DECODERS_KEPT_MAX:
                self._positional[count] = decoder
        try:
            arguments: tuple[Any, ...] = decoder.decode(body)
        except msgspec.ValidationError as error:
            raise BadArguments(self._signature.located(str(error))) from None
        except Exception as error:  # noqa: BLE001 - converting runs a Struct's __post_init__, which is the app's
            raise self._undecodable(error, "the arguments") from None
        return arguments

    def _read_named(self, parts: dict[str, msgspec.Raw]) -> dict[str, Any]:
        arguments = {}
        for name, parameter in self._signature.named_parameters(parts).items():
            decoder = self._named.get(parameter.name)
            if decoder is None:
                decoder = self._decoder(parameter.annotation, f"argument {name!r}")
                self._named[parameter.name] = decoder
            try:
                arguments[name] = decoder.decode(parts[name])
            except msgspec.ValidationError as error:
                raise BadArguments(f"{self._signature.function}: argument {name!r}: {error}") from None
            except Exception as error:  # noqa: BLE001 - as above
                raise self._undecodable(error, f"argument {name!r}") from None
        return arguments

    def _decoder(self, declared: Any, what: str) -> Decoder:
        try:
            return Decoder(declared, dec_hook=dec_hook)
        except TypeError as error:  # msgpack has no such type, for example a dict with other keys
            raise BadArguments(f"{self._signature.function}: {what} cannot be given as JSON: {error}") from None

    def _undecodable(self, error: Exception, what: str) -> Exception:
        if isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
            return RequestRejected("bad_request", f"the body is not valid JSON: {error}")
        kind, message = describe(error)
        return BadArguments(f"{self._signature.function}: {what} do not fit: {kind}: {message}")
