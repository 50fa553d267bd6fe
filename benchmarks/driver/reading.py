"""Reads many entities of a running deployment by ordinary requests, as an audit does. Never writes; judges no result.

A request that got no answer, or for which there was no room, is repeated; what is then still without a result is told
as `Unread`, in words for people.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from styx.client.base import Client
from styx.messages import Reply
from styx.model.operator import Operator

IN_FLIGHT_MAX: Final = 500
"""Entities that are asked at once."""
ATTEMPTS_MAX: Final = 3
"""How often an entity is asked if there is no answer, or no room for the request."""


class Unread(NamedTuple):
    """Why there is no result: the error that the function raised, or that there was no answer."""

    why: str

    def __str__(self) -> str:
        return self.why


async def read_each(
    client: Client, operator: Operator, keys: Iterable[Any], function: Any, *arguments: Any
) -> dict[Any, Any]:
    """What `function` says of each entity, by key: its result, or `Unread`."""
    wanted = list(keys)
    found: dict[Any, Any] = {}
    for first in range(0, len(wanted), IN_FLIGHT_MAX):
        left = wanted[first : first + IN_FLIGHT_MAX]
        for _ in range(ATTEMPTS_MAX):
            answers = await asyncio.gather(
                *(client.submit(operator, key, function, *arguments) for key in left), return_exceptions=True
            )
            found.update((key, _result(answer)) for key, answer in zip(left, answers, strict=True))
            left = [key for key, answer in zip(left, answers, strict=True) if _worth_repeating(answer)]
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
