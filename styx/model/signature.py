"""A registered function's parameters: decoding them from bytes by annotation, and describing them.

Arguments travel as msgpack: an array for positional ones, a map for keyword ones (HTTP objects). Every invocation
decodes its own copy, so a mutated argument is invisible elsewhere.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Collection
from typing import Any, Final

import msgspec

from styx.errors import BadArguments, ConfigurationError
from styx.values.codec import ext_hook, shown
from styx.values.custom_types import dec_hook
from styx.values.declared_types import check_declared, check_result

_Parameter = inspect.Parameter
_POSITIONAL = (_Parameter.POSITIONAL_ONLY, _Parameter.POSITIONAL_OR_KEYWORD)
_NO_NAMED: dict[str, Any] = {}
_WHERE = re.compile(r" - at `\$(?:\[([0-9]{1,9}+)\])?+([^`]*+)`\Z")
NO_ARGUMENTS = b"\x90"
"""msgpack of an empty array."""
ARGUMENTS_MAX: Final = 1_024
"""Arguments of one request or call; more belong into one list."""
_DECODERS_KEPT_MAX: Final = 64
_SHORT_ARRAY_HEAD: Final = 0x90
_SHORT_ARRAY_MAX: Final = 15
"""msgpack: up to so many elements, an array's length is in its first byte."""


