"""A cluster under load, backed up meanwhile and restored elsewhere, on real brokers, a real S3 server and processes.

The restored cluster has every entity as serial execution up to the backup's snapshot leaves it, and goes on from there.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace as changed
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from proof.cluster import ClusterOptions, ClusterUnderTest, LoadOptions, SteadyLoad, chaos_requests
from proof.cluster.audit import answered_once, at_rest
from proof.cluster.recorded import Topics, newest_manifest, snapshot_state
from styx.backup.index import Index, object_name
from styx.backup.places import backups, read_index
from styx.client.base import Client
from styx.cluster.options import cluster_limits
from styx.messages import Reply, ReplyRecord, Request, decode_request
from styx.model.table_names import holds_rows
from styx.protocol.manifest import Manifest
from styx.store import Store, open_store
from styx.testing.history import HistoryReport, check_history
from styx.testing.patience import PATIENCE_SECONDS
from styx.testing.serial import ExternalResult, State
from tests.backup.charging import CHARGES_VARIABLE
from tests.backup.snapshots import flipped
from tests.real_services import RealKafka, RealMinio

pytestmark = pytest.mark.slow

RATE = 40.0
WAIT_S = PATIENCE_SECONDS


class Ran(NamedTuple):
    """What a command gave."""

    status: int
    out: str
    err: str


@pytest.fixture
def original(kafka: RealKafka, minio: RealMinio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterUnderTest:
    monkeypatch.setenv(CHARGES_VARIABLE, str(tmp_path / "charges"))
    name = f"backup-{secrets.token_hex(4)}"
    options = ClusterOptions(
        app="tests.backup.charging:app",
        name=name,
        kafka=kafka.bootstrap,
        store=name,
        s3_endpoint=f"http://{minio.endpoint}",
        directory=tmp_path / "original",
        snapshot_interval_s=1.0,
    )
    return ClusterUnderTest(options)


@pytest.fixture
def restored(original: ClusterUnderTest, other_kafka: RealKafka, tmp_path: Path) -> ClusterUnderTest:
    """Another broker, another prefix, another secret, another number of workers; not yet restored."""
    return ClusterUnderTest(
        changed(
            original.options,
            kafka=other_kafka.bootstrap,
            store=f"{original.options.store}-restored",
            secret=secrets.token_hex(32),
            workers=1,
            directory=tmp_path / "restored",
        )
    )


def test_a_cluster_goes_on_elsewhere(original: ClusterUnderTest, restored: ClusterUnderTest) -> None:
    asyncio.run(moved(original, restored, Random(original.options.name)))


async def moved(original: ClusterUnderTest, restored: ClusterUnderTest, rng: Random) -> None:
    charges = Path(os.environ[CHARGES_VARIABLE])
    charges.with_suffix(".hold").touch()
    async with original:
        await original.start()
        async with original.client() as client:
            paying = asyncio.create_task(
                client.request("till", "main", "pay", 7, idempotency_key="pay", timeout=WAIT_S)
            )
            remembered = await client.request("account", "ada", "credit", 5, idempotency_key="credit", timeout=WAIT_S)
            load = load_of(original, client, rng)
            load.start()
            await covered(original, remembered.epoch)
            taken = await backed_up(original)
            await asyncio.sleep(2)
            await load.stop()
            charges.with_suffix(".hold").unlink()
            assert (await asyncio.wait_for(paying, WAIT_S)).result == 7
        assert load.contradictions == []
        topics, _, store = await asyncio.to_thread(at_rest, original)
    # Nobody writes into it any more.
    before = await asyncio.to_thread(contents, store)
    later = await backed_up(original)
    assert await asyncio.to_thread(contents, store) == before
    assert later.epoch > taken.epoch

    await refused(original, restored)
    name = backups(place_of(original))[0]
    assert "What was acknowledged after" in (await restore(original, restored, "--backup", name)).out
    manifest = newest_manifest(restored.open_store())
    assert manifest is not None
    assert manifest.epoch == taken.epoch
    state = snapshot_state(restored.open_store(), manifest)
    report = serial_until(original, topics, taken.epoch, state)
    assert report.committed > 0
    async with restored:
        await restored.start()
        async with restored.client() as client:
            again = await client.request("account", "ada", "credit", 5, idempotency_key="credit", timeout=WAIT_S)
            assert again.result is not None
            assert (again.tid, again.epoch, again.result) == (remembered.tid, remembered.epoch, remembered.result)
            paid = await client.request("till", "main", "pay", 7, idempotency_key="pay", timeout=WAIT_S)
            assert paid.result == 7
            fresh = await client.request("till", "main", "pay", 1, timeout=WAIT_S)
            assert fresh.result == 8, "the parked payment counts once"
            load = load_of(restored, client, rng)
            load.start()
            await asyncio.sleep(2)
            await load.stop()
        new_topics, new_manifest, new_store = await asyncio.to_thread(at_rest, restored)
    assert new_manifest.app_version == 1, "the coordinator was started with the very code that the backup has"
    goes_on(restored, manifest, state, (topics, new_topics), snapshot_state(new_store, new_manifest))
    keys = await asyncio.to_thread(lambda: charges.read_text().split())
    assert len(keys) == 3
    assert keys[0] == keys[1] != keys[2], "run again in the new cluster, with the same key; then another call"


def load_of(cluster: ClusterUnderTest, client: Client, rng: Random) -> SteadyLoad:
    """Random requests of all kinds, not started."""
    requests = chaos_requests(rng, cluster.options.slots)
    return SteadyLoad(client, None, dict(cluster.app.operators), requests, LoadOptions(RATE), rng)


async def covered(cluster: ClusterUnderTest, epoch: int) -> None:
    """Waits until a snapshot has this epoch, rows, and a payment that is under way."""
    async with asyncio.timeout(WAIT_S):
        while True:
            if await asyncio.to_thread(covers, cluster.open_store(), epoch):
                return
            await asyncio.sleep(0.2)


def covers(store: Store, epoch: int) -> bool:
    manifest = newest_manifest(store)
    if manifest is None or manifest.epoch < epoch + 20:
        return False
    parked = any(pending.parked for slot in manifest.slots for pending in slot.part.pending)
    return parked and has_rows(snapshot_state(store, manifest))


def has_rows(state: State) -> bool:
    return any(holds_rows(table) for table, _ in state)


async def backed_up(cluster: ClusterUnderTest) -> Index:
    ran = await styx(cluster, "backup", *store_of(cluster), "--to", place_url(cluster), secret=cluster.options.secret)
    assert ran.status == 0, ran.err
    assert "is not in it" in ran.out
    return await asyncio.to_thread(lambda: read_index(place_of(cluster))[1])


async def refused(original: ClusterUnderTest, restored: ClusterUnderTest) -> None:
    """All that a restore must not do, and that it changes nothing then."""
    before = await asyncio.to_thread(contents, original.open_store())
    ran = await restore(original, original, status=2)
    assert "the store is not empty" in ran.err
    assert await asyncio.to_thread(contents, original.open_store()) == before
    ran = await restore(original, restored, log=original.url, status=2)
    assert f"has the topics styx.{original.options.name}.directory, " in ran.err
    ran = await restore(original, restored, "--backup", "20000101T000000.000Z", status=2)
    assert "there is no backup '20000101T000000.000Z' here" in ran.err
    ran = await restore(original, restored, old_secret="of nobody at all", status=2)
    assert "signature is wrong" in ran.err

    def damage() -> tuple[str, bytes]:
        place = place_of(original)
        name, index = read_index(place)
        where = object_name(name, next(each.name for each in index.objects if each.name.startswith("slots/")))
        data = place.get(where)
        place.put(where, flipped(data, len(data) // 2))
        return where, data

    where, data = await asyncio.to_thread(damage)
    ran = await restore(original, restored, status=1)
    assert f"the object {where.partition('/slots')[2]}".replace("object ", "object slots") in ran.err
    assert "is damaged" in ran.err
    place_of(original).put(where, data)
    assert restored.open_store().list("") == []


async def restore(
    original: ClusterUnderTest,
    restored: ClusterUnderTest,
    *more: str,
    log: str | None = None,
    old_secret: str | None = None,
    status: int = 0,
) -> Ran:
    file = original.options.directory / "secret"
    file.write_text(old_secret or original.options.secret)
    ran = await styx(
        original,
        "restore",
        *("--from", place_url(original), *store_of(restored), "--log", log or restored.url),
        *("--from-secret-file", str(file), *more),
        secret=restored.options.secret,
    )
    assert ran.status == status, ran.err
    return ran


async def styx(cluster: ClusterUnderTest, *words: str, secret: str) -> Ran:
    options = cluster.options
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "STYX_SECRET": secret,
        "STYX_S3_ENDPOINT": options.s3_endpoint or "",
        "STYX_S3_ACCESS_KEY": options.s3_access_key,
        "STYX_S3_SECRET_KEY": options.s3_secret_key,
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "styx", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )
    out, err = await asyncio.wait_for(process.communicate(), WAIT_S)
    assert process.returncode is not None
    return Ran(process.returncode, out.decode(), err.decode())


def store_of(cluster: ClusterUnderTest) -> tuple[str, str]:
    return "--store", f"s3://styx/{cluster.options.store}"


def place_url(cluster: ClusterUnderTest) -> str:
    return f"s3://styx/{cluster.options.store}-backups"


def place_of(cluster: ClusterUnderTest) -> Store:
    options = cluster.options
    return open_store(
        place_url(cluster),
        endpoint=options.s3_endpoint,
        access_key=options.s3_access_key,
        secret_key=options.s3_secret_key,
    )


def contents(store: Store) -> dict[str, bytes]:
    return {name: store.get(name) for name in store.list("")}


def serial_until(cluster: ClusterUnderTest, topics: Topics, epoch: int, state: State) -> HistoryReport:
    """The state is that of serial execution of all that was answered up to this epoch."""
    assert has_rows(state)
    requests, replies = answered_once(topics, cluster.options.slots)
    return checked(cluster, requests, [each for each in replies if each.epoch <= epoch], state, topics, {})


def goes_on(
    cluster: ClusterUnderTest, manifest: Manifest, state: State, topics: tuple[Topics, Topics], final: State
) -> None:
    """Serial execution goes on from `state` with what the snapshot had under way, and with the new requests."""
    old, new = topics
    n_slots = cluster.options.slots
    before = {reply.tid: reply for reply in old.replies if reply.sequence == reply.tid}
    newest = max(reply.sequence for reply in old.replies)
    requests, replies = answered_once(
        new._replace(replies=[each for each in new.replies if each.sequence > newest]), n_slots
    )
    assert len(replies) == len(requests)
    # Of unfinished requests the snapshot has all that there is; their replies have the numbers that they had.
    earlier = [each for each in new.replies if each.sequence <= newest]
    pending = [each for slot in manifest.slots for each in slot.part.pending]
    assert {each.sequence for each in earlier} == {
        sequence for each in pending for sequence in (each.tid, *(sequence for _, sequence, _ in each.repeats))
    }
    by_tid = {each.tid: each for each in pending}
    for reply in earlier:
        origin = by_tid[reply.tid]
        name = f"pending/{reply.sequence}"
        requests[name] = (decode_request(origin.payload), origin.timestamp_us)
        replies.append(replace(reply, request_id=name))
    # Idempotency keys that the old cluster has answered give what it answered.
    known = {reply.tid for reply in replies if reply.sequence == reply.tid}
    remembered = [reply for reply in replies if reply.tid not in known]
    for reply in remembered:
        assert same(reply, before[reply.tid]), reply
        assert reply.epoch <= manifest.epoch
    replies = [reply for reply in replies if reply.tid in known]
    report = checked(cluster, requests, replies, final, new, old.externals, state)
    assert report.committed > 0
    assert report.unanswered == len(remembered)


def same(first: ReplyRecord | Reply, second: ReplyRecord | Reply) -> bool:
    return (first.epoch, first.phase, first.result, first.error) == (
        second.epoch,
        second.phase,
        second.result,
        second.error,
    )


def checked(
    cluster: ClusterUnderTest,
    requests: dict[str, tuple[Request, int]],
    replies: Iterable[ReplyRecord],
    final: State,
    topics: Topics,
    externals: Mapping[bytes, ExternalResult],
    initial: State | None = None,
) -> HistoryReport:
    return check_history(
        cluster.app,
        requests,
        replies,
        final,
        initial_state=initial,
        limits=cluster_limits(),
        n_slots=cluster.options.slots,
        externals={**externals, **topics.externals},
    )
