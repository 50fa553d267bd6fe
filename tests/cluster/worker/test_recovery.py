"""A worker's recovery: a load asks the log while it decodes state, and answers the same whichever of the two is slow or
damaged; faults of functions are told of, and the worker goes on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest

from styx import App, Operator
from styx.cluster.worker.metrics import WorkerCounters
from styx.cluster.worker.node import Node
from styx.cluster.worker.recovery import LoadedGeneration, ReplayWatch, first_lost, load, tell_lost
from styx.kafka.reader import KafkaReader
from styx.log.base import Stream
from styx.log.memory import MemoryLog
from styx.messages import ReplyRecord, Request, decode_reply, encode_reply, encode_request
from styx.protocol.manifest import Manifest, SlotManifest
from styx.protocol.messages import Recover
from styx.reports.function_reports import FunctionReports
from styx.reports.mistakes import read_page
from styx.snapshot.part import store_slots
from styx.store import MemoryStore
from styx.testing.patience import PATIENCE_SECONDS
from styx.worker.events import LoadState, NotResumed, ReplyDiffers, SlotContent, StateLoaded, StateUnusable, StoreSlots

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
    parts = store_slots(StoreSlots(1, 0, 0, contents), 0, {0: {}, 1: {}}, {}, store)
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


PARTITIONS = 4
REQUEST = encode_request(Request("r", "account", "ada", "draw", b"\x90"))


class FakeNode:
    """The log's replies, and background work that is done at once."""

    def __init__(self, *replies: ReplyRecord, away: bool = False) -> None:
        self.counters = WorkerCounters()
        self.reports = FunctionReports(lambda seconds, callback: None)
        self.background = self
        self.asked: list[Mapping[int, int]] = []
        self._replies = replies
        self._away = away

    def submit(
        self, what: str, run: Callable[[], Any], ended: Callable[[Any], None], gave_up: Callable[[OSError], None]
    ) -> None:
        if self._away:
            gave_up(OSError("the broker is away"))
        else:
            ended(run())

    def reader(self) -> FakeNode:
        return self

    def replies_of(self, firsts: Mapping[int, int]) -> Iterator[tuple[int, int, int, bytes]]:
        self.asked.append(firsts)
        for offset, reply in enumerate(self._replies):
            if reply.reply_to % PARTITIONS in firsts:
                yield reply.reply_to % PARTITIONS, offset, reply.sequence, encode_reply(reply)


def _differs(node: FakeNode, *replies: ReplyRecord) -> None:
    watch = ReplayWatch(cast(Node, node), Recover(1, {}, None, {}, 1, []), PARTITIONS)
    for reply in replies:
        watch.differs(ReplyDiffers(0, reply, REQUEST))


def _reply(number: int, result: bytes) -> ReplyRecord:
    return ReplyRecord(f"r{number}", number, number, 1, 1, result, reply_to=6)


def test_a_difference_is_named_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    node = FakeNode(_reply(3, b"\x03"), _reply(7, b"\x05"))
    _differs(node, _reply(7, b"\x06"))
    assert node.counters.replay_differences == 1
    assert node.asked == [{2: 0}]
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert (
        "request r7 (account['ada'], function draw) gives 6 but 5 was answered; what was answered stands" in caplog.text
    )
    assert "not deterministic" in caplog.text


def test_other_words_of_an_abort_are_no_error(caplog: pytest.LogCaptureFixture) -> None:
    def abort(words: str) -> ReplyRecord:
        return ReplyRecord("r7", 7, 7, 1, 0, b"", ("aborted", "ValueError", words), 6)

    with caplog.at_level(logging.WARNING):
        _differs(FakeNode(abort("at 0x1")), abort("at 0x2"))
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_without_the_log_it_is_told_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    node = FakeNode(away=True)
    _differs(node, _reply(7, b"\x06"))
    assert "gives 6 but something else was answered" in caplog.text


def test_many_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    node = FakeNode()
    _differs(node, *[_reply(number, b"\x06") for number in range(50)])
    assert node.counters.replay_differences == 50
    assert len(caplog.records) == 10
    assert "further ones of this function are counted only" in caplog.records[-1].getMessage()
    assert node.reports.mistakes.total == 50


def test_what_was_answered_is_not_looked_for_if_it_is_known(caplog: pytest.LogCaptureFixture) -> None:
    node = FakeNode(away=True)
    watch = ReplayWatch(cast(Node, node), Recover(1, {}, None, {}, 1, []), PARTITIONS)
    watch.differs(ReplyDiffers(0, _reply(7, b"\x06"), REQUEST, _reply(7, b"\x05")))
    assert "gives 6 but 5 was answered" in caplog.text
    assert node.asked == []


def test_it_is_among_the_mistakes() -> None:
    node = FakeNode(_reply(7, b"\x05"))
    _differs(node, _reply(7, b"\x06"))
    total, (mistake,) = read_page(node.reports.mistakes.page())
    assert (total, mistake.kind, mistake.where, mistake.replayed) == (1, "difference", "account/ada.draw", True)
    assert "account/ada.draw differs: ReplayDiffers: the replay of request r7" in mistake.text()


def test_an_outside_call_that_is_not_made_now(caplog: pytest.LogCaptureFixture) -> None:
    node = FakeNode()
    watch = ReplayWatch(cast(Node, node), Recover(1, {}, None, {}, 1, []), PARTITIONS)
    for _ in range(20):
        watch.not_resumed(NotResumed(2, 41))
    assert node.counters.replay_differences == node.reports.mistakes.total == 20
    assert len(caplog.records) == 10
    assert "the replay of transaction 41 of slot 2 does not wait for the external call" in caplog.text


def test_entities_that_are_looked_for_elsewhere_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    moved, kept = Operator("moved", partition_key=lambda key: key[::-1]), Operator("kept")
    app = App("bank", [moved, kept])
    keys = [f"k{number}" for number in range(2000)]
    as_stored = Operator("moved", partition_key=lambda key: key)
    slots: dict[int, dict[str, dict[Any, bytes]]] = {
        slot: {"moved": {}, "kept": {}, "gone": {1: b""}} for slot in range(4)
    }
    for key in keys:
        slots[as_stored.slot_of(key, 4)]["moved"][key] = b""
        slots[kept.slot_of(key, 4)]["kept"][key] = b""
    assert [found.operator for found in first_lost(app, slots, 4)] == ["moved"]
    assert tell_lost(app, slots, 4) == 1
    assert "is stored in slot 0 and would be looked for in slot" in caplog.text
    assert tell_lost(App("bank", [as_stored, kept]), slots, 4) == 0
