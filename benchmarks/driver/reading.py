"""Reads many entities of a running deployment by ordinary requests, as an audit does.

A request that gets no answer, or is refused for overload, is repeated. An entity that then still has no result is
reported as `Unread`, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple, TypeVar

from styx.client.base import Client
from styx.messages import Reply
from styx.model.operator import Operator

T = TypeVar("T")

IN_FLIGHT_MAX: Final = 500
"""Entities that are read at once."""
ATTEMPTS_MAX: Final = 3
"""The number of attempts if there is no answer, or the request is refused for overload."""


class Unread(NamedTuple):
    """The reason for a missing result: the function's error, or no answer."""

    why: str

    def __str__(self) -> str:
        return self.why


async def read_each(
    client: Client, operator: Operator, keys: Iterable[Any], function: Any, *arguments: Any
) -> dict[Any, Any]:
    """The result of `function` for each entity, or `Unread`, by key."""
    found = await read_all(client, operator, [(key, arguments) for key in keys], function)
    return {key: result for (key, _), result in found.items()}


async def read_all(
    client: Client, operator: Operator | str, reads: Iterable[tuple[Any, tuple[Any, ...]]], function: Any
) -> dict[tuple[Any, tuple[Any, ...]], Any]:
    """The result of `function` for each (key, arguments), or `Unread`."""
    return await ask_all(lambda read: client.submit(operator, read[0], function, *read[1]), reads)


async def ask_all(ask: Callable[[T], Awaitable[Reply]], wanted: Iterable[T]) -> dict[T, Any]:
    """The result of `ask` for each of `wanted`, or `Unread`."""
    every = list(wanted)
    found: dict[T, Any] = {}
    for first in range(0, len(every), IN_FLIGHT_MAX):
        left = every[first : first + IN_FLIGHT_MAX]
        for _ in range(ATTEMPTS_MAX):
            answers = await asyncio.gather(*map(ask, left), return_exceptions=True)
            found.update((each, _result(answer)) for each, answer in zip(left, answers, strict=True))
            left = [each for each, answer in zip(left, answers, strict=True) if _worth_repeating(answer)]
            if not left:
                break
    return found


def _result(answer: Reply | BaseException) -> Any:
    if isinstance(answer, Reply):
        return answer.result if answer.error is None else Unread(f"{answer.error.type}: {answer.error.message}")
    if isinstance(answer, TimeoutError | ConnectionError):
        return Unread(f"could not be read: {answer}")
    raise answer


def _worth_repeating(answer: Reply | BaseException) -> bool:
    if isinstance(answer, Reply):
        return answer.error is not None and answer.error.code in ("overloaded", "unavailable")
    return True
