"""A broker that asks for a login, as that of the chart kafka: who has it gets in, and others are told what is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from styx.client.kafka.routing import read_routing_table
from styx.errors import ConfigurationError
from styx.kafka.address import PASSWORD_VARIABLE, USERNAME_VARIABLE, KafkaAddress, parse_kafka_url
from styx.kafka.appender import Appender
from styx.kafka.reader import KafkaReader
from styx.kafka.session import KafkaSession
from styx.kafka.topics import ensure_topics, topics_of
from styx.log.base import Stream
from tests.kafka.blocking import in_thread, numbers, read_all, records
from tests.kafka.login_broker import login_broker
from tests.real_services import RealKafka

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

USER, PASSWORD = "styx.1-a_b", "it is {} = a; secret?"


@pytest.fixture(scope="module")
def port(kafka: RealKafka) -> Iterator[int]:
    """Of a broker that lets one user in. `kafka`, which is another one, says whether there can be any."""
    with login_broker({USER: PASSWORD}) as port:
        yield port


def address_of(port: int, password: str, mechanism: str = "PLAIN") -> KafkaAddress:
    url = f"kafka://127.0.0.1:{port}?protocol=SASL_PLAINTEXT&mechanism={mechanism}"
    return parse_kafka_url(url, {USERNAME_VARIABLE: USER, PASSWORD_VARIABLE: password})


async def test_who_has_the_login_appends_and_reads(port: int, failures: list[BaseException]) -> None:
    address, topics = address_of(port, PASSWORD), topics_of("bank")
    await ensure_topics(address, topics, 2, 1)
    appender = Appender(address, transactional_id="bank.test", on_failure=failures.append)
    await appender.start(topics)
    reader = KafkaReader(address, topics)
    try:
        await appender.append(topics.requests, 1, records(range(100)))
        assert numbers(await read_all(reader, Stream.REQUESTS, 1)) == list(range(100))
    finally:
        await in_thread(reader.close)
        await appender.stop()
    assert not failures
    with pytest.raises(ConfigurationError, match="says nothing about the app"):
        await read_routing_table(address, "bank")


@pytest.mark.parametrize(("password", "mechanism"), [("another", "PLAIN"), (PASSWORD, "SCRAM-SHA-512")])
async def test_who_has_another_login_is_told(port: int, password: str, mechanism: str) -> None:
    session = KafkaSession(address_of(port, password, mechanism))
    try:
        with pytest.raises(ConfigurationError, match=rf"does not let the user '{USER}' in: .*{PASSWORD_VARIABLE}"):
            await session.open()
    finally:
        await session.close()


async def test_who_brings_no_login_is_told_that_nobody_speaks_so(port: int) -> None:
    session = KafkaSession(f"127.0.0.1:{port}")
    try:
        with pytest.raises(ConnectionError, match="nobody who speaks PLAINTEXT"):
            await session.open()
    finally:
        await session.close()
