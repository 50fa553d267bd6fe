"""The appender against a broker that does as it is told: what is repeated, what fails, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from styx.kafka.appender import Appender
from styx.kafka.appends import RECORD_BYTES_MAX, size_of
from styx.kafka.errors import AppendFailed, Fenced, RecordTooLarge
from styx.log.base import LogClosed, LogOverloaded
from tests.kafka.blocking import record, records
from tests.kafka.fake_session import BROKEN, SILENT, FakeSession

pytestmark = pytest.mark.anyio

NOT_LEADER, OUT_OF_ORDER, DUPLICATE_SEQUENCE, INVALID_EPOCH = 6, 45, 46, 47

Start = Callable[[FakeSession], Awaitable[Appender]]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, failures: list[BaseException]) -> Start:
    monkeypatch.setattr("styx.kafka.producer.RETRY_SECONDS", 0.0)
    monkeypatch.setattr("styx.kafka.appender.WATCH_SECONDS", 0.001)

    async def start(session: FakeSession) -> Appender:
        monkeypatch.setattr("styx.kafka.appender.KafkaSession", lambda address: session)
        appender = Appender("nowhere:1", on_failure=failures.append)
        await appender.start()
        return appender

    return start


async def test_futures_give_the_offset_behind_their_last_record(start: Start) -> None:
    appender = await start(FakeSession())
    futures = [appender.append("t", 0, records(range(n))) for n in (1, 3, 2)]
    assert await asyncio.gather(*futures) == [1, 4, 6]
    assert appender.queued_bytes == 0
    await appender.stop()


async def test_what_is_queued_in_one_pass_leaves_as_one_request(start: Start) -> None:
    session = FakeSession()
    appender = await start(session)
    await asyncio.gather(*(appender.append("t", partition, [record(0)]) for partition in (0, 1, 0, 1, 0)))
    assert [[(topic, partition) for topic, partition, _ in sent] for sent in session.requests] == [[("t", 0), ("t", 1)]]
    await appender.stop()


@pytest.mark.parametrize("trouble", [BROKEN, NOT_LEADER])
async def test_a_batch_is_repeated_as_the_same_bytes_before_anything_newer(start: Start, trouble: int) -> None:
    session = FakeSession(trouble, trouble)
    appender = await start(session)
    first = appender.append("t", 0, [record(1)])
    while not session.requests:  # noqa: ASYNC110 - the session only notes what it is sent
        await asyncio.sleep(0)
    second = appender.append("t", 0, [record(2)])
    assert [await first, await second] == [1, 2]
    sent = [batch for request in session.requests for _, _, batch in request]
    assert sent[0] == sent[1] == sent[2] != sent[3]
    assert len(sent) == 4
    await appender.stop()


async def test_each_trouble_is_told_once_until_appends_succeed_again(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "styx.kafka.producer")
    session = FakeSession(BROKEN, NOT_LEADER, BROKEN, NOT_LEADER, BROKEN)
    appender = await start(session)
    await appender.append("t", 0, [record(1)])
    assert sorted(caplog.messages) == [
        "Kafka at nowhere:1, t, partition 0: NotLeaderForPartitionError (error 6); appends are repeated",
        "the connection broke; appends are repeated",
    ]
    session.codes.append(BROKEN)
    await appender.append("t", 0, [record(2)])
    assert len(caplog.messages) == 3
    await appender.stop()


@pytest.mark.parametrize(
    ("code", "kind"), [(INVALID_EPOCH, Fenced), (OUT_OF_ORDER, AppendFailed), (DUPLICATE_SEQUENCE, AppendFailed)]
)
async def test_a_refused_batch_ends_the_appender_for_good(
    start: Start, failures: list[BaseException], code: int, kind: type[BaseException]
) -> None:
    session = FakeSession(code)
    appender = await start(session)
    ended: list[int] = []
    futures = [appender.append("t", 0, [record(number)]) for number in range(3)]
    for future in futures:
        future.add_done_callback(lambda done: ended.append(futures.index(done)))
    await asyncio.wait(futures)
    late = appender.append("t", 1, [record(9)])
    await asyncio.wait([late])
    assert ended == [0, 1, 2]
    assert [type(future.exception()) for future in [*futures, late]] == [kind] * 4
    assert [type(failure) for failure in failures] == [kind]
    assert len(session.requests) == 1
    await appender.stop()
    assert session.closed


async def test_one_partitions_failure_fails_the_others(start: Start, failures: list[BaseException]) -> None:
    appender = await start(FakeSession(OUT_OF_ORDER))
    first = appender.append("t", 0, [record(1)])
    await asyncio.sleep(0)
    other = appender.append("u", 5, [record(2)])
    await asyncio.wait([first, other])
    assert isinstance(other.exception(), AppendFailed)
    assert len(failures) == 1
    await appender.stop()


async def test_an_append_without_progress_ends_the_appender(
    start: Start, failures: list[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("styx.kafka.appender.APPEND_SECONDS_MAX", 0.0)
    appender = await start(FakeSession(SILENT))
    future = appender.append("t", 3, [record(1)])
    await asyncio.wait([future])
    assert "took nothing for t, partition 3" in str(future.exception())
    assert failures == [future.exception()]
    await appender.stop()


async def test_a_loop_that_stood_still_has_waited_for_nothing(
    start: Start, failures: list[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    appender = await start(FakeSession(SILENT))
    future = appender.append("t", 3, [record(1)])
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    stood_still_s = 0.0
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + stood_still_s)
    stood_still_s = 3600.0  # a function of the app's has run for so long
    appender._watch()
    assert not failures
    assert not future.done()
    stood_still_s += 0.001
    monkeypatch.setattr("styx.kafka.appender.APPEND_SECONDS_MAX", 0.0)
    appender._watch()
    assert "took nothing for t, partition 3" in str(failures[0]), "what it has waited since counts"
    await asyncio.wait([future])
    await appender.stop()


async def test_a_record_over_the_limit_fails_alone(start: Start, failures: list[BaseException]) -> None:
    session = FakeSession()
    appender = await start(session)
    room = RECORD_BYTES_MAX - size_of((b"key", b"", []))
    refused = appender.append("t", 0, [record(1), (b"key", bytes(room + 1), [])])
    taken = appender.append("t", 0, [(b"key", bytes(room), [])])
    assert isinstance(refused.exception(), RecordTooLarge)
    assert await taken == 1
    assert failures == []
    await appender.stop()


async def test_more_than_may_wait_is_refused(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    one = size_of(record(1))
    monkeypatch.setattr("styx.kafka.appender.QUEUED_BYTES_MAX", 2 * one)
    appender = await start(FakeSession(SILENT))
    futures = [appender.append("t", partition, [record(1)]) for partition in (0, 1)]
    assert appender.queued_bytes == 2 * one
    with pytest.raises(LogOverloaded):
        appender.append("t", 0, [record(1)])
    appender.abort()
    assert [type(future.exception()) for future in futures] == [LogClosed, LogClosed]
    await appender.stop()


async def test_abort_fails_what_waits_and_calls_nobody(start: Start, failures: list[BaseException]) -> None:
    session = FakeSession(SILENT)
    appender = await start(session)
    future = appender.append("t", 0, [record(1)])
    await asyncio.sleep(0)
    appender.abort()
    assert isinstance(future.exception(), LogClosed)
    await appender.stop()
    assert failures == []
    assert session.closed


async def test_stop_waits_for_what_is_queued(start: Start) -> None:
    appender = await start(FakeSession(BROKEN))
    future = appender.append("t", 0, [record(1)])
    await appender.stop()
    assert future.result() == 1
    with pytest.raises(LogClosed):
        await appender.append("t", 0, [record(1)])


async def test_an_append_of_nothing_is_an_error(start: Start) -> None:
    appender = await start(FakeSession())
    with pytest.raises(ValueError, match="nothing to append"):
        appender.append("t", 0, [])
    await appender.stop()


async def test_a_future_that_was_given_up_holds_up_nothing(start: Start) -> None:
    appender = await start(FakeSession())
    given_up = appender.append("t", 0, [record(1)])
    given_up.cancel()
    assert await appender.append("t", 0, [record(2)]) == 2
    await appender.stop()


async def test_large_appends_are_split_over_requests(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.kafka.appender.BATCH_BYTES_MAX", 500)
    monkeypatch.setattr("styx.kafka.appender.EXCHANGE_BYTES_MAX", 600)
    session = FakeSession()
    appender = await start(session)
    futures = [appender.append("t", partition, records(range(50))) for partition in range(3)]
    assert await asyncio.gather(*futures) == [50, 50, 50]
    # Two batches reach the limit of a request; nobody is starved by those that come again.
    assert {len(request) for request in session.requests} == {1, 2}
    assert [partition for request in session.requests[:2] for _, partition, _ in request] == [0, 1, 2, 0]
    await appender.stop()
