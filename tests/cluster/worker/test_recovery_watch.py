"""What a worker tells of functions that a recovery finds at fault, and that it goes on all the same."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest

from styx import App, Operator
from styx.cluster.worker.counters import Counters
from styx.cluster.worker.node import Node
from styx.cluster.worker.recovery_watch import ReplayWatch, first_lost, tell_lost
from styx.messages import ReplyRecord, Request, encode_reply, encode_request
from styx.protocol.messages import Recover
from styx.reports.function_reports import FunctionReports
from styx.reports.mistakes import read_page
from styx.worker.events import NotResumed, ReplyDiffers

PARTITIONS = 4
REQUEST = encode_request(Request("r", "account", "ada", "draw", b"\x90"))


class FakeNode:
    """The log's replies, and background work that is done at once."""

    def __init__(self, *replies: ReplyRecord, away: bool = False) -> None:
        self.counters = Counters()
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
    assert "the replay of transaction 41 of slot 2 does not wait for the outside call" in caplog.text


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
