"""The engine watches itself: a failure anywhere ends it, everybody is told, and opening it again recovers."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import styx
from styx.embedded_engine import engine as engine_module
from styx.errors import EngineFailed, NotSent, OutcomeUnknown
from styx.gateway.app import Gateway
from styx.host import background
from styx.log.base import LogFailed, Stream
from styx.log.sqlite import SqliteLog
from styx.messages import ReplyRecord
from styx.model.limits import Limits
from styx.model.request import Placed
from styx.protocol.messages import Commit
from styx.store.directory import DirectoryStore
from styx.store.memory import MemoryStore
from styx.testing.patience import PATIENCE_SECONDS
from styx.worker.events import CoordinatorSaid, Effect, Event
from styx.worker.worker import Worker
from tests.embedded.ledger_app import app
from tests.gateway.asgi import post

pytestmark = pytest.mark.anyio


slow = styx.Operator("slow")


async def _never() -> None:
    await asyncio.Event().wait()


@slow.register
async def wait(ctx: styx.Context) -> None:
    await ctx.call_external(_never)


externals_app = styx.App("slow", [slow])


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "FIRST_PAUSE_SECONDS", 0.0)


def _fail_once(engine: Any, text: str, caplog: pytest.LogCaptureFixture) -> None:
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert text in errors[0].getMessage()
    assert not engine.ready
    assert text in engine.unavailable_reason
    assert engine.broken_reason == engine.unavailable_reason


async def test_an_assertion_in_a_core_ends_the_engine_and_names_its_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with styx.embedded(app, tmp_path) as client:
        await client.call("ledger", "a", "add")
        with monkeypatch.context() as broken:
            broken.setattr(Worker, "step", _failing_at_commit(Worker.step))
            with pytest.raises(OutcomeUnknown, match="never so"):
                await client.call("ledger", "a", "add")
        _fail_once(client.engine, "never so", caplog)
        assert "while taking CoordinatorSaid(message=Commit(" in caplog.text
        with pytest.raises(styx.RequestRejected, match="never so") as rejected:
            await client.call("ledger", "a", "add")
        assert rejected.value.code == "unavailable"
        # Its directory is free, and what it had in its log goes on.
        async with styx.embedded(app, tmp_path) as again:
            await again.engine.settled(PATIENCE_SECONDS)
            assert again.entity("ledger", "a") == 2


def _failing_at_commit(step: Callable[[Worker, Event], list[Effect]]) -> Callable[[Worker, Event], list[Effect]]:
    def failing(self: Worker, event: Event) -> list[Effect]:
        if isinstance(event, CoordinatorSaid) and isinstance(event.message, Commit):
            raise AssertionError("never so")
        return step(self, event)

    return failing


async def test_a_failed_log_ends_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with styx.embedded(app, tmp_path) as client:
        await client.call("ledger", "a", "add")
        log = client.engine.log
        assert isinstance(log, SqliteLog)

        def full(batches: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(log._file, "insert", full)
        with pytest.raises(OutcomeUnknown, match="No space left"):
            await client.call("ledger", "a", "add")
        _fail_once(client.engine, "No space left", caplog)
    async with styx.embedded(app, tmp_path) as client:
        assert await client.call("ledger", "a", "add") == 2


async def test_a_deposit_in_flight_when_the_disk_is_full_is_told_as_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP: it is there after the restart, so who was told that nothing had happened would pay twice."""
    async with styx.embedded(app, tmp_path) as client:
        engine = client.engine
        gateway = Gateway(engine)
        submit = engine.submit_request

        def fail_once_it_is_in_the_log(request: Placed) -> Awaitable[ReplyRecord]:
            reply = submit(request)
            durable = threading.Event()
            engine.log.on_durable(lambda lsn: durable.set())
            engine.log.flush()
            durable.wait()
            engine._fail("the log", OSError(28, "No space left on device"))
            return reply

        monkeypatch.setattr(engine, "submit_request", fail_once_it_is_in_the_log)
        answer = await post(gateway, "/v1/ledger/a/add", idempotency_key="d1")
        monkeypatch.undo()
        assert (answer.status, answer.code) == (504, "unknown")
        assert "No space left" in answer.json["error"]["message"]
        assert "retry-after" not in answer.headers
        refused = await post(gateway, "/v1/ledger/a/add")
        assert (refused.status, refused.code) == (503, "unavailable")
    async with styx.embedded(app, tmp_path) as client:
        await client.engine.settled(PATIENCE_SECONDS)
        assert client.entity("ledger", "a") == 1
        again = await post(Gateway(client.engine), "/v1/ledger/a/add", idempotency_key="d1")
        assert (again.status, again.json["result"]) == (200, 1)


