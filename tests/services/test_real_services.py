"""The fixtures `kafka` and `minio`: what they start works, and survives a SIGKILL."""

from __future__ import annotations

import io
import uuid

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from minio import Minio

from tests.real_services import RealKafka, RealMinio

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

MIB = 1 << 20


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


async def _read_all(bootstrap: str, topic: str) -> list[bytes]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    await consumer.start()
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        end = (await consumer.end_offsets([partition]))[partition]
        values = []
        while await consumer.position(partition) < end:
            values += [record.value for record in (await consumer.getmany(timeout_ms=500)).get(partition, [])]
        return values
    finally:
        await consumer.stop()


async def test_kafka_keeps_a_transaction_and_a_large_record_over_a_kill(kafka: RealKafka) -> None:
    topic = f"real-services-{uuid.uuid4().hex}"
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    await admin.close()

    large = bytes(7 * MIB)
    producer = AIOKafkaProducer(
        bootstrap_servers=kafka.bootstrap, transactional_id=topic, max_request_size=8 * MIB, acks="all"
    )
    await producer.start()
    async with producer.transaction():
        await producer.send_and_wait(topic, large, partition=0)
        await producer.send_and_wait(topic, b"small", partition=0)
    await producer.stop()

    kafka.kill()
    kafka.start()

    assert await _read_all(kafka.bootstrap, topic) == [large, b"small"]


def test_minio_keeps_an_object_over_a_kill(minio: RealMinio) -> None:
    client = Minio(minio.endpoint, access_key=minio.access_key, secret_key=minio.secret_key, secure=False)
    name = f"real-services/{uuid.uuid4().hex}"
    assert client.bucket_exists("styx")
    client.put_object("styx", name, io.BytesIO(b"stored"), 6)

    minio.kill()
    minio.start()

    response = client.get_object("styx", name)
    try:
        assert response.read() == b"stored"
    finally:
        response.close()
        response.release_conn()
