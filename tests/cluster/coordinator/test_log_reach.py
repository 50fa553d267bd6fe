"""A coordinator does not begin on a log that is shorter than its snapshots, and leaves store and log as they are."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from styx.cluster.coordinator.log_reach import beyond
from styx.cluster.coordinator.process import CoordinatorProcess
from styx.cluster.options import CoordinatorOptions, ProcessOptions, cluster_limits
from styx.errors import EngineFailed
from styx.kafka.address import parse_kafka_url
from styx.kafka.topics import existing_topics, topics_of
from styx.protocol.manifest import Manifest, SlotManifest, SlotPart
from styx.snapshot.manifest import manifest_name, write_manifest
from styx.store import MemoryStore
from styx.testing.patience import PATIENCE_SECONDS
from styx.transport import Security
from tests.real_services import RealKafka

TOPICS = topics_of("bank")
N_SLOTS = 2


def snapshot(next_offset: int = 7, epochs_offset: int = 5, replies_offset: int = 3) -> Manifest:
    parts = [SlotPart(slot, next_offset, [], epochs_offset, {1: replies_offset}, None) for slot in range(N_SLOTS)]
    return Manifest(4, 9, 40, [SlotManifest(part, []) for part in parts])


def ends(requests: int = 7, epochs: int = 5, replies: int = 3) -> dict[tuple[str, int], int]:
    return {
        (TOPICS.requests, 0): requests,
        (TOPICS.requests, 1): 8,
        (TOPICS.epochs, 0): epochs,
        (TOPICS.replies, 1): replies,
    }


def test_a_log_may_end_where_the_snapshot_goes_on_or_behind() -> None:
    assert beyond([snapshot()], TOPICS, ends()) is None
    assert beyond([snapshot()], TOPICS, ends(100, 100, 100)) is None
    assert beyond([], TOPICS, {}) is None


@pytest.mark.parametrize(
    ("shorter", "told"),
    [
        (ends(requests=6), "requests, partition 0, ends at offset 6, but the snapshot of epoch 9 goes on at offset 7"),
        (ends(epochs=4), "epochs, partition 0, ends at offset 4, but the snapshot of epoch 9 goes on at offset 5"),
        (ends(replies=2), "replies, partition 1, ends at offset 2, but the snapshot of epoch 9 goes on at offset 3"),
        ({}, "requests, partition 0, is empty, or gone, but the snapshot of epoch 9 goes on at offset 7"),
    ],
)
def test_any_stream_may_be_what_is_short(shorter: dict[tuple[str, int], int], told: str) -> None:
    assert beyond([snapshot()], TOPICS, shorter) == f"styx.bank.{told}"


def test_each_snapshot_counts() -> None:
    assert beyond([snapshot(1, 1, 1), snapshot()], TOPICS, ends(requests=6)) is not None


def test_a_restored_snapshot_fits_a_log_that_is_not_there_yet() -> None:
    assert beyond([snapshot(0, 0, 0)], TOPICS, {}) is None


def coordinator(kafka: RealKafka, app: str, store: MemoryStore) -> CoordinatorProcess:
    options = ProcessOptions(
        name="c",
        security=Security(b"0123456789abcdef", "c"),
        coordinator="",
        log=parse_kafka_url(f"kafka://{kafka.bootstrap}"),
        open_store=lambda: store,
    )
    return CoordinatorProcess(
        options, CoordinatorOptions(app=app, n_slots=N_SLOTS, workers=1, limits=cluster_limits(), reply_partitions=2)
    )


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_store_survives_the_loss_of_its_log(kafka: RealKafka) -> None:
    app, store = f"reach-{secrets.token_hex(4)}", MemoryStore()
    write_manifest(store, snapshot())
    process = coordinator(kafka, app, store)
    for _ in range(2):  # whoever supervises it starts it again
        with pytest.raises(EngineFailed, match="the log does not fit the snapshots"):
            await asyncio.wait_for(process.run(), PATIENCE_SECONDS)
    assert store.list("manifests/") == [manifest_name(4, 9)]
    assert await existing_topics(kafka.bootstrap, topics_of(app)) == [], "a restore asks for a Kafka without them"


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_restored_store_begins_on_a_new_log(kafka: RealKafka) -> None:
    app, store = f"reach-{secrets.token_hex(4)}", MemoryStore()
    write_manifest(store, snapshot(0, 0, 0))
    process = coordinator(kafka, app, store)
    running = asyncio.create_task(process.run())
    async with asyncio.timeout(PATIENCE_SECONDS):
        while process.session is None and not running.done():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.05)
    assert not running.done()
    running.cancel()
    await asyncio.wait([running])
