"""What survives closing, crashing and opening again, with the whole history checked each time."""

from __future__ import annotations

import asyncio
import random
from errno import ENOSPC
from pathlib import Path
from typing import NoReturn

import pytest

import styx
from styx.client.embedded import EmbeddedClient
from styx.embedded_engine.storage import DataDirectoryInUse
from styx.errors import ConfigurationError, NotSent, OutcomeUnknown
from styx.log.base import Record, Stream
from styx.messages import ReplyRecord, decode_reply
from styx.model.limits import Limits
from styx.testing.fixture import EmbeddedCluster, embedded_cluster
from styx.testing.patience import PATIENCE_SECONDS
from tests.embedded.ledger_app import app, ledger

pytestmark = pytest.mark.anyio

KEYS = [f"k{number}" for number in range(12)]


async def _traffic(client: EmbeddedClient, rng: random.Random, requests: int) -> int:
    """Adds and moves, some of which abort; the sum of what was added."""
    added = 0
    waiting = []
    for _ in range(requests):
        if rng.random() < 0.4:
            amount = rng.randrange(10)
            added += amount
            waiting.append(client.submit("ledger", rng.choice(KEYS), "add", amount))
        else:
            waiting.append(client.submit("ledger", rng.choice(KEYS), "move", rng.choice(KEYS), rng.randrange(20)))
    await asyncio.gather(*waiting)
    return added


async def test_closing_and_opening_again(tmp_path: Path) -> None:
    async with styx.embedded(app, tmp_path) as client:
        await client.call("ledger", "a", "add", 5)
        state = client.state()
    async with styx.embedded(app, tmp_path) as client:
        assert client.state() == state
        # A clean end leaves nothing to run again.
        assert client.engine.worker.transactions_ended == 0
        assert await client.call("ledger", "a", "add", 1) == 6


async def test_an_engine_starts_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: Path) -> NoReturn:
        raise OSError(ENOSPC, "No space left on device", str(folder))

    async with styx.embedded(app, tmp_path) as client:
        await client.call("ledger", "a", "add", 5)
        client.crash()
    monkeypatch.setattr("styx.store.directory._lasting_file", full)
    async with styx.embedded(app, tmp_path) as client:
        assert client.state() == {("ledger", "a"): 5}
        client.crash()


async def test_a_crash_before_the_first_snapshot(tmp_path: Path) -> None:
    async with embedded_cluster(app, tmp_path) as cluster:
        added = await _traffic(cluster, random.Random(1), 300)
        state = cluster.state()
        await cluster.crash_and_recover()
        assert cluster.state() == state
        assert sum(state.values()) == added


async def test_crash_loops_under_load(tmp_path: Path) -> None:
    rng = random.Random(2)
    acknowledged = 0
    async with embedded_cluster(app, tmp_path) as cluster:
        for _ in range(12):
            if rng.random() < 0.5:
                await cluster.engine.snapshot()
            keys = [rng.randrange(200) for _ in range(rng.randrange(1, 400))]
            waiting = [cluster.submit("ledger", KEYS[key % 12], "add", idempotency_key=f"i{key}") for key in keys]
            for _ in range(rng.randrange(30)):
                await asyncio.sleep(0)
            acknowledged += sum(future.done() for future in map(asyncio.ensure_future, waiting))
            await cluster.crash_and_recover()
            for outcome in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(outcome, OutcomeUnknown | styx.Reply), outcome
        # An idempotency key counts once, whatever crashed in between.
        assert 0 < sum(cluster.state().values()) <= 200
    assert cluster.report is not None
    assert cluster.report.committed + cluster.report.repetitions >= acknowledged


async def test_no_acknowledged_reply_is_contradicted(tmp_path: Path) -> None:
    async with embedded_cluster(app, tmp_path) as cluster:
        told: list[styx.Reply] = []
        for round_ in range(6):
            waiting = [cluster.submit("ledger", KEYS[n % 5], "add", n) for n in range(200)]
            told += [await future for future in waiting[: 40 * round_]]
            await cluster.crash_and_recover()
            await asyncio.gather(*waiting, return_exceptions=True)
        await cluster.check()
        engine = cluster.engine
        given = {
            record.request_id: record
            for slot in range(engine.n_slots)
            for record in map(_reply, engine.log.read(Stream.REPLIES, slot, 0))
        }
        for reply in told:
            record = given[reply.request_id]
            assert (record.epoch, record.phase, record.tid) == (reply.epoch, reply.phase, reply.tid)


def _reply(record: Record) -> ReplyRecord:
    return decode_reply(record.payload)


async def test_idempotency_over_reopening(tmp_path: Path) -> None:
    async with embedded_cluster(app, tmp_path) as cluster:
        first = await cluster.request("ledger", "a", "add", idempotency_key="k")
        await cluster.engine.snapshot()
        second = await cluster.request("ledger", "a", "add", idempotency_key="l")
        await cluster.crash_and_recover()
        for known, key in ((first, "k"), (second, "l")):
            again = await cluster.request("ledger", "a", "add", idempotency_key=key)
            assert again[:5] == known[:5]
        assert cluster.entity("ledger", "a") == 2


