"""Whether log and store belong together: the coordinator refuses a log that has lost its end, or another log.

A snapshot contains the offset at which each stream of the log continues after it. A shorter log would reach that offset
a second time: new requests before it would be skipped, and markers of new generations before it would make the
snapshots void.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from styx.coordinator.events import Started
from styx.errors import EngineFailed
from styx.kafka.address import KafkaAddress
from styx.kafka.offsets import LogEnds
from styx.kafka.topics import Topics, existing_topics
from styx.protocol.manifest import Manifest
from styx.sequencer.epoch_record import EPOCHS_PARTITION

Partition = tuple[str, int]


def positions(manifest: Manifest, topics: Topics) -> Iterator[tuple[Partition, int]]:
    """The offsets that the log went on at behind a snapshot."""
    for slot in manifest.slots:
        part = slot.part
        yield (topics.requests, part.slot), part.next_offset
        yield (topics.epochs, EPOCHS_PARTITION), part.epochs_offset
        for partition, offset in part.replies.items():
            yield (topics.replies, partition), offset


def beyond(manifests: Iterable[Manifest], topics: Topics, ends: Mapping[Partition, int]) -> str | None:
    """What the log lacks, in words; None: it reaches as far as all. Partitions without an end have no record."""
    for manifest in manifests:
        for (topic, partition), offset in positions(manifest, topics):
            end = ends.get((topic, partition), 0)
            if offset > end:
                there = f"ends at offset {end}" if end else "is empty, or gone"
                return (
                    f"{topic}, partition {partition}, {there}, but the snapshot of epoch {manifest.epoch} goes on at "
                    f"offset {offset}"
                )
    return None


def check_begun(started: Started, topics: Topics) -> None:
    """Raises `EngineFailed` if something has run, and neither the log nor the store says any more what it was."""
    if started.generation > 0 and not started.manifests and not started.app_version:
        raise EngineFailed(
            f"the store holds no snapshot, and the log (topics {topics.requests} and others) was released behind one: "
            "this is not the store that the log belongs to, or it was emptied. Nothing was changed. Start with that "
            "store, or restore it from a copy; to begin anew without what it held, delete the app's topics"
        )


async def check_reach(address: KafkaAddress, topics: Topics, manifests: list[Manifest]) -> None:
    """Raises `EngineFailed` if the log lacks what the manifests go on from, and `OSError` if it does not say.

    The manifests must have been read before: a coordinator that is at work meanwhile moves on log and manifests alike.
    """
    if not manifests:
        return
    there = await existing_topics(address, topics)
    wanted = {partition for manifest in manifests for partition, _ in positions(manifest, topics)}
    ends: dict[Partition, int] = {}
    known = [(topic, partition) for topic, partition in wanted if topic in there]
    if known:
        log = LogEnds(address, topics)
        try:
            await log.open()
            ends = await log.ends(known)
        finally:
            await log.close()
    lacking = beyond(manifests, topics, ends)
    if lacking is not None:
        raise EngineFailed(
            f"the log does not fit the snapshots: {lacking}. Kafka has lost records, or it is not the log that this "
            "store belongs to. Nothing was changed. Start with that log; if it is lost for good, styx backup takes the "
            "newest snapshot, and styx restore makes a new store of it, for a Kafka without this app's topics"
        )
