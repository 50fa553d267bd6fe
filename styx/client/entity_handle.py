"""A client's handle of an entity: `client.at(account, "bob").call(credit, 5)`, each call a transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from styx.messages import Reply
from styx.model.entity_handle import positional

if TYPE_CHECKING:
    from styx.client.base import Client
    from styx.client.sync import SyncClient

P = ParamSpec("P")
R = TypeVar("R")


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
