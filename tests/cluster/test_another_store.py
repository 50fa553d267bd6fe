"""A log whose store is lost, or another store that is given by mistake: a start refuses, and waits for nobody."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from pathlib import Path

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.faults import APP
from styx.kafka.address import KafkaAddress
from styx.kafka.offsets import LogEnds
from styx.sequencer.epoch_record import EPOCHS_PARTITION
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("released", "why"), [(False, "the store lacks version 1 of the app"), (True, "the store holds no snapshot")]
)
def test_an_empty_store_beside_a_log_that_is_not_is_refused(
    kafka: RealKafka, tmp_path: Path, released: bool, why: str
) -> None:
    options = ClusterOptions(
        app=APP,
        name=f"stores-{secrets.token_hex(4)}",
        kafka=kafka.bootstrap,
        store=(tmp_path / "first").as_uri(),
        directory=tmp_path / "one",
        workers=1,
    )

    async def run() -> None:
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            async with cluster.client() as client:
                await client.call("account", "alice", "credit", 100)
            topics = cluster.topics
        if released:
            log = LogEnds(KafkaAddress(kafka.bootstrap), topics)
            await log.open()
            try:
                ends = await log.ends([(topics.epochs, EPOCHS_PARTITION)])
                await log.release({partition: end - 1 for partition, end in ends.items()})
            finally:
                await log.close()
        second = replace(options, store=(tmp_path / "second").as_uri(), directory=tmp_path / "two")
        async with ClusterUnderTest(second) as cluster:
            await cluster.start_coordinator()
            await cluster.start_worker(0)
            coordinator = cluster.coordinator
            assert coordinator is not None
            while coordinator.alive:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            assert why in coordinator.log.read_text()

    asyncio.run(run())
