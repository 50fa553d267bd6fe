"""A load asks the log while it decodes state, and answers the same whichever of the two is slow or damaged."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from styx.cluster.worker.loading import LoadedGeneration, load
from styx.kafka.reader import KafkaReader
from styx.log.base import Stream
from styx.log.memory import MemoryLog
from styx.messages import decode_reply
from styx.protocol.manifest import Manifest, SlotManifest
from styx.snapshot.part import store_slots
from styx.store import MemoryStore
from styx.testing.patience import PATIENCE_SECONDS
from styx.worker.events import LoadState, SlotContent, StateLoaded, StateUnusable, StoreSlots

WAIT_SECONDS = PATIENCE_SECONDS


class Reader:
    """A log in memory, with the questions that only Kafka's reader answers. `asked` is set by the last of them."""

    def __init__(self, log: MemoryLog, slots: int) -> None:
        self.log = log
        self.asked = threading.Event()
        self._slots = slots

    def bounds(self, stream: Stream, partition: int) -> tuple[int, int]:
        return self.log.bounds(stream, partition)

    def bounds_of(self, stream: Stream) -> dict[int, tuple[int, int]]:
        if stream is Stream.EXTERNALS:
            self.asked.set()
        return {slot: self.log.bounds(stream, slot) for slot in range(self._slots)}

    def read(self, stream: Stream, partition: int, first: int) -> Iterator[Any]:
        return self.log.read(stream, partition, first)

    def replies_of(self, firsts: Mapping[int, int]) -> Iterator[tuple[int, int, int, bytes]]:
        for partition, first in firsts.items():
            for record in self.log.read(Stream.REPLIES, partition, first):
                yield partition, record.offset, decode_reply(record.payload).sequence, record.payload


class Store(MemoryStore):
    """Gives an object only once the log was asked everything."""

    def __init__(self) -> None:
        super().__init__()
        self.reader: Reader | None = None

    def get_range(self, name: str, start: int, size: int) -> bytes:
        assert self.reader is None or self.reader.asked.wait(WAIT_SECONDS), "the log is read behind the state"
        return super().get_range(name, start, size)


@pytest.fixture
def stored() -> tuple[LoadState, Reader, Store]:
    """Two slots with an entity each, of which the worker wants slot 1, and nothing behind the snapshot."""
    store, log = Store(), MemoryLog()
    log.append(Stream.REQUESTS, 1, 0, b"request")
    log.flush()
    contents = [SlotContent(slot, {"entity": {f"a{slot}": b"\x05"}}, False, slot, []) for slot in (0, 1)]
    parts = store_slots(StoreSlots(1, 0, 0, contents), 0, {0: {}, 1: {}}, store)
    manifest = Manifest(1, 0, 1, [SlotManifest(part, [part.stored] if part.stored else []) for part in parts])
    return LoadState(2, [1], manifest), Reader(log, 2), store


def loaded(wanted: LoadState, reader: Reader, store: Store) -> LoadedGeneration:
    return load(wanted, 2, cast(KafkaReader, reader), store)


def test_the_log_is_asked_while_state_is_on_its_way(stored: tuple[LoadState, Reader, Store]) -> None:
    wanted, reader, store = stored
    store.reader = reader
    found = loaded(wanted, reader, store)
    assert isinstance(found.answer, StateLoaded)
    assert {slot: part.state.at(0) for slot, part in found.answer.slots.items()} == {1: {"entity": {"a1": b"\x05"}}}
    assert (found.answer.plans, found.reply_ends, found.answer.outcomes) == ([], [0, 0], {})


def test_what_is_damaged_is_an_answer(stored: tuple[LoadState, Reader, Store]) -> None:
    wanted, reader, store = stored
    reader.log = MemoryLog()  # the request that the snapshot knows of is gone
    found = loaded(wanted, reader, store)
    assert isinstance(found.answer, StateUnusable)
    assert "acknowledged requests are missing" in found.answer.reason
    for name in store.list(""):
        store.delete(name)
    found = loaded(wanted, reader, store)
    assert isinstance(found.answer, StateUnusable)
    assert "is missing from the store" in found.answer.reason


def test_what_is_out_of_reach_is_raised(
    stored: tuple[LoadState, Reader, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, reader, store = stored

    def away(*_: object) -> Any:
        raise ConnectionError("away")

    for owner, question in ((store, "get_range"), (reader, "read"), (reader, "bounds"), (reader, "bounds_of")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, question, away)
            with pytest.raises(ConnectionError):
                loaded(wanted, reader, store)
