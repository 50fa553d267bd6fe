"""A cluster on a Kafka that asks for a login and keeps ACLs: those that docs/operations.md gives are enough for the
cluster and for a program that is trusted, and let nobody else in.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest

import styx
from styx.kafka.address import PASSWORD_VARIABLE, USERNAME_VARIABLE, parse_kafka_url
from styx.kafka.appender import Appender
from styx.kafka.topics import topics_of
from styx.log.base import Stream
from styx.testing.patience import PATIENCE_SECONDS
from tests.cli.served import unset, up
from tests.cli.test_up_process import APP
from tests.docs.snippets import ROOT
from tests.kafka.blocking import records
from tests.kafka.login_broker import login_broker
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow
USERS = ("admin", "styx", "trusted", "stranger")
ACLS = """
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:ANONYMOUS
"""
RESOURCES = {"--topic": 2, "--transactional-id": 5}
OPERATIONS = {"All": 2, "Read": 3, "Write": 4, "Describe": 8}
PATTERNS = {"literal": 3, "prefixed": 4}
ALLOW = 3


def documented() -> Iterator[tuple[int, str, int, str, str, int, int]]:
    """What the commands in the document make, for the app `shop`."""
    text = (ROOT / "docs/operations.md").read_text().replace("\\\n", " ")
    for line in re.findall(r"^    (kafka-acls.sh .*)$", text, re.MULTILINE):
        words = shlex.split(line.replace("APP", "shop"))
        options = [(word, words[number + 1]) for number, word in enumerate(words[:-1]) if word.startswith("--")]
        said = dict(options)
        pattern = PATTERNS[said.get("--resource-pattern-type", "literal")]
        for kind, name in options:
            for operation in (value for option, value in options if option == "--operation"):
                if kind in RESOURCES:
                    who = said["--allow-principal"]
                    yield RESOURCES[kind], name, pattern, who, "*", OPERATIONS[operation], ALLOW


def url_of(port: int) -> str:
    return f"kafka://127.0.0.1:{port}?protocol=SASL_PLAINTEXT&mechanism=PLAIN"


def login(user: str) -> dict[str, str]:
    return {USERNAME_VARIABLE: user, PASSWORD_VARIABLE: f"of-{user}"}


@pytest.fixture(scope="module")
def port(kafka: RealKafka) -> Iterator[int]:
    """Of a broker with the documented ACLs."""
    with login_broker({user: f"of-{user}" for user in USERS}, ACLS) as port:
        asyncio.run(_allow(port))
        yield port


async def _allow(port: int) -> None:
    admin = AIOKafkaAdminClient(
        bootstrap_servers=f"127.0.0.1:{port}",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="admin",
        sasl_plain_password="of-admin",
    )
    await admin.start()
    try:
        made = list(documented())
        assert len(made) == 5
        for each in made:
            answer = await admin._send_request(CreateAclsRequest(*each))
            assert [code for code, _ in answer.creation_responses] == [0], answer
    finally:
        await admin.close()


@pytest.fixture(scope="module")
def cluster(port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A cluster that logs in as `styx`; gives the broker's port."""
    directory = tmp_path_factory.mktemp("acls")
    (directory / "shop.py").write_text(APP.format(name="shop"))
    options = ["--workers", "1", "--slots", "2", "--port", "0", "--store", f"file://{directory}/store"]
    with up(directory, unset() | login("styx"), *options, "--log", url_of(port)) as (_, lines):
        assert "of-styx" not in "".join(lines)
        yield port


def as_user(monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    for name, value in login(user).items():
        monkeypatch.setenv(name, value)


async def _credit(port: int) -> Any:
    async with styx.connect(url_of(port), app="shop") as client:
        return await client.call("account", "ada", "credit", 5, timeout=PATIENCE_SECONDS)


def test_a_trusted_program_calls_functions(cluster: int, monkeypatch: pytest.MonkeyPatch) -> None:
    as_user(monkeypatch, "trusted")
    assert asyncio.run(_credit(cluster)) % 5 == 0


def test_a_stranger_does_not(cluster: int, monkeypatch: pytest.MonkeyPatch) -> None:
    as_user(monkeypatch, "stranger")
    with pytest.raises((styx.ConfigurationError, styx.NotSent)) as caught:
        asyncio.run(_credit(cluster))
    assert "of-stranger" not in str(caught.value)


@pytest.mark.parametrize("stream", [Stream.EPOCHS, Stream.REPLIES])
def test_not_even_a_trusted_program_writes_what_the_cluster_does(cluster: int, stream: Stream) -> None:
    async def main() -> list[BaseException]:
        failures: list[BaseException] = []
        topics = topics_of("shop")
        appender = Appender(parse_kafka_url(url_of(cluster), login("trusted")), on_failure=failures.append)
        await appender.start(topics)
        try:
            await appender.append(topics.of(stream), 0, records(range(1)))
        except Exception as error:  # noqa: BLE001 - which of them is looked at below
            failures.append(error)
        finally:
            await appender.stop()
        return failures

    failures = asyncio.run(main())
    assert failures
    assert "AUTHORIZATION_FAILED" in repr(failures).upper().replace("AUTHORIZATIONFAILED", "AUTHORIZATION_FAILED")
