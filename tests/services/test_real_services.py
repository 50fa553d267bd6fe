"""The fixtures `kafka` and `minio`: what they start works, and survives a SIGKILL; what they cannot start is told."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from minio import Minio

from styx.process.ports import free_port
from tests.real_services import FOLDER_PREFIX, SCRIPT, SKIP_VARIABLE, RealKafka, RealMinio, end_leftovers
from tests.services.machine import Machine

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

MIB = 1 << 20


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


async def _read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_uncommitted")
    await consumer.start()
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        return [(await consumer.getone()).value for _ in range(count)]
    finally:
        await consumer.stop()


async def test_kafka_keeps_the_records_of_a_transaction_over_a_kill(kafka_of_its_own: RealKafka) -> None:
    kafka = kafka_of_its_own
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

    assert await _read(kafka.bootstrap, topic, 2) == [large, b"small"]


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


def _pytest_without_go(machine: Machine, **environment: str) -> subprocess.CompletedProcess[str]:
    test = f"{Path(__file__)}::{test_minio_keeps_an_object_over_a_kill.__name__}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    return subprocess.run(
        command,
        check=False,
        cwd=SCRIPT.parents[1],
        env=machine.environment | environment,
        capture_output=True,
        text=True,
    )


def test_what_cannot_be_installed_fails_the_test_and_says_why(machine: Machine) -> None:
    run = _pytest_without_go(machine)
    assert run.returncode == 1
    assert "go is missing. Install Go" in run.stdout
    assert f"{SKIP_VARIABLE}=1" in run.stdout


def test_a_run_without_services_skips_the_test_and_says_so(machine: Machine) -> None:
    run = _pytest_without_go(machine, **{SKIP_VARIABLE: "1"})
    assert run.returncode == 0
    assert f"{SKIP_VARIABLE}=1: without minio" in run.stdout


def test_what_a_killed_run_left_behind_is_ended(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    machine.minio()

    def left_by(pid: int) -> Path:
        folder = tmp_path / f"{FOLDER_PREFIX}{pid}-x"
        status, said = machine.run("start", "minio", STYX_SERVICES_DATA=str(folder), STYX_MINIO_PORT=str(free_port()))
        assert status == 0, said
        return folder

    killed_run = subprocess.Popen(["true"])
    killed_run.wait()
    of_the_dead, of_the_living = left_by(killed_run.pid), left_by(os.getpid())
    server = int((of_the_dead / "minio/pid").read_text())
    try:
        end_leftovers()

        assert not of_the_dead.exists()
        assert str(of_the_dead) not in _command_line(server)
        assert machine.run("status", STYX_SERVICES_DATA=str(of_the_living))[1].count("runs on") == 1
    finally:
        machine.run("down", STYX_SERVICES_DATA=str(of_the_living))


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except FileNotFoundError:
        return ""