async def test_a_call_that_outlives_the_close_is_told_as_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "CLOSE_SECONDS_MAX", 0.01)
    async with styx.embedded(externals_app, tmp_path) as client:
        answer = asyncio.create_task(post(Gateway(client.engine), "/v1/slow/a/wait"))
        while not client.engine.in_flight:  # noqa: ASYNC110 - nobody announces it
            await asyncio.sleep(0)
    assert ((await answer).status, (await answer).code) == (504, "unknown")


async def test_a_log_that_takes_nothing_any_more_is_told_as_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also to who was held back, and is let in just then."""

    def refuse(*record: object) -> int:
        raise LogFailed("no space left")

    async with styx.embedded(app, limits=Limits(in_flight_max=1)) as client:
        taken, held = client.submit("ledger", "a", "add"), client.submit("ledger", "a", "add")
        append = client.engine.log.append

        def requests_refused(stream: Stream, *record: Any) -> int:
            return refuse() if stream is Stream.REQUESTS else append(stream, *record)

        monkeypatch.setattr(client.engine.log, "append", requests_refused)
        assert (await taken).result == 1
        with pytest.raises(styx.NotSent, match="no space left"):
            await held
        with pytest.raises(styx.NotSent, match="no space left"):
            await client.call("ledger", "a", "add")
        assert client.engine.in_flight == client.engine.held == 0


async def test_a_log_that_cannot_be_finished_is_reported_by_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await styx.embedded(app, tmp_path).__aenter__()
    await client.call("ledger", "a", "add")

    def refuse() -> None:
        raise LogFailed("no space left")

    log = client.engine.log
    close = log.close
    monkeypatch.setattr(log, "close", refuse)
    with pytest.raises(LogFailed, match="no space left"):
        await client.close()
    close()


async def test_an_impossible_error_of_the_store_ends_the_engine(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with styx.embedded(app) as client:
        await client.call("ledger", "a", "add")
        monkeypatch.setattr(MemoryStore, "put", lambda *_: 1 / 0)
        assert not await client.engine.snapshot()
        _fail_once(client.engine, "ZeroDivisionError", caplog)


async def test_a_store_out_of_reach_costs_snapshots_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with styx.embedded(app, tmp_path, snapshot_interval=1000) as client:
        engine = client.engine
        await client.call("ledger", "a", "add")
        with monkeypatch.context() as broken:
            broken.setattr(DirectoryStore, "put", _unreachable)
            for _ in range(2):
                assert not await engine.snapshot()
                await client.call("ledger", "a", "add")
        assert engine.counters.snapshots_failed == 2
        assert "styx_snapshots_failed_total 2" in engine.metrics()
        assert await engine.snapshot()
        client.crash()
    async with styx.embedded(app, tmp_path) as client:
        assert client.entity("ledger", "a") == 3


def _unreachable(*_: object) -> None:
    raise OSError("the store is out of reach")


async def test_a_store_that_comes_back_in_time_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = iter([OSError("once"), OSError("twice")])
    put = MemoryStore.put

    def flaky(self: MemoryStore, name: str, data: bytes) -> None:
        for failure in failures:
            raise failure
        put(self, name, data)

    async with styx.embedded(app) as client:
        monkeypatch.setattr(MemoryStore, "put", flaky)
        await client.call("ledger", "a", "add")
        assert await client.engine.snapshot()


async def test_a_store_that_cannot_be_read_refuses_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with styx.embedded(app, tmp_path) as client:
        await client.call("ledger", "a", "add")
    with monkeypatch.context() as broken:
        broken.setattr(DirectoryStore, "list", _unreachable)
        with pytest.raises(EngineFailed, match="out of reach"):
            async with styx.embedded(app, tmp_path):
                raise AssertionError
    async with styx.embedded(app, tmp_path) as client:
        assert client.entity("ledger", "a") == 1


async def test_an_answer_that_cannot_be_taken_ends_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.embedded_engine.engine.EmbeddedEngine._boot", lambda self, started: 1 / 0)
    with pytest.raises(EngineFailed, match="ZeroDivisionError"):
        async with styx.embedded(app):
            raise AssertionError


async def test_a_cancelled_start_lets_go_of_the_directory(tmp_path: Path) -> None:
    task = asyncio.ensure_future(styx.embedded(app, tmp_path).__aenter__())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with styx.embedded(app, tmp_path) as client:
        assert await client.call("ledger", "a", "add") == 1


async def test_an_engine_starts_once() -> None:
    async with styx.embedded(app) as client:
        with pytest.raises(styx.ConfigurationError, match="started once"):
            await client.engine.start()


async def test_requests_are_held_back_while_the_log_lags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.embedded_engine.intake.LOG_BACKLOG_BYTES_MAX", 1_000)
    async with styx.embedded(app, tmp_path) as client:
        waiting = [client.submit("ledger", "a", "echo", b"x" * 300) for _ in range(20)]
        assert client.engine.in_flight == 3
        assert client.engine.held == 17
        assert all(reply.error is None for reply in await asyncio.gather(*waiting))


async def test_nobody_overtakes_those_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async with styx.embedded(app) as client:
        with monkeypatch.context() as lagging:
            lagging.setattr("styx.embedded_engine.intake.LOG_BACKLOG_BYTES_MAX", 0)
            waiting = [client.submit("ledger", "a", "add") for _ in range(3)]
        # The log has caught up, and no pass has seen it yet.
        waiting.append(client.submit("ledger", "a", "add"))
        assert (client.engine.in_flight, client.engine.held) == (1, 3)
        assert [reply.result for reply in await asyncio.gather(*waiting)] == [1, 2, 3, 4]


async def test_large_requests_are_held_back_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.host.waiters.IN_FLIGHT_BYTES_MAX", 1_000)
    async with styx.embedded(app) as client:
        waiting = [client.submit("ledger", "a", "echo", b"x" * 900) for _ in range(5)]
        assert (client.engine.in_flight, client.engine.held) == (2, 3)
        assert all(reply.error is None for reply in await asyncio.gather(*waiting))


async def test_an_engine_of_another_loop_that_is_gone(tmp_path: Path) -> None:
    def forget() -> None:
        async def use() -> None:
            client = await styx.embedded(app, tmp_path).__aenter__()
            await client.call("ledger", "a", "add")
            forgotten.append(client)

        asyncio.run(use())

    forgotten: list[Any] = []
    await asyncio.to_thread(forget)
    # Its threads have nobody to report to, and take no harm from it.
    forgotten[0].engine.log.flush()
    forgotten[0].crash()
    async with styx.embedded(app, tmp_path) as client:
        assert client.entity("ledger", "a") == 1


async def test_unavailable_before_the_start() -> None:
    engine = styx.embedded(app).engine
    reason = "the engine has not been started: open its client first, as `async with` does"
    assert (engine.ready, engine.unavailable_reason) == (False, reason)
    assert issubclass(NotSent, styx.RequestRejected)
