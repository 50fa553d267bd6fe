"""`migrate=` of an operator or a table: the function that makes a state or a row of one that an earlier version stored.

It only checks the function and says how its argument is decoded. It never calls it.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any, Final

from styx.errors import ConfigurationError
from styx.values.codec import TypedState, decode_plain, shown

POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
"""Kinds of a parameter that can take a function's first argument."""
_MIGRATE_ADVICE: Final = "write `def migrate(old): return …`, which gets the stored value and returns the new one"


class Migration:
    """`migrate=`: a function from the state or row that an earlier version stored to the one of the present code.

    Its argument is decoded by its parameter's annotation, without one (or with Any) as plain data.
    `styx.schema.state_reading` decides for which entities or rows it is called. `declared`: as messages name its owner.

    `annotations` are the function's, resolved. Raises `ConfigurationError` for what could only fail later.
    """

    __slots__ = ("annotations", "decode", "function")

    def __init__(self, declared: str, function: Callable[[Any], Any]) -> None:
        what = f"{declared}: migrate={shown(getattr(function, '__name__', function))}"
        if not callable(function) or inspect.isclass(function):
            raise ConfigurationError(f"{what} is not a function: {_MIGRATE_ADVICE}")
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise ConfigurationError(f"{what} must be a plain function, which calls nobody and waits for nothing")
        parameter = _only_parameter(what, function)
        self.function = function
        self.annotations = _resolved(what, function)
        self.decode: Callable[[bytes], Any] = decode_plain
        old_type = self.annotations.get(parameter, Any)
        if old_type is not Any and old_type is not object:
            try:
                self.decode = TypedState(old_type).decode
            except Exception as error:  # noqa: BLE001 - whatever msgspec says is the declaration's fault
                raise ConfigurationError(f"{what} takes {shown(old_type)}: {error}") from None


def _only_parameter(what: str, function: Callable[[Any], Any]) -> str:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise ConfigurationError(f"{what} has no signature: {_MIGRATE_ADVICE}") from None
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not parameters or parameters[0].kind not in POSITIONAL or required[1:]:
        raise ConfigurationError(f"{what} must take one argument: {_MIGRATE_ADVICE}")
    return parameters[0].name


def _resolved(what: str, function: Callable[[Any], Any]) -> dict[str, Any]:
    if not getattr(function, "__annotations__", None):
        return {}
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:  # noqa: BLE001 - evaluating an annotation can raise anything
        raise ConfigurationError(
            f"{what}: its annotations cannot be resolved: {error}. Define the types above it, in the module"
        ) from None
