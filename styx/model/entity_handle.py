"""An entity and what a function calls on it: `ctx.at(account, "bob").call(credit, 5)`.

A client says the same of an entity (`styx.client.base`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar, overload

from styx.errors import BadArguments

if TYPE_CHECKING:
    from styx.model.context import Context
    from styx.model.partition_context import PartitionContext

K = TypeVar("K")
S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


class EntityReference(NamedTuple, Generic[K, S]):
    """An entity of an operator, as `account["bob"]` gives it; the entity may have no state."""

    operator: Any
    key: K


def entity_of(operator: Any, key: Any) -> tuple[Any, Any]:
    """The operator and the key that `at` was given: as two arguments, or as one reference."""
    if isinstance(operator, EntityReference):
        return operator.operator, operator.key
    return operator, key


class EntityOfContext:
    """An entity that a function can call, within the function's own transaction."""

    __slots__ = ("_context", "_key", "_operator")

    def __init__(self, context: Context | PartitionContext, operator: Any, key: Any) -> None:
        self._context = context
        self._operator = operator
        self._key = key

    @overload
    def call(
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], *args: P.args, **named: P.kwargs
    ) -> Coroutine[Any, Any, R]: ...

    @overload
    def call(self, function: str, *args: Any) -> Coroutine[Any, Any, Any]: ...

    def call(self, function: Any, *args: Any, **named: Any) -> Coroutine[Any, Any, Any]:
        """As `Context.call`."""
        return self._context.call(self._operator, function, self._key, self._arguments(function, args, named))

    @overload
    def call_async(
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, Any]], *args: P.args, **named: P.kwargs
    ) -> None: ...

    @overload
    def call_async(self, function: str, *args: Any) -> None: ...

    def call_async(self, function: Any, *args: Any, **named: Any) -> None:
        """As `Context.call_async`."""
        self._context.call_async(self._operator, function, self._key, self._arguments(function, args, named))

    def _arguments(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        try:
            return positional(function, args, named)
        except BadArguments as error:
            raise self._context._doomed(error) from None


def positional(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments by position: each one given by name takes the place of its parameter.

    Raises `BadArguments` if the function takes one of them by name only, or does not take it.
    """
    if not named:
        return args
    name = getattr(function, "__name__", function)
    if not callable(function):
        raise BadArguments(f"{name}: arguments can be given by name if the function itself is given, not its name")
    try:
        bound = inspect.signature(function).bind(None, *args, **named)
    except TypeError as error:
        raise BadArguments(f"{name}: {error}") from None
    if bound.kwargs:
        raise BadArguments(f"{name}: {', '.join(bound.kwargs)} can be given by name only, which a call cannot do")
    return bound.args[1:]
