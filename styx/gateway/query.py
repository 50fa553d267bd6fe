"""The arguments of a read-only function in a query string, as the JSON object that a body would have.

Each argument is given by its parameter's name, once. A parameter whose type is a string in JSON (`str`, `bytes`,
`datetime`, `Decimal`, `UUID`, an enumeration of strings …) takes the text as it stands. Any other parameter takes JSON:
`5`, `true`, `null`, `["a", "b"]`. Text that is no JSON, or whose JSON does not fit the type, is taken as a string, so
that `str | None` takes a name without quotes.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from styx.errors import RequestRejected
from styx.model.signature import ARGUMENTS_MAX, Signature
from styx.values.codec import shown
from styx.values.custom_types import dec_hook

_BAD_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")
_TEXTS: Final = (
    msgspec.inspect.StrType,
    msgspec.inspect.BytesType,
    msgspec.inspect.ByteArrayType,
    msgspec.inspect.DateTimeType,
    msgspec.inspect.DateType,
    msgspec.inspect.TimeType,
    msgspec.inspect.TimeDeltaType,
    msgspec.inspect.UUIDType,
    msgspec.inspect.DecimalType,
)
_encode = msgspec.json.Encoder().encode


def takes_text(annotation: Any) -> bool:
    """Whether a value of this type is always a string in JSON, so that a query has it without quotes."""
    try:
        kind = msgspec.inspect.type_info(annotation)
    except Exception:  # noqa: BLE001 - a type from anywhere
        return False
    if isinstance(kind, msgspec.inspect.EnumType):
        return all(isinstance(member.value, str) for member in kind.cls)
    if isinstance(kind, msgspec.inspect.LiteralType):
        return all(isinstance(value, str) for value in kind.values)
    return isinstance(kind, _TEXTS)


class QueryReader:
    """Reads one function's arguments from query strings; keeps what it has found out about its parameters."""

    __slots__ = ("_decoders", "_signature")

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self._decoders: dict[str, msgspec.json.Decoder[Any] | None] = {}

    def body(self, query: bytes) -> bytes:
        """The JSON object of the arguments, empty without any; their types are checked when it is read as a body.

        Raises `RequestRejected` (`bad_request`) for a query that is malformed or names an argument twice, and
        `BadArguments` for missing and unknown names.
        """
        given = _parsed(query)
        if not given and not self._signature.required:
            return b""
        parameters = self._signature.named_parameters(given)
        members = [
            _encode(name) + b":" + self._value(parameters[name].name, parameters[name].annotation, text)
            for name, text in given.items()
        ]
        return b"{" + b",".join(members) + b"}"

    def _value(self, name: str, annotation: Any, text: str) -> bytes:
        if name not in self._decoders:
            self._decoders[name] = None if takes_text(annotation) else _decoder(annotation)
        decoder = self._decoders[name]
        if decoder is None:
            return _encode(text)
        sent, quoted = text.encode(), _encode(text)
        if not _is_json(sent) or (not _fits(decoder, sent) and _fits(decoder, quoted)):
            return quoted
        return sent


def _parsed(query: bytes) -> dict[str, str]:
    try:
        sent = query.decode("ascii")
        if _BAD_ESCAPE.search(sent) is not None:
            raise ValueError("a % is not followed by two hexadecimal digits")
        pairs = parse_qsl(sent, keep_blank_values=True, errors="strict", max_num_fields=ARGUMENTS_MAX)
    except ValueError as error:
        raise RequestRejected(
            "bad_request", f"the query is not NAME=VALUE&…, percent-encoded UTF-8, of at most {ARGUMENTS_MAX}: {error}"
        ) from None
    given = dict(pairs)
    if len(given) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise RequestRejected(
            "bad_request", f"the query has {shown(twice)} twice: a list is one JSON array, such as [1,2]"
        )
    return given


def _decoder(annotation: Any) -> msgspec.json.Decoder[Any]:
    try:
        return msgspec.json.Decoder(annotation, dec_hook=dec_hook)
    except TypeError:
        return msgspec.json.Decoder()  # the reader of the body says that it cannot be given as JSON


def _is_json(sent: bytes) -> bool:
    try:
        msgspec.json.decode(sent, type=msgspec.Raw)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return True


def _fits(decoder: msgspec.json.Decoder[Any], sent: bytes) -> bool:
    try:
        decoder.decode(sent)
    except Exception:  # noqa: BLE001 - converting can run the app's code, which can raise anything
        return False
    return True
