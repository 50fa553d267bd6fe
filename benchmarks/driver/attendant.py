"""An attendant: what a workload does in the driver's own process while its deployment is under load, such as watching
for what comes after the replies. Most workloads have none.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, runtime_checkable

from benchmarks.driver.result import Result
from styx.client.base import Client


class Attendant(Protocol):
    """Of one run, search or sweep."""

    async def watch(self, client: Client) -> None:
        """Begins before the first request, and is cancelled at the end."""

    async def settle(self, witnesses: list[Any]) -> None:
        """Called when all requests have ended, with the clients' witnesses. It may wait for what comes later."""

    def witness(self) -> Any:
        """What it has seen, for the audit: one more witness behind those of the clients."""


@runtime_checkable
class Attended(Protocol):
    """A `Workload` that is attended, and has lines of its own to say about a run."""

    def attendant(self) -> Attendant:
        """A new one."""

    def notes(self, result: Result, witnesses: list[Any]) -> list[str]:
        """For the summary, of a run's witnesses, the attendant's included."""


class Watching:
    """An attendant at work; nobody at work if there is none."""

    def __init__(self, attendant: Attendant | None, watch: asyncio.Task[None] | None) -> None:
        self._attendant = attendant
        self._watch = watch

    async def whole(self, witnesses: list[Any]) -> list[Any]:
        """These witnesses of all clients, and the attendant's, when all has settled. Raises what watching raised."""
        if self._attendant is None:
            return witnesses
        settling = asyncio.ensure_future(self._attendant.settle(witnesses))
        assert self._watch is not None
        try:
            await asyncio.wait([settling, self._watch], return_when=asyncio.FIRST_COMPLETED)
            if not settling.done():
                self._watch.result()  # why it has ended
            await settling
        finally:
            settling.cancel()
        return [*witnesses, self._attendant.witness()]


@asynccontextmanager
async def attended(workload: object, open_client: AbstractAsyncContextManager[Client]) -> AsyncIterator[Watching]:
    """Lets the workload's attendant watch, if it has one."""
    if not isinstance(workload, Attended):
        yield Watching(None, None)
        return
    attendant = workload.attendant()
    async with open_client as client:
        watch = asyncio.create_task(attendant.watch(client))
        try:
            yield Watching(attendant, watch)
        finally:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch
