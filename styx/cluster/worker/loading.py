"""Loading a generation's slots: snapshot, recorded epochs, and which replies stand in the log. Blocks; on threads.

If log or store is out of reach, it raises `OSError`, and the load is tried again; damage is part of the answer. Paper
section 7.2.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from styx.kafka.reader import KafkaReader
from styx.log.base import LogReader, Stream
from styx.sequencer.epoch_record import EPOCHS_PARTITION
from styx.sequencer.external_record import decode_external
from styx.sequencer.tid import slot_of
from styx.set_aside import places as set_aside
from styx.snapshot.load import Behind, Unusable, behind_snapshot, state_of
from styx.snapshot.prefetch import PrefetchingStore
from styx.snapshot.spans import spans
from styx.store.base import Store
from styx.worker.events import LoadState, StateLoaded, StateUnusable
from styx.worker.given_replies import GivenReplies, given_replies


class LoadedGeneration(NamedTuple):
    """The answer to `LoadState`; the ends of the epochs stream and of each replies partition after the fence."""

    answer: StateLoaded | StateUnusable
    epochs_end: int
    reply_ends: list[int]


def load(wanted: LoadState, n_slots: int, reader: KafkaReader, store: Store) -> LoadedGeneration:
    """Answers `LoadState`. Raises `OSError` if log or store are out of reach.

    Reading the log takes as long as decoding the state, so they run in parallel: another thread reads the log.
    """

    def reply_ends() -> list[int]:
        return [end for _, (_, end) in sorted(reader.bounds_of(Stream.REPLIES).items())]

    def behind() -> Behind:
        ends = {slot: end for slot, (_, end) in reader.bounds_of(Stream.REQUESTS).items()}
        return behind_snapshot(wanted, n_slots, reader, ends, scan)

    def scan(wanted: LoadState, _: LogReader) -> GivenReplies:
        replies = reader.replies_of(_reply_starts(wanted, len(reading_ends.result())))
        own = frozenset(wanted.slots)
        return given_replies(
            (record for _, _, _, record in replies), lambda sequence: slot_of(sequence, n_slots) in own
        )

    answer: StateLoaded | StateUnusable
    missing = [slot for slot in wanted.slots if slot not in wanted.held]
    with ThreadPoolExecutor(1, thread_name_prefix="styx-load-log") as beside:
        reading_ends = beside.submit(reply_ends)
        reading = beside.submit(behind)
        reading_rest = beside.submit(lambda: (reader.bounds(Stream.EPOCHS, EPOCHS_PARTITION)[1], _outcomes(reader)))
        try:
            with PrefetchingStore(store, spans(wanted.manifest, missing)) as objects:
                answer = state_of(wanted, objects, reading.result)
        except Unusable as error:
            answer = StateUnusable(wanted.generation, str(error))
        epochs_end, outcomes = reading_rest.result()
        if isinstance(answer, StateLoaded):
            answer.outcomes, answer.aside = outcomes, set_aside.read(store)
        return LoadedGeneration(answer, epochs_end, reading_ends.result())


def _outcomes(reader: KafkaReader) -> dict[bytes, bytes]:
    """Which worker asks for a call is its callee's owner, and may own none of the roots: so all partitions."""
    outcomes: dict[bytes, bytes] = {}
    for slot, (first, end) in reader.bounds_of(Stream.EXTERNALS).items():
        if first == end:
            continue
        for record in reader.read(Stream.EXTERNALS, slot, first):
            external = decode_external(record.payload)
            if external.outcome is not None:
                outcomes.setdefault(external.key, external.outcome)
    return outcomes


def _reply_starts(wanted: LoadState, partitions: int) -> dict[int, int]:
    """Where each replies partition must be read from for this worker's slots."""
    if wanted.manifest is None:
        return dict.fromkeys(range(partitions), 0)
    parts = [slot.part.replies for slot in wanted.manifest.slots if slot.part.slot in wanted.slots]
    return {partition: min((part.get(partition, 0) for part in parts), default=0) for partition in range(partitions)}
