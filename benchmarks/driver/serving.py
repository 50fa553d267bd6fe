"""Waits until a deployment serves: a request that its workers answer, and that touches no state."""

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
"""How long one attempt waits for its reply."""
PAUSE_SECONDS: Final = 0.5
"""Between two attempts."""
PROBE: Final = "is_anybody_there"
"""No workload has such a function: the answer is that there is none."""

_NOT_YET: Final = frozenset({"unavailable", "overloaded"})


async def until_serving(
    open_client: Callable[[], AbstractAsyncContextManager[Client]],
    workload: Workload,
    wait_s: float,
    say: Callable[[str], None],
) -> None:
    """Returns once the workload's app answers; `say` hears what it waits for, each reason once.

    Raises `ConfigurationError` for a URL that is none and for another app, `TimeoutError` after `wait_s` seconds.
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
    """Why it does not serve, None if it does."""
    loading = next(iter(workload.initial()))
    key, _ = next(iter(loading.pairs))
    try:
        async with opening as client:
            reply = await client.request(loading.operator.name, key, PROBE, timeout=ATTEMPT_SECONDS)
    except (ConnectionError, TimeoutError, ConfigurationError) as error:
        # `ConfigurationError`: that there is no such app, as long as the coordinator has not made its topics.
        return str(error) or type(error).__name__
    code = "" if reply.error is None else reply.error.code
    if code in _NOT_YET:
        return f"{code}: {reply.error.message}" if reply.error is not None else code
    if code != "unknown_function":
        why = "it has a function of that name" if reply.error is None else reply.error.message
        raise ConfigurationError(f"what is served there is not {workload.app_target}: {why}")
    return None
