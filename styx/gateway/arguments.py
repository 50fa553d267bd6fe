"""Arguments on their way from JSON to the engine: decoded by the function's annotations, encoded as msgpack.

JSON has no bytes, datetimes or Decimals; the annotation says which of them a string is, and msgpack keeps the
difference. The engine checks again, because requests also arrive in other ways.
"""

from __future__ import annotations

import types
from typing import Any, Final

import msgspec

from styx.errors import BadArguments, RequestRejected, describe
from styx.gateway import json_body
from styx.model.request import encode_arguments
from styx.model.signature import NO_ARGUMENTS, Signature
from styx.values.custom_types import dec_hook

_DECODERS_KEPT_MAX: Final = 64

Decoder = msgspec.json.Decoder[Any]


class ArgumentReader:
    """Reads one function's arguments; keeps the decoders it has made."""

    __slots__ = ("_named", "_positional", "_signature", "_what")

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self._what = f"{signature.function}: the arguments"
        self._positional: dict[int, Decoder] = {}
        self._named: dict[str, Decoder] = {}

    def read(self, body: bytes) -> bytes:
        """The msgpack of the arguments in a JSON body; an empty body has none.

        Raises `RequestRejected` (`bad_request`) for what is not a JSON array or object, `BadArguments` naming the
        parameter for what does not fit the signature.
        """
        if not body:
            self._signature.positional_types(0)
            return NO_ARGUMENTS
        parts = json_body.split(body)
        if isinstance(parts, list):
            return encode_arguments(self._read_positional(body, len(parts)), self._what)
        return encode_arguments(self._read_named(parts), self._what)

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
        except TypeError as error:  # it is no type of msgpack's alone: a dict with keys of its own is one of these
            raise BadArguments(f"{self._signature.function}: {what} cannot be given as JSON: {error}") from None

    def _undecodable(self, error: Exception, what: str) -> Exception:
        if isinstance(error, msgspec.DecodeError | UnicodeDecodeError):
            return RequestRejected("bad_request", f"the body is not valid JSON: {error}")
        kind, message = describe(error)
        return BadArguments(f"{self._signature.function}: {what} do not fit: {kind}: {message}")
