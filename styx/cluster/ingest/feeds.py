"""The feeds of an app's ingests: one for each, begun and ended as the version of the app wants it that runs now.

When a version has other ingests, or another topic for one, feeds begin and end; whatever else a version changes
concerns only the workers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from styx.cluster.ingest.feed import TopicFeed, same_reading
from styx.cluster.ingest.source import Source
from styx.errors import EngineFailed
from styx.gateway.engine import Engine
from styx.model.app import App
from styx.model.ingest import Ingest

_log = logging.getLogger("styx.ingest")


class Feeds:
    """`by_name` has them by the name of their ingest; `make_source` makes a connection to the topic of one."""

    def __init__(self, engine: Engine, make_source: Callable[[Ingest], Source]) -> None:
        self.by_name: dict[str, TopicFeed] = {}
        self._engine = engine
        self._make_source = make_source
        self._running: dict[str, asyncio.Task[None]] = {}

    async def follow(self, app: App) -> None:
        """Feeds the ingests of this version."""
        wanted = ingests_of(app)
        for name, feed in list(self.by_name.items()):
            if name not in wanted or not same_reading(feed.ingest, wanted[name]):
                await self._end(name)
        for name, ingest in wanted.items():
            if name not in self.by_name:
                self._begin(name, ingest)

    def check(self) -> None:
        """Raises what has ended a feed, such as `ConfigurationError` for a login that is refused."""
        for name, running in self._running.items():
            if running.cancelled():
                raise EngineFailed(f"ingest {name} was given up: start this process anew")
            if running.done():
                running.result()

    async def close(self) -> None:
        """Ends all of them."""
        for name in list(self._running):
            await self._end(name)

    def _begin(self, name: str, ingest: Ingest) -> None:
        feed = self.by_name[name] = TopicFeed(self._engine, ingest, lambda: self._make_source(ingest))
        self._running[name] = asyncio.create_task(feed.run(), name=f"styx-ingest-{name}")

    async def _end(self, name: str) -> None:
        running = self._running.pop(name)
        self.by_name.pop(name, None)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def ingests_of(app: App) -> dict[str, Ingest]:
    """The app's ingests by name."""
    return {each.name: each for each in app.operators.values() if isinstance(each, Ingest)}
