"""Waits until a deployment serves. It sends a request that workers answer without any state."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from benchmarks.driver.workload import Workload
from styx.client.base import Client
from styx.errors import ConfigurationError

ATTEMPT_SECONDS: Final = 5.0
"""The time limit of one attempt."""
PAUSE_SECONDS: Final = 0.5
"""The pause between two attempts."""
PROBE: Final = "is_anybody_there"
"""A function that no workload has: the answer is an error that says so."""

_NOT_YET: Final = frozenset({"unavailable", "overloaded"})


async def until_serving(
    open_client: Callable[[], AbstractAsyncContextManager[Client]],
    workload: Workload,
    wait_s: float,
    say: Callable[[str], None],
) -> None:
    """Returns as soon as the workload's app answers. `say` gets each reason for waiting once. Raises
    `ConfigurationError` for a malformed URL and for another app, and `TimeoutError` after `wait_s` seconds.
    """
    began_s, told = time.monotonic(), set[str]()
    while (why := await _attempt(open_client(), workload)) is not None:
        if why not in told:
            told.add(why)
            say(f"waiting: {why}")
        if time.monotonic() - began_s > wait_s:
            raise TimeoutError(f"{workload.app.name} was not served within {wait_s:g} s: {why}")
        await asyncio.sleep(PAUSE_SECONDS)


async def _attempt(opening: AbstractAsyncContextManager[Client], workload: Workload) -> str | None:
    """The reason why it does not serve; None if it serves."""
    loading = next(iter(workload.initial()))
    key, _ = next(iter(loading.pairs))
    try:
        async with opening as client:
            reply = await client.request(loading.operator.name, key, PROBE, timeout=ATTEMPT_SECONDS)
    except (ConnectionError, TimeoutError, ConfigurationError) as error:
        # Before the coordinator has made the app's topics, the error is a `ConfigurationError`: no such app.
        return str(error) or type(error).__name__
    code = "" if reply.error is None else reply.error.code
    if code in _NOT_YET:
        return f"{code}: {reply.error.message}" if reply.error is not None else code
    if code != "unknown_function":
        why = "it has a function of that name" if reply.error is None else reply.error.message
        raise ConfigurationError(f"what is served there is not {workload.app_target}: {why}")
    return None
