"""An entity and what is called on it, in the same words for contexts and clients: `at(account, "bob").call(credit, 5)`.

A handle holds an operator, a key and who calls; it decides nothing and reads nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar, overload

from styx.errors import BadArguments

if TYPE_CHECKING:
    from styx.client.base import Client
    from styx.client.sync import SyncClient
    from styx.messages import Reply
    from styx.model.context import Context

K = TypeVar("K")
S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


class EntityReference(NamedTuple, Generic[K, S]):
    """An entity of an operator, as `account["bob"]`; nobody has looked whether it exists."""

    operator: Any
    key: K


def entity_of(operator: Any, key: Any) -> tuple[Any, Any]:
    """The operator and the key of what `at` was given: both, or a reference."""
    if isinstance(operator, EntityReference):
        return operator.operator, operator.key
    return operator, key


class EntityOfContext:
    """An entity that a function calls: in its own transaction."""

    __slots__ = ("_context", "_key", "_operator")

    def __init__(self, context: Context, operator: Any, key: Any) -> None:
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


class EntityOfClient:
    """An entity that a client calls: each call is a transaction."""

    __slots__ = ("_client", "_key", "_operator", "_options")

    def __init__(self, client: Client, operator: Any, key: Any, options: dict[str, Any]) -> None:
        self._client = client
        self._operator = operator
        self._key = key
        self._options = options

    @overload
    def call(
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], *args: P.args, **named: P.kwargs
    ) -> Coroutine[Any, Any, R]: ...

    @overload
    def call(self, function: str, *args: Any) -> Coroutine[Any, Any, Any]: ...

    def call(self, function: Any, *args: Any, **named: Any) -> Coroutine[Any, Any, Any]:
        """As `Client.call`, with the options that `at` was given."""
        given = positional(function, args, named)
        called: Coroutine[Any, Any, Any] = self._client.call(
            self._operator, self._key, function, *given, **self._options
        )
        return called

    @overload
    def request(
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, Any]], *args: P.args, **named: P.kwargs
    ) -> Awaitable[Reply]: ...

    @overload
    def request(self, function: str, *args: Any) -> Awaitable[Reply]: ...

    def request(self, function: Any, *args: Any, **named: Any) -> Awaitable[Reply]:
        """As `Client.request`."""
        given = positional(function, args, named)
        return self._client.request(self._operator, self._key, function, *given, **self._options)


class EntityOfSyncClient:
    """An entity that a blocking client calls."""

    __slots__ = ("_client", "_key", "_operator", "_options")

    def __init__(self, client: SyncClient[Any], operator: Any, key: Any, options: dict[str, Any]) -> None:
        self._client = client
        self._operator = operator
        self._key = key
        self._options = options

    @overload
    def call(
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], *args: P.args, **named: P.kwargs
    ) -> R: ...

    @overload
    def call(self, function: str, *args: Any) -> Any: ...

    def call(self, function: Any, *args: Any, **named: Any) -> Any:
        """As `SyncClient.call`."""
        return self._client.call(
            self._operator, self._key, function, *positional(function, args, named), **self._options
        )


def positional(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments by position: those given by name are put where the function has them.

    Raises `BadArguments` if one has no position there.
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
