"""The ingest process: follows the app that the coordinator deploys, and feeds each of its ingests.

Towards the coordinator and Kafka it is what a gateway is. It keeps nothing that a successor needs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from styx.cluster.gateway.process import GatewayProcess
from styx.cluster.ingest.feeds import Feeds, ingests_of
from styx.cluster.ingest.source import KafkaSource
from styx.kafka.address import KafkaAddress
from styx.metrics.exposition import Exposition, counters, gauges
from styx.model.ingest import Ingest
from styx.transport import Security

FOLLOW_SECONDS: Final = 0.5
"""How often it looks whether another version of the app is there."""

_log = logging.getLogger("styx.ingest")


class IngestProcess:
    """`run` feeds until it is cancelled.

    `sources`: the address of the brokers of an ingest's topic, by the ingest's name, and under "" of all others.
    """

    def __init__(
        self, name: str, security: Security, coordinator: str, log: KafkaAddress, sources: Mapping[str, KafkaAddress]
    ) -> None:
        self.engine = GatewayProcess(name, security, coordinator, log, serves=False)
        self.feeds = Feeds(self.engine, self._source)
        self._sources = {"": log, **sources}
        self._version = -1
        self._exposition = Exposition(self._collect, with_process=False)

    async def run(self) -> None:
        """Raises `ConfigurationError` for what no repetition can mend, such as a refused login."""
        following = asyncio.create_task(self.engine.run())
        try:
            while not following.done():
                await self._follow()
                self.feeds.check()
                await asyncio.wait([following], timeout=FOLLOW_SECONDS)
            following.result()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await self.feeds.close()
            await self.engine.close()

    @property
    def unready_reason(self) -> str | None:
        """Why records do not come in now; None if they do, or if the app has no ingests."""
        return self.engine.unavailable_reason or next(
            filter(None, [each.failing for each in self.feeds.by_name.values()]), None
        )

    def metrics(self) -> str:
        """In Prometheus' text format."""
        return self.engine.metrics() + self._exposition.text()

    async def _follow(self) -> None:
        """Begins and ends feeds as the app wants it."""
        engine = self.engine
        if engine.unavailable_reason is not None and not engine.version:
            return
        if engine.version == self._version:
            return
        self._version = engine.version
        wanted = ingests_of(engine.app)
        for name in sorted(self._sources.keys() - wanted.keys() - {""}):
            _log.warning("--from names an ingest %s, and the app has: %s", name, ", ".join(wanted) or "none")
        await self.feeds.follow(engine.app)
        if not wanted:
            _log.warning("the app %s declares no ingest: nothing to read", engine.app.name)

    def _source(self, ingest: Ingest) -> KafkaSource:
        return KafkaSource(self._sources.get(ingest.name, self._sources[""]), ingest.topic)

    def _collect(self) -> Iterator[Metric]:
        feeds = self.feeds.by_name
        counts = {name: each.counts for name, each in feeds.items()}
        lanes = {name: list(each.lanes.values()) for name, each in feeds.items()}
        lag = GaugeMetricFamily(
            "styx_ingest_lag", "Offsets that the topic has and that are not taken yet.", labels=["ingest", "partition"]
        )
        for name, feed in feeds.items():
            for partition, lane in feed.lanes.items():
                lag.add_metric([name, str(partition)], max(0, lane.end - lane.position.next))
        yield lag
        label = "ingest"
        there = {name: float(each.there) for name, each in feeds.items()}
        waiting = {name: float(sum(each.position.waiting for each in lanes[name])) for name in feeds}
        aside = {name: float(sum(each.set_aside for each in lanes[name])) for name in feeds}
        left = {name: float(sum(each.left_out for each in lanes[name])) for name in feeds}
        lost = {name: float(sum(each.position.lost for each in lanes[name])) for name in feeds}
        records = {name: float(each.records) for name, each in counts.items()}
        waits = {name: float(each.waits) for name, each in counts.items()}
        losses = {name: float(each.losses) for name, each in counts.items()}
        yield gauges("styx_ingest_reading", "1 if the topic is there and is read.", label, there)
        yield gauges("styx_ingest_waiting", "Records taken and not handled yet.", label, waiting)
        yield gauges("styx_ingest_set_aside", "Records that could become no call, ever since.", label, aside)
        yield gauges("styx_ingest_left_out", "Records left out by where=, ever since.", label, left)
        yield gauges("styx_ingest_lost", "Offsets that were deleted before they were read, ever since.", label, lost)
        yield counters("styx_ingest_records_total", "Records sent and taken.", label, records)
        yield counters("styx_ingest_waits_total", "Times that a batch waited for room.", label, waits)
        yield counters("styx_ingest_source_losses_total", "Times that the brokers were lost.", label, losses)
