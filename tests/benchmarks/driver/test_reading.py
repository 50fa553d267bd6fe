"""Every entity is read, more than are asked at once too, and what cannot be read is told."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from typing import Any

import pytest

import styx
from benchmarks.driver.reading import ATTEMPTS_MAX, IN_FLIGHT_MAX, Unread, read_each
from styx import App, Context, Operator
from styx.client.embedded import EmbeddedClient
from styx.messages import Reply, ReplyError

square = Operator("square", key_type=int)


@square.register
async def plus(ctx: Context, more: int) -> int:
    if ctx.key == -1:
        raise ValueError("below 0")
    assert isinstance(ctx.key, int)
    return ctx.key**2 + more


class Client(EmbeddedClient):
    """Answers no read of key 2, rejects the first one of key 3, and breaks at key 4."""

    def __init__(self) -> None:
        super().__init__(styx.embedded(App("squares", [square])).engine)
        self.asked: Counter[int] = Counter()

    def submit(self, operator: Any, key: Any, function: Any, *args: Any, **options: Any) -> Awaitable[Reply]:
        self.asked[key] += 1
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        if key == 2:
            future.set_exception(TimeoutError("no reply"))
        elif key == 4:
            future.set_exception(AssertionError("broken"))
        elif (key, self.asked[key]) == (3, 1):
            future.set_result(Reply(None, ReplyError("RequestRejected", "full", "overloaded"), 0, 0, 0, "r"))
        else:
            return super().submit(operator, key, function, *args, **options)
        return future


def read(*keys: int) -> tuple[dict[int, Any], Counter[int]]:
    async def run() -> tuple[dict[int, Any], Counter[int]]:
        async with Client() as client:
            return await read_each(client, square, keys, plus, 1), client.asked

    return asyncio.run(run())


def test_more_than_are_asked_at_once_are_read() -> None:
    keys = range(10, 11 + IN_FLIGHT_MAX)
    assert read(*keys)[0] == {key: key * key + 1 for key in keys}


def test_a_read_is_repeated_only_if_that_can_help() -> None:
    found, asked = read(-1, 1, 2, 3)
    assert found == {-1: Unread("ValueError: below 0"), 1: 2, 2: Unread("could not be read: no reply"), 3: 10}
    assert asked == {-1: 1, 1: 1, 2: ATTEMPTS_MAX, 3: 2}


def test_what_no_deployment_does_is_not_taken_for_an_answer() -> None:
    with pytest.raises(AssertionError, match="broken"):
        read(4)