async def test_requests_in_the_log_run_although_nobody_waits(tmp_path: Path) -> None:
    async with embedded_cluster(app, tmp_path) as cluster:
        waiting = [cluster.submit("ledger", "a", "add") for _ in range(10)]
        # Durable, and in no epoch yet: the engine's next pass never comes.
        cluster.engine._passes.stop()
        cluster.engine.log.flush()
        while cluster.engine.log.backlog_records:
            await asyncio.to_thread(lambda: None)
        await cluster.crash_and_recover()
        await cluster.engine.settled(PATIENCE_SECONDS)
        assert cluster.entity("ledger", "a") == 10
        assert all(isinstance(e, OutcomeUnknown) for e in await asyncio.gather(*waiting, return_exceptions=True))


async def test_snapshots_new_chains_and_truncation_keep_the_state(tmp_path: Path) -> None:
    rng = random.Random(3)
    added, state = 0, {}
    for round_ in range(10):
        async with styx.embedded(app, tmp_path, snapshot_interval=1000) as client:
            for _ in range(3):
                added += await _traffic(client, rng, 40)
                assert await client.engine.snapshot()
            assert sum(client.state().values()) == added
            state = client.state()
            if round_ % 2:
                client.crash()
    async with styx.embedded(app, tmp_path) as client:
        assert client.state() == state
        await _traffic(client, rng, 10)
        engine = client.engine
        # What a crash left behind goes with the next snapshot.
        assert await engine.snapshot()
        await asyncio.to_thread(engine._background.finish)
        assert engine.log.bounds(Stream.EPOCHS, 0)[0] > 0
        for slot in range(4):
            assert engine.log.bounds(Stream.REQUESTS, slot)[0] > 0
            assert engine.log.bounds(Stream.REPLIES, slot)[0] > 0
        objects = engine._storage.store.list("slots/")
        # One for each snapshot, 31 of them, if no chain began anew.
        assert len(objects) < 20
        assert len(engine._storage.store.list("manifests/")) == 2


async def test_uploads_of_unfinished_snapshots_are_swept(tmp_path: Path) -> None:
    async with styx.embedded(app, tmp_path) as client:
        await client.call("ledger", "a", "add")
    left = tmp_path / "objects" / "slots" / "00001" / "0000000000000000099-0000000001.delta"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"half of a snapshot")
    async with styx.embedded(app, tmp_path) as client:
        assert client.entity("ledger", "a") == 1
        assert left.exists(), "it goes when this generation has a snapshot of its own"
        await client.call("ledger", "a", "add")
        assert await client.engine.snapshot()
    assert not left.exists()


async def test_snapshots_are_taken_by_themselves_and_only_if_there_is_something_new() -> None:
    async with styx.embedded(app, snapshot_interval=0.001) as client:
        engine = client.engine
        await client.call("ledger", "a", "add")
        assert await engine._until(lambda: engine.coordinator.snapshots_completed == 1, 10)
        assert engine._snapshot_timer is None
        await client.call("ledger", "a", "add")
        assert await engine._until(lambda: engine.coordinator.snapshots_completed == 2, 10)


async def test_a_directory_has_one_engine(tmp_path: Path) -> None:
    async with styx.embedded(app, tmp_path):
        with pytest.raises(DataDirectoryInUse):
            async with styx.embedded(app, tmp_path):
                raise AssertionError


async def test_a_directory_belongs_to_one_app_and_number_of_slots(tmp_path: Path) -> None:
    async with styx.embedded(app, tmp_path, n_slots=2):
        pass
    with pytest.raises(ConfigurationError, match="start with n_slots=2 instead of 4"):
        async with styx.embedded(app, tmp_path):
            raise AssertionError
    with pytest.raises(ConfigurationError, match="holds the data of app 'ledger', not of 'other'"):
        async with styx.embedded(styx.App("other", operators=[ledger]), tmp_path, n_slots=2):
            raise AssertionError
    async with styx.embedded(app, tmp_path, n_slots=2) as client:
        assert await client.call("ledger", "a", "add") == 1


async def test_after_a_crash_the_client_is_of_no_use(tmp_path: Path) -> None:
    async with styx.embedded(app, tmp_path, limits=Limits(in_flight_max=1)) as client:
        taken, held = client.submit("ledger", "a", "add"), client.submit("ledger", "a", "add")
        client.crash()
        client.crash()
        with pytest.raises(OutcomeUnknown, match="repeat it only with the same idempotency key"):
            await taken
        with pytest.raises(NotSent, match="crashed") as refused:
            await held
        assert not isinstance(refused.value, OutcomeUnknown)
        with pytest.raises(ConnectionError, match="crashed"):
            await client.request("ledger", "a", "add")


async def test_a_cluster_in_memory_has_nothing_to_recover_from() -> None:
    async with embedded_cluster(app) as cluster:
        assert isinstance(cluster, EmbeddedCluster)
        with pytest.raises(ConfigurationError, match="data_dir"):
            await cluster.crash_and_recover()