class Signature:
    """Parameters after the context, with their resolved annotations; `usual` is as in `FunctionSpec`.

    Raises `ConfigurationError` when an annotation cannot be resolved or msgspec cannot convert to it.
    """

    __slots__ = (
        "_context",
        "_decoders",
        "_map_decoder",
        "_named",
        "function",
        "parameters",
        "required",
        "rest",
        "result_type",
        "usual",
        "variadic",
    )

    def __init__(self, function: str, func: Callable[..., Any]) -> None:
        self.function = function
        context, *parameters = inspect.signature(func).parameters.values()
        self.parameters: list[inspect.Parameter] = [
            p.replace(annotation=_resolved(function, func, p.name, p.annotation)) for p in parameters
        ]
        returns = inspect.signature(func).return_annotation
        self.result_type: Any = _resolved(function, func, "return", returns)
        self.required = sum(1 for p in self.parameters if p.kind in _POSITIONAL and p.default is p.empty)
        self.variadic = next((p for p in self.parameters if p.kind is p.VAR_POSITIONAL), None)
        self.rest = next((p for p in self.parameters if p.kind is p.VAR_KEYWORD), None)
        self._named = {p.name: p for p in self.parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
        self._context = context.name if context.kind is not context.POSITIONAL_ONLY else None
        self._decoders: dict[int, Callable[[bytes], Any]] = {}
        self.usual: dict[int, Callable[[bytes], Any]] = {}
        self._map_decoder = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
        self._check_types()

    def _check_types(self) -> None:
        for parameter in self.parameters:
            try:
                check_declared(parameter.annotation)
            except ConfigurationError as error:
                raise ConfigurationError(
                    f"{self.function}: arguments cannot be converted to {parameter.name!r}'s annotation: {error}"
                ) from None
        try:
            check_result(self.result_type)
        except ConfigurationError as error:
            raise ConfigurationError(f"{self.function}: the result's annotation: {error}") from None

    def decode(self, data: bytes) -> tuple[Any, dict[str, Any]]:
        """(positional, keyword) arguments from their msgpack; raises `BadArguments` naming the parameter."""
        try:
            if not data or data[0] & 0xF0 == 0x80 or data[0] in (0xDE, 0xDF):
                return self._decode_named(data)
            count = _array_length(data)
            decode = self._decoders.get(count) or self._positional_decoder(count)
            return decode(data), _NO_NAMED
        except msgspec.ValidationError as error:
            raise BadArguments(self.located(str(error))) from None
        except (msgspec.DecodeError, ValueError, UnicodeDecodeError, RecursionError) as error:
            raise BadArguments(f"{self.function}: the arguments are not valid msgpack: {error}") from None

    def _positional_decoder(self, count: int) -> Callable[[bytes], Any]:
        parameter_types = self.positional_types(count)
        decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(
            types.GenericAlias(tuple, parameter_types), ext_hook=ext_hook, dec_hook=dec_hook
        )
        if len(self._decoders) < _DECODERS_KEPT_MAX:
            self._decoders[count] = decoder.decode
            if count <= _SHORT_ARRAY_MAX:
                self.usual[_SHORT_ARRAY_HEAD + count] = decoder.decode
        return decoder.decode

    def positional_types(self, count: int) -> tuple[Any, ...]:
        """The annotations of `count` positional arguments; `BadArguments` if it does not take that many."""
        positional = [p for p in self.parameters if p.kind in _POSITIONAL]
        missing = [p.name for p in self.parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
        too_many = count > ARGUMENTS_MAX or (count > len(positional) and self.variadic is None)
        if count < self.required or too_many or missing:
            raise BadArguments(f"{self.function} takes {self.describe()}; got {count} positional argument(s)")
        annotations = [p.annotation for p in positional[:count]]
        if self.variadic is not None:
            annotations += [self.variadic.annotation] * (count - len(annotations))
        return tuple(annotations)

    def named_parameters(self, names: Collection[str]) -> dict[str, inspect.Parameter]:
        """The parameter each keyword argument goes to; `BadArguments` for missing and unknown ones."""
        if len(names) > ARGUMENTS_MAX:
            raise BadArguments(f"{self.function}: {len(names)} arguments; at most {ARGUMENTS_MAX} are taken")
        missing = [p.name for p in self._named.values() if p.default is p.empty and p.name not in names]
        unknown = [n for n in names if n not in self._named and (self.rest is None or n == self._context)]
        if missing or unknown:
            what = f"lacks {', '.join(missing)}" if missing else f"also names {shown(', '.join(unknown))}"
            raise BadArguments(f"{self.function} takes {self.describe()}; the request {what}")
        rest = self.rest
        return {name: self._named[name] if rest is None else self._named.get(name, rest) for name in names}

    def _decode_named(self, data: bytes) -> tuple[Any, dict[str, Any]]:
        try:
            raw = self._map_decoder.decode(data)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise BadArguments(f"{self.function}: the arguments are not valid msgpack: {error}") from None
        named: dict[str, Any] = {}
        for name, parameter in self.named_parameters(raw).items():
            try:
                named[name] = msgspec.msgpack.decode(
                    raw[name], type=parameter.annotation, ext_hook=ext_hook, dec_hook=dec_hook
                )
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                raise BadArguments(f"{self.function}: argument {name!r}: {error}") from None
        return self._positional_only(named), named

    def _positional_only(self, named: dict[str, Any]) -> list[Any]:
        """Takes positional-only arguments out of `named`; one left out before one given gets its default."""
        parameters = [p for p in self.parameters if p.kind is p.POSITIONAL_ONLY]
        while parameters and parameters[-1].name not in named:
            parameters.pop()
        return [named.pop(p.name, p.default) for p in parameters]

    def located(self, message: str) -> str:
        """msgspec's message about an array of arguments, with the parameter's name in place of its index."""
        match = _WHERE.search(message)
        if match is None or match.group(1) is None:
            return f"{self.function}: {message}"
        index = int(match.group(1))
        kinds = (*_POSITIONAL, _Parameter.VAR_POSITIONAL)
        positional = [p for p in self.parameters if p.kind in kinds]
        name = positional[min(index, len(positional) - 1)].name
        rest = match.group(2)
        place = f" (in {name}{rest})" if rest else ""
        return f"{self.function}: argument {name!r}: {message[: match.start()]}{place}"

    def describe(self) -> str:
        """The parameters as a person writes them: `(to: str, *, amount: int)`."""
        texts = []
        starred = self.variadic is not None
        for parameter in self.parameters:
            if parameter.kind is parameter.KEYWORD_ONLY and not starred:
                texts.append("*")
                starred = True
            texts.append(str(parameter).replace("typing.", ""))
        return f"({', '.join(texts)})"


def _resolved(function: str, func: Callable[..., Any], name: str, annotation: Any) -> Any:
    if annotation is inspect.Parameter.empty:
        return Any
    if not isinstance(annotation, str):
        return annotation
    # Of a decorated function, the names are those where it was written: not where its decorator was.
    func = inspect.unwrap(func, stop=lambda each: hasattr(each, "__signature__"))
    names = dict(getattr(func, "__globals__", {}))
    code, cells = getattr(func, "__code__", None), getattr(func, "__closure__", None) or ()
    if code is not None:
        names.update(zip(code.co_freevars, (cell.cell_contents for cell in cells), strict=False))
    try:
        return eval(annotation, names)  # noqa: S307 - the app's own annotation, as typing.get_type_hints does
    except Exception as error:  # noqa: BLE001 - evaluating an annotation can raise anything
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
