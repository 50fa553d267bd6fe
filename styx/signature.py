"""A registered function's parameters: decoding them from bytes by annotation, and describing them.

Arguments travel as msgpack: an array for positional ones, a map for keyword ones (HTTP objects). Every invocation decodes
its own copy, so a mutated argument is invisible elsewhere. Never runs the function.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import msgspec

from styx.codec import ext_hook
from styx.errors import BadArguments, ConfigurationError

_Parameter = inspect.Parameter
_POSITIONAL = (_Parameter.POSITIONAL_ONLY, _Parameter.POSITIONAL_OR_KEYWORD)
_WHERE = re.compile(r" - at `\$(?:\[(\d+)\])?([^`]*)`$")
NO_ARGUMENTS = b"\x90"
"""msgpack of an empty array."""


class Signature:
    """Parameters after the context, with their resolved annotations.

    Raises `ConfigurationError` when an annotation cannot be resolved or msgspec cannot convert to it.
    """

    __slots__ = ("_decoders", "_map_decoder", "_named", "_required", "function", "parameters", "result_type", "variadic")

    def __init__(self, function: str, func: Callable[..., Any]) -> None:
        self.function = function
        parameters = list(inspect.signature(func).parameters.values())[1:]
        self.parameters: list[inspect.Parameter] = [
            p.replace(annotation=_resolved(function, func, p.name, p.annotation)) for p in parameters
        ]
        returns = inspect.signature(func).return_annotation
        self.result_type: Any = _resolved(function, func, "return", returns)
        self._required = sum(1 for p in self.parameters if p.kind in _POSITIONAL and p.default is p.empty)
        self.variadic = next((p for p in self.parameters if p.kind is p.VAR_POSITIONAL), None)
        self._named = {p.name: p for p in self.parameters if p.kind is not p.VAR_POSITIONAL}
        self._decoders: dict[int, msgspec.msgpack.Decoder[Any]] = {}
        self._map_decoder = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
        for parameter in self.parameters:
            self._check_type(parameter)

    def _check_type(self, parameter: inspect.Parameter) -> None:
        try:
            msgspec.msgpack.Decoder(parameter.annotation)
        except Exception as error:
            raise ConfigurationError(
                f"{self.function}: arguments cannot be converted to the annotation of {parameter.name!r}: {error}"
            ) from None

    def decode(self, data: bytes) -> tuple[Any, dict[str, Any]]:
        """(positional, keyword) arguments from their msgpack; raises `BadArguments` naming the parameter."""
        if not data or data[0] & 0xF0 == 0x80 or data[0] in (0xDE, 0xDF):
            return self._decode_named(data)
        try:
            count = _array_length(data)
            decoder = self._decoders.get(count)
            if decoder is None:
                decoder = self._positional_decoder(count)
            return decoder.decode(data), {}
        except msgspec.ValidationError as error:
            raise BadArguments(self._located(str(error))) from None
        except (msgspec.DecodeError, ValueError, UnicodeDecodeError, RecursionError) as error:
            raise BadArguments(f"{self.function}: the arguments are not valid msgpack: {error}") from None

    def _positional_decoder(self, count: int) -> msgspec.msgpack.Decoder[Any]:
        positional = [p for p in self.parameters if p.kind in _POSITIONAL]
        missing = [p.name for p in self.parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
        too_many = count > len(positional) and self.variadic is None
        if count < self._required or too_many or missing:
            raise BadArguments(f"{self.function} takes {self.describe()}; got {count} positional argument(s)")
        types = [p.annotation for p in positional[:count]]
        if self.variadic is not None:
            types += [self.variadic.annotation] * (count - len(types))
        decoder = msgspec.msgpack.Decoder(tuple[tuple(types)] if types else tuple[()], ext_hook=ext_hook)
        if len(self._decoders) < 64:
            self._decoders[count] = decoder
        return decoder

    def _decode_named(self, data: bytes) -> tuple[Any, dict[str, Any]]:
        try:
            raw = self._map_decoder.decode(data)
        except (msgspec.DecodeError, ValueError) as error:
            raise BadArguments(f"{self.function}: the arguments are not valid msgpack: {error}") from None
        positional: list[Any] = []
        named: dict[str, Any] = {}
        rest = next((p for p in self.parameters if p.kind is p.VAR_KEYWORD), None)
        missing = [
            p.name for p in self._named.values() if p.default is p.empty and p is not rest and p.name not in raw
        ]
        unknown = [name for name in raw if rest is None and name not in self._named]
        if missing or unknown:
            what = f"lacks {', '.join(missing)}" if missing else f"has no parameter {', '.join(unknown)}"
            raise BadArguments(f"{self.function} takes {self.describe()}; the request {what}")
        for name, value in raw.items():
            parameter = self._named.get(name, rest)
            assert parameter is not None
            try:
                decoded = msgspec.msgpack.decode(value, type=parameter.annotation, ext_hook=ext_hook)
            except msgspec.ValidationError as error:
                raise BadArguments(f"{self.function}: argument {name!r}: {error}") from None
            named[name] = decoded
        for parameter in self.parameters:
            if parameter.kind is not parameter.POSITIONAL_ONLY or parameter.name not in named:
                break
            positional.append(named.pop(parameter.name))
        return positional, named

    def _located(self, message: str) -> str:
        """msgspec's message with the parameter's name in place of its index."""
        match = _WHERE.search(message)
        if match is None or match.group(1) is None:
            return f"{self.function}: {message}"
        index = int(match.group(1))
        positional = [p for p in self.parameters if p.kind in (*_POSITIONAL, _Parameter.VAR_POSITIONAL)]
        name = positional[min(index, len(positional) - 1)].name
        rest = match.group(2)
        place = f" (in {name}{rest})" if rest else ""
        return f"{self.function}: argument {name!r}: {message[: match.start()]}{place}"

    def describe(self) -> str:
        """The parameters as a person writes them: `(to: str, amount: int)`."""
        return "(" + ", ".join(str(p).replace("typing.", "") for p in self.parameters) + ")"


def _resolved(function: str, func: Callable[..., Any], name: str, annotation: Any) -> Any:
    if annotation is inspect.Parameter.empty:
        return Any
    if not isinstance(annotation, str):
        return annotation
    names = dict(getattr(func, "__globals__", {}))
    code, cells = getattr(func, "__code__", None), getattr(func, "__closure__", None) or ()
    if code is not None:
        names.update(zip(code.co_freevars, (cell.cell_contents for cell in cells), strict=False))
    try:
        return eval(annotation, names)  # noqa: S307 - the app's own annotation, as typing.get_type_hints does
    except Exception as error:
        raise ConfigurationError(
            f"{function}: the annotation {annotation!r} of {name!r} cannot be resolved: {error}; "
            "import the type outside of TYPE_CHECKING, at module level"
        ) from None


def _array_length(data: bytes) -> int:
    """Elements of the msgpack array that `data` starts with; ValueError for anything else."""
    head = data[0]
    if head & 0xF0 == 0x90:
        return head & 0x0F
    if head == 0xDC and len(data) >= 3:
        return int.from_bytes(data[1:3], "big")
    if head == 0xDD and len(data) >= 5:
        return int.from_bytes(data[1:5], "big")
    raise ValueError("expected an array or a map of arguments")
