"""What waits for the checker has a limit, and so has the state that it is given."""

import time

import pytest

from styx.cli.check import feed as feed_module
from styx.cli.check.feed import Feed
from styx.cli.check.messages import Ended, Epoch, State, to_checker
from styx.state.slot_state import IDEMPOTENCY_TABLE, SlotState
from styx.state.table import Table
from styx.worker.slot import Slot


def slot(entities: int) -> Slot:
    accounts, replies = {f"k{n}": b"\x01" for n in range(entities)}, {b"k": b"v"}
    return Slot(0, SlotState({"account": Table(accounts, 0), IDEMPOTENCY_TABLE: Table(replies, 0)}))


def ended(payload: bytes = b"") -> Ended:
    return Ended(1, 0, payload, b"\xc0", None, None)


@pytest.fixture
def feed() -> Feed:
    made = Feed()
    made.give_state([slot(2)], 0)
    return made


def taken(feed: Feed) -> object:
    (data,) = feed.take(0) or [b""]
    feed.checked()
    return to_checker(data)


def test_state_then_epochs(feed: Feed) -> None:
    feed.ended.append(ended())
    feed.close(3, [])
    feed.close(4, [])
    state = taken(feed)
    assert isinstance(state, State)
    assert [(each.operator, each.key) for each in state.entities] == [("account", "k0"), ("account", "k1")]
    epoch = taken(feed)
    assert isinstance(epoch, Epoch)
    assert (epoch.epoch, epoch.ended) == (3, [ended()])
    assert feed.waiting == 0


def test_who_falls_behind_begins_again(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    monkeypatch.setattr(feed_module, "QUEUE_BYTES_MAX", 1000)
    feed.ended.append(ended(b"x" * 1000))
    feed.close(1, [])
    assert not feed.listens
    assert not feed.ready_again
    now_s = 200.0
    assert not feed.ready_again, "the checker has not taken the state yet"
    taken(feed)
    assert feed.ready_again
    feed.give_state([slot(1)], 0)
    assert feed.listens
    assert isinstance(taken(feed), State)


def test_too_many_entities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "ENTITIES_MAX", 3)
    feed = Feed()
    feed.give_state([slot(4)], 0)
    assert (feed.problem, feed.listens, feed.waiting) == ("there are more than 3 entities", False, 0)


def test_too_much_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "STATE_BYTES_MAX", 3)
    feed = Feed()
    feed.give_state([slot(4)], 0)
    assert feed.problem is not None
    assert not feed.ready_again


def test_the_end(feed: Feed) -> None:
    feed.stop()
    assert feed.take() is None
    feed.give_state([slot(1)], 0)
    assert feed.waiting == 0
    feed.wait_until_checked(300)


def test_what_waits_leaves_together_up_to_a_limit(feed: Feed) -> None:
    for number in range(3):
        feed.ended.append(ended(bytes(100)))
        feed.close(number, [])
    first = feed.take(0) or []
    assert [len(first), feed.waiting] == [1, 4]
    size = len(feed._queue[0])
    assert len(feed.take(2 * size) or []) == 2
    assert len(feed.take() or []) == 1
    for _ in range(4):
        feed.checked()
    assert (feed.waiting, feed._bytes) == (0, 0)
