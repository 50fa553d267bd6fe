"""The same requests and epoch records on another number of workers: the replies and the state must be the same.

Copies a cluster's topics, outcomes of external calls among them, under another name, and lets a cluster recover from
them with an empty store. The original topics are only read.

    python -m proof.cluster.replay --seconds 20 --workers 1,2,4
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import zip_longest
from random import Random
from typing import Final, NamedTuple

import msgspec
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from proof.cluster.audit import at_rest, audit
from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.load import LoadOptions, SteadyLoad, chaos_requests
from proof.cluster.recorded import snapshot_state, whole_stream
from proof.cluster.services import local_services, working_directory
from styx.client.connect import connect
from styx.deployment.package import pack
from styx.deployment.versions import store_version
from styx.kafka.topics import Topics, settings
from styx.log.base import Record, Stream
from styx.messages import ReplyRecord
from styx.testing.history import SerializabilityViolation, state_hash

COPIED: Final = (Stream.REQUESTS, Stream.EPOCHS, Stream.EXTERNALS)
APP: Final = "proof.chaos_app:app"


class Replayed(NamedTuple):
    """The result of a replay: the cluster's replies by sequence, and the hash of its state."""

    replies: list[ReplyRecord]
    state_hash: str


async def outcome(cluster: ClusterUnderTest) -> Replayed:
    """Waits until a cluster is at rest, and returns its result. Raises `AuditFailed` if it does not come to rest."""

    def read() -> Replayed:
        topics, manifest, store = at_rest(cluster)
        replies = sorted(topics.replies, key=lambda reply: reply.sequence)
        return Replayed(replies, state_hash(snapshot_state(store, manifest)))

    return await asyncio.to_thread(read)


async def replay_elsewhere(original: ClusterUnderTest, workers: int) -> Replayed:
    """Replays the topics of `original`, which is at rest, on `workers` workers."""
    options = original.options
    name = f"{options.name}-on-{workers}"
    copy = ClusterUnderTest(
        replace(
            options,
            name=name,
            store=f"{options.store}-on-{workers}",
            workers=workers,
            directory=options.directory / name,
        )
    )
    await _copy_topics(original, copy)
    # The epoch records name version 1; a new store has none.
    await asyncio.to_thread(lambda: store_version(copy.open_store(), pack(copy.app, copy.security.secret)))
    async with copy:
        await copy.start()
        replayed = await outcome(copy)
    return replayed._replace(replies=[_renamed(reply, name, options.name) for reply in replayed.replies])


def _renamed(reply: ReplyRecord, name: str, original: str) -> ReplyRecord:
    """A reply with the original app's name. The copy's name differs, and the error of an unknown operator
    contains it.
    """
    if reply.error is None:
        return reply
    code, kind, message = reply.error
    return msgspec.structs.replace(reply, error=(code, kind, message.replace(repr(name), repr(original))))


async def _copy_topics(original: ClusterUnderTest, copy: ClusterUnderTest) -> None:
    streams = await asyncio.to_thread(_read, original)
    await _create(copy.options, copy.topics)
    # In a transaction, because a record outside of one counts as a stranger's. The transaction's end takes an offset
    # after all records.
    producer = AIOKafkaProducer(
        bootstrap_servers=copy.options.kafka,
        transactional_id=f"styx.{copy.options.name}.copy",
        max_request_size=8 * 1024 * 1024,
    )
    await producer.start()
    try:
        await producer.begin_transaction()
        sends = [
            await producer.send(
                copy.topics.of(stream), record.payload, partition=partition, timestamp_ms=record.timestamp_us // 1_000
            )
            for stream, partitions in streams.items()
            for partition, records in partitions.items()
            for record in records
        ]
        await asyncio.gather(*sends)
        await producer.commit_transaction()
    finally:
        await producer.stop()


def _read(original: ClusterUnderTest) -> dict[Stream, dict[int, list[Record]]]:
    reader = original.reader()
    try:
        return {stream: whole_stream(reader, stream) for stream in COPIED}
    finally:
        reader.close()


async def _create(options: ClusterOptions, topics: Topics) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=options.kafka)
    await admin.start()
    try:
        made = settings(topics, options.slots, options.reply_partitions)
        # The original times of the records, because `ctx.now()` returns them.
        await admin.create_topics(
            [
                NewTopic(
                    name,
                    each.n_partitions,
                    1,
                    topic_configs={**each.configuration, "message.timestamp.type": "CreateTime"},
                )
                for name, each in made.items()
            ]
        )
    finally:
        await admin.close()


async def compare(cluster: ClusterUnderTest, seconds: float, numbers: list[int], rng: Random) -> None:
    """Loads a new cluster for some time, kills one of its workers meanwhile, audits it and replays it elsewhere.

    Prints what it finds; raises `SerializabilityViolation`.
    """
    async with cluster:
        await cluster.start()
        async with AsyncExitStack() as stack:
            kafka = await stack.enter_async_context(cluster.client())
            http = await stack.enter_async_context(connect(cluster.http_url))
            requests = chaos_requests(rng, cluster.options.slots)
            load = SteadyLoad(kafka, http, dict(cluster.app.operators), requests, LoadOptions(), rng)
            load.start()
            await asyncio.sleep(seconds / 2)
            victim, cluster.workers[0] = cluster.workers[0], None
            assert victim is not None
            await victim.kill()
            await cluster.start_worker(0)
            await asyncio.sleep(seconds / 2)
            await load.stop()
        found = await audit(cluster, load.replies)
        expected = await outcome(cluster)
    print(f"on {cluster.options.workers} workers: {found.records} requests, state {expected.state_hash}", flush=True)
    for workers in numbers:
        replayed = await replay_elsewhere(cluster, workers)
        print(f"replayed on {workers}: {len(replayed.replies)} replies, state {replayed.state_hash}", flush=True)
        check_same(expected, replayed)


def check_same(expected: Replayed, replayed: Replayed) -> None:
    """Raises `SerializabilityViolation` with the first difference."""
    for first, second in zip_longest(expected.replies, replayed.replies):
        if first != second:
            raise SerializabilityViolation(f"the replay gave another reply:\n  first  {first}\n  replay {second}")
    if expected.state_hash != replayed.state_hash:
        raise SerializabilityViolation(f"the replay's state is {replayed.state_hash}, not {expected.state_hash}")


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof.cluster.replay", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of load (default 20)")
    parser.add_argument("--workers", default="1,2,4", help="numbers of workers to replay on (default 1,2,4)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    directory = working_directory("replay")
    with local_services() as services:
        cluster = ClusterUnderTest(
            ClusterOptions(
                app=APP,
                name="original",
                kafka=services.kafka_address,
                store="original",
                s3_endpoint=services.s3_endpoint,
                directory=directory,
            )
        )
        numbers = [int(each) for each in options.workers.split(",")]
        try:
            asyncio.run(compare(cluster, options.seconds, numbers, Random(options.seed)))
        except SerializabilityViolation as failure:
            print(f"FAILED: {failure}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
