"""Replicas in this process: moments of a data directory, and services over them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from styx.model.app import App
from styx.query.schema import Schema, of_app, of_description
from styx.query.service import Asked, Limits
from styx.query.source import place_of_directory
from styx.replica.arrow_rows import ArrowRows
from styx.replica.follower import Follower, Moment
from styx.replica.service import Places, ReplicaService
from styx.schema.description import AppDescription

SMALL = Limits(memory_mib=200, seconds=20.0, rows=1_000)
LARGE = 2**40
TWO = Places(2, 4)


def follower_of(directory: Path, app: App | None = None) -> Follower:
    """Of an embedded engine's data directory, with the types of `app`, or none."""

    def schema_of(description: AppDescription) -> Schema:
        return of_description(description) if app is None else of_app(app)

    return Follower(lambda: place_of_directory(directory), schema_of, LARGE)


def moment_of(directory: Path, app: App | None = None) -> Moment:
    """Its newest moment."""
    follower = follower_of(directory, app)
    assert follower.look(), follower.trouble
    assert follower.moment is not None
    return follower.moment


@asynccontextmanager
async def service_over(
    now: Callable[[], Moment], places: Places = TWO, rows: ArrowRows | None = None
) -> AsyncIterator[ReplicaService]:
    """A service, open."""
    service = ReplicaService(now, rows or ArrowRows(LARGE, 10_000), places)
    await service.open()
    try:
        yield service
    finally:
        await service.close()


async def asked(
    service: ReplicaService, sql: str, limits: Limits = SMALL, parameters: tuple[Any, ...] = ()
) -> list[dict[str, Any]]:
    """The rows of a query's result."""
    async with service.run(Asked(sql, parameters), limits) as answer:
        batches = [batch async for batch in answer.batches]
        found: list[dict[str, Any]] = pa.Table.from_batches(batches, answer.schema).to_pylist()
        return found


def until(condition: Callable[[], bool]) -> asyncio.Task[None]:
    """Waits until something is so."""

    async def wait() -> None:
        while not condition():  # noqa: ASYNC110 - a test has no event for it
            await asyncio.sleep(0.005)

    return asyncio.ensure_future(asyncio.wait_for(wait(), 60))
