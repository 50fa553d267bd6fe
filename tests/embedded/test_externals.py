"""External functions: once per success, whatever crashes around them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import styx
from styx.log.base import Stream
from styx.sequencer.epoch_record import ExternalRecord, decode_external
from styx.testing.fixture import EmbeddedCluster, embedded_cluster
from styx.testing.patience import PATIENCE_SECONDS
from tests.embedded.ledger_app import app, outside

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    outside.clear()
    yield
    outside.clear()


def _external_records(cluster: EmbeddedCluster) -> list[bool]:
    """For each record of the stream whether it is an outcome."""
    log = cluster.engine.log
    return [
        decode_external(record.payload).outcome is not None
        for slot in range(4)
        for record in log.read(Stream.EXTERNALS, slot, log.bounds(Stream.EXTERNALS, slot)[0])
    ]


async def test_coroutine_functions_and_plain_ones() -> None:
    async def on_the_loop(value: int, idempotency_key: str) -> list[object]:
        await asyncio.sleep(0)
        return [value, len(idempotency_key)]

    def on_a_thread(value: int) -> int:
        return value + 1

    outside.update(loop=on_the_loop, thread=on_a_thread, awaitable=lambda value: on_the_loop(value, "x"))
    async with embedded_cluster(app) as cluster:
        assert await cluster.call("ledger", "a", "call_outside", "loop", 7) == [7, 32]
        assert await cluster.call("ledger", "a", "call_outside", "thread", 7) == 8
        assert await cluster.call("ledger", "a", "call_outside", "awaitable", 7) == [7, 1]
        assert cluster.entity("ledger", "a") == 3


async def _raise(error: BaseException) -> None:
    raise error


def _exit() -> None:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("function", "kind", "text"),
    [
        (lambda: _raise(LookupError("gone")), "LookupError", "gone"),
        (_exit, "SystemExit", "3"),
        (lambda: _raise(asyncio.CancelledError("x")), "CancelledError", "x"),
        (object, "UnsupportedValue", "cannot be encoded"),
        (lambda: b"x" * 2_000_000, "ValueTooLarge", "return less"),
        (lambda unwanted: None, "TypeError", "unwanted"),
        (5, "TypeError", "takes a function and its arguments, got 5: write ctx.call_external(function"),
    ],
)
async def test_an_exception_aborts_the_transaction(function: Any, kind: str, text: str) -> None:
    outside["bad"] = function
    async with embedded_cluster(app) as cluster:
        reply = await cluster.request("ledger", "a", "call_outside", "bad")
        assert reply.error is not None
        assert (reply.error.code, reply.error.type) == ("aborted", kind)
        assert text in reply.error.message
        assert cluster.entity("ledger", "a") is None
        assert await cluster.call("ledger", "a", "add") == 1


async def test_others_go_on_while_one_waits() -> None:
    release = asyncio.Event()

    async def slow() -> str:
        await release.wait()
        return "done"

    outside["slow"] = slow
    async with embedded_cluster(app) as cluster:
        waiting = cluster.submit("ledger", "a", "call_outside", "slow")
        for number in range(1, 4):
            assert await cluster.call("ledger", "a", "add") == number
        release.set()
        assert (await waiting).result == "done"
        assert cluster.entity("ledger", "a") == 4


@pytest.mark.parametrize("snapshot", [False, True])
async def test_a_crash_between_intent_and_outcome_runs_it_again(tmp_path: Path, snapshot: bool) -> None:
    runs: list[str] = []
    begun, hang = asyncio.Event(), asyncio.Event()

    async def attempt(idempotency_key: str) -> int:
        runs.append(idempotency_key)
        begun.set()
        if len(runs) == 1:
            await hang.wait()
        return len(runs)

    outside["attempt"] = attempt
    async with embedded_cluster(app, tmp_path) as cluster:
        waiting = cluster.submit("ledger", "a", "call_outside", "attempt")
        await begun.wait()
        if snapshot:
            for _ in range(3):
                await cluster.call("ledger", "b", "add")
                assert await cluster.engine.snapshot()
        await cluster.crash_and_recover()
        await asyncio.gather(waiting, return_exceptions=True)
        await cluster.engine.settled(PATIENCE_SECONDS)
        assert cluster.entity("ledger", "a") == 1
        assert runs[0] == runs[1]
        assert len(runs) == 2
        assert sorted(_external_records(cluster)) == [False, False, True]


@pytest.mark.parametrize("snapshots", [0, 1, 2, 3])
async def test_a_crash_after_the_outcome_uses_it(tmp_path: Path, snapshots: int) -> None:
    runs: list[int] = []

    def attempt() -> int:
        runs.append(1)
        return len(runs)

    outside["attempt"] = attempt
    async with embedded_cluster(app, tmp_path) as cluster:
        assert await cluster.call("ledger", "a", "call_outside", "attempt") == 1
        for _ in range(snapshots):
            await cluster.call("ledger", "b", "add")
            assert await cluster.engine.snapshot()
        for _ in range(2):
            await cluster.crash_and_recover()
            await cluster.engine.settled(PATIENCE_SECONDS)
            assert cluster.entity("ledger", "a") == 1
        assert runs == [1]


async def test_a_crash_between_the_logged_outcome_and_its_use(tmp_path: Path) -> None:
    runs: list[int] = []
    outside["attempt"] = lambda: runs.append(1)
    async with embedded_cluster(app, tmp_path) as cluster:
        waiting = cluster.submit("ledger", "a", "call_outside", "attempt")
        # The outcome becomes durable, and the worker never hears of it.
        logged = asyncio.Event()
        append = cluster.engine._external_log.append

        def append_unheard(slot: int, record: ExternalRecord, durable: Callable[[], None]) -> None:
            append(slot, record, durable if record.outcome is None else logged.set)

        cluster.engine._external_log.append = append_unheard  # type: ignore[method-assign]
        await logged.wait()
        await cluster.crash_and_recover()
        await asyncio.gather(waiting, return_exceptions=True)
        assert await cluster.engine.settled(PATIENCE_SECONDS)
        assert cluster.entity("ledger", "a") == 1
        assert runs == [1]


async def test_outcomes_are_released_behind_the_snapshots(tmp_path: Path) -> None:
    hang = asyncio.Event()
    outside.update(quick=lambda: 1, hang=hang.wait)
    async with styx.embedded(app, tmp_path) as client:
        engine = client.engine
        for _ in range(5):
            await client.call("ledger", "a", "call_outside", "quick")
            assert await engine.snapshot()
        slot = next(slot for slot in range(4) if engine.log.bounds(Stream.EXTERNALS, slot)[1])
        # Two records a call; the last two snapshots may still be recovered from.
        assert engine.log.bounds(Stream.EXTERNALS, slot) == (8, 10)
        waiting = client.submit("ledger", "a", "call_outside", "hang")
        for _ in range(5):
            await client.call("ledger", "a", "call_outside", "quick")
            assert await engine.snapshot()
        # What a waiting transaction began stays.
        assert engine.log.bounds(Stream.EXTERNALS, slot)[0] == 10
        assert len(engine._external_log.outcomes) == 5
        hang.set()
        assert (await waiting).result is True
        for _ in range(3):
            await client.call("ledger", "a", "add")
            assert await engine.snapshot()
        assert engine.log.bounds(Stream.EXTERNALS, slot) == (22, 22)
        assert not engine._external_log.outcomes
