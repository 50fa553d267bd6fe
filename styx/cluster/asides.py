"""Setting a request of a cluster aside: checked against the cluster's log and store, by a process that can reach both.

Blocks; for a thread. It takes effect with the next generation.
"""

from __future__ import annotations

from styx.deployment.claim import read_claim
from styx.errors import ConfigurationError
from styx.kafka.address import KafkaAddress
from styx.kafka.reader import KafkaReader
from styx.kafka.topics import topics_of
from styx.log.base import Stream
from styx.set_aside import examine, listing, outcome, place_of, read, set_aside
from styx.store.base import Store


def put_aside(text: str, log: KafkaAddress, store: Store, dry_run: bool) -> str:
    """Sets the request at SLOT:OFFSET aside, unless `dry_run`; says what it is and that it is, or could be. Without a
    place, lists all requests that were set aside.

    Raises `ConfigurationError` that says why it cannot be, `EngineFailed` and `OSError`.
    """
    if not text:
        return listing(read(store))
    place = place_of(text)
    claim = read_claim(store)
    if claim is None:
        raise ConfigurationError("no cluster has this store: give the one that its coordinator was started with")
    reader = KafkaReader(log, topics_of(claim.app))
    try:
        starts = {partition: first for partition, (first, _) in reader.bounds_of(Stream.REPLIES).items()}
        replies = (record for *_, record in reader.replies_of(starts))
        words = examine(place, claim.n_slots, reader, replies, store)
    finally:
        reader.close()
    if not dry_run:
        set_aside(store, place)
    return outcome(place, words, dry_run)
