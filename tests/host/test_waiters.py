"""Who waits for which reply: bounds, timeouts, and what is forgotten."""

import asyncio
import math
from typing import Any

import msgspec
import pytest
from msgspec import structs

from styx.errors import RequestRejected, StyxError
from styx.host import waiters as waiters_module
from styx.host.waiters import Waiter, Waiters
from styx.messages import Reply, ReplyRecord
from tests.client.kafka.fake_session import future_of

pytestmark = pytest.mark.anyio


def add(waiters: Waiters[bytes], name: str, *, raw: bool = True, timeout: float = 1e9, size: int = 1) -> Waiter[bytes]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    waiter = Waiter(name.encode(), 0, bytes(size), future, raw, False, loop.time(), loop.time() + timeout)
    waiters.check(waiter.key)
    waiters.add(waiter)
    return waiter


def refused(waiters: Waiters[bytes], name: str) -> None:
    with pytest.raises(RequestRejected, match=r"overloaded: [23] requests are in flight"):
        add(waiters, name)


@pytest.fixture
async def three() -> Waiters[bytes]:
    return Waiters[bytes](asyncio.get_running_loop(), 3, lambda: TimeoutError("late"))


def reply(name: str, result: bytes = msgspec.msgpack.encode(7)) -> ReplyRecord:
    return ReplyRecord(name, 5, 5, 2, 1, result)


async def test_replies(three: Waiters[bytes]) -> None:
    raw, public, odd = add(three, "raw"), add(three, "public", raw=False), add(three, "odd", raw=False)
    refused(three, "another")
    three.answer(raw, reply("raw"))
    three.answer(public, reply("public"))
    three.answer(odd, reply("odd", b"\xc1"))
    assert await future_of(raw) == reply("raw")
    assert await future_of(public) == Reply(7, None, 5, 2, 1, "public")
    with pytest.raises(StyxError, match="the request committed, but its result cannot be read"):
        await future_of(odd)
    assert not three.by_id


class Listener:
    """A receiver that is no future; `submit` is called with each reply."""

    def __init__(self, submit: Any) -> None:
        self.heard: list[Any] = []
        self._submit = submit

    def done(self) -> bool:
        return bool(self.heard)

    def set_result(self, result: Any, /) -> None:
        self.heard.append(result)
        self._submit()

    def set_exception(self, exception: BaseException, /) -> None:
        self.heard.append(str(exception))


async def test_a_receiver_that_is_no_future_hears_at_once_and_may_send_on(three: Waiters[bytes]) -> None:
    listener = Listener(lambda: add(three, "next"))
    first = structs.replace(add(three, "first", raw=False), receiver=listener)
    three.answer(first, reply("first"))
    assert listener.heard == [Reply(7, None, 5, 2, 1, "first")]
    assert list(three.by_id) == [b"next"]
    unheard = Listener(None)
    three.by_id[b"next"].receiver = unheard
    three.end(lambda: ConnectionError("closed"))
    assert unheard.heard == ["closed"]
    assert not three.by_id


async def test_an_id_is_under_way_once(three: Waiters[bytes]) -> None:
    add(three, "once")
    with pytest.raises(RequestRejected, match=r"bad_request: request id 'once' is under way already"):
        add(three, "once")


async def test_bytes_are_bounded_too(three: Waiters[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiters_module, "IN_FLIGHT_BYTES_MAX", 10)
    add(three, "small", size=9)
    large = add(three, "large", size=99)
    refused(three, "another")
    three.answer(large, reply("large"))
    add(three, "another")


async def test_the_late_and_the_cancelled_are_forgotten(three: Waiters[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiters_module, "SWEEP_SECONDS_MAX", 0.001)
    monkeypatch.setattr(waiters_module, "TIMEOUT_RESOLUTION_SECONDS", 0.001)
    patient, late, cancelled = add(three, "patient"), add(three, "late", timeout=0.002), add(three, "cancelled")
    future_of(cancelled).cancel()
    with pytest.raises(TimeoutError, match="late"):
        await future_of(late)
    while len(three.by_id) > 1:  # noqa: ASYNC110 - nobody announces it
        await asyncio.sleep(0.001)
    assert three.by_id == {b"patient": patient}
    three.end(lambda: ConnectionError("closed"))
    with pytest.raises(ConnectionError, match="closed"):
        await future_of(patient)


async def test_a_reply_to_the_cancelled_is_no_error(three: Waiters[bytes]) -> None:
    cancelled = add(three, "cancelled", raw=False)
    future_of(cancelled).cancel()
    three.answer(cancelled, reply("cancelled"))
    assert not three.by_id


async def test_an_engine_forgets_none_until_it_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in its log runs, whoever has gone: it has its place until then, and only deadlines cost time."""
    engine = Waiters[str](asyncio.get_running_loop(), 2, lambda: TimeoutError("late"), forgets=False)
    late, gone = (asyncio.get_running_loop().create_future() for _ in range(2))
    engine.add(Waiter("gone", 0, b"", gone, True, False, 0.0, math.inf))
    assert engine._timer is None
    engine.add(Waiter("late", 0, b"", late, True, False, 0.0, 0.0))
    gone.cancel()
    engine._sweep()
    with pytest.raises(TimeoutError, match="late"):
        await late
    assert (list(engine.by_id), engine.full, engine._timer) == (["gone", "late"], True, None)
    with pytest.raises(RequestRejected, match="overloaded: 2 requests are in flight"):
        engine.check("another")
    with pytest.raises(RequestRejected, match="request id 'gone' is under way"):
        engine.check("gone")
    for name in ("gone", "late"):
        engine.answer(engine.by_id[name], reply(name))
    with pytest.raises(RequestRejected, match="overloaded"):
        engine.check("another", crowded=True)
    engine.check("another")


async def test_those_that_are_queued_leave_in_the_order_they_came_at_the_same_cost_however_many_there_were() -> None:
    queue = Waiters[bytes](asyncio.get_running_loop(), 1_000_000, lambda: TimeoutError("late"), queued=True)
    names = [str(number) for number in range(2_000)]
    for name in names:
        add(queue, name)
    assert [queue.pop_oldest().key.decode() for _ in names] == names
    assert not queue.by_id
    add(queue, "last", size=5)
    assert queue.pop_oldest().key == b"last"
    assert not queue.full


async def test_only_a_queue_says_which_is_its_oldest(three: Waiters[bytes]) -> None:
    add(three, "one")
    with pytest.raises(AssertionError, match="a plain dictionary looks at all"):
        three.pop_oldest()


async def test_a_bound_is_within_the_limit_and_may_be_lifted(three: Waiters[bytes]) -> None:
    three.bound(2.5)
    for name in ("one", "two", "three"):
        add(three, name)
    assert three.full
    refused(three, "four")
    three.bound(math.inf)
    refused(three, "four")
    three.remove(three.by_id[b"one"])
    add(three, "four")
