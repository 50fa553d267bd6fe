"""A cluster on a Kafka that asks for a login and keeps ACLs: those that docs/operations.md gives are enough for the
cluster and for a program that is trusted, and let nobody else in.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest

import styx
from styx.log.base import Stream
from styx.log.kafka.address import PASSWORD_VARIABLE, USERNAME_VARIABLE, parse_kafka_url
from styx.log.kafka.appender import Appender
from styx.log.kafka.topics import topics_of
from styx.ports import free_port
from styx.testing.patience import PATIENCE_SECONDS
from tests.cli.test_up_process import APP
from tests.docs.snippets import ROOT
from tests.log.kafka.blocking import records
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow
USERS = ("admin", "styx", "trusted", "stranger")
SETTINGS = """
listeners=CLIENT://127.0.0.1:PORT,CONTROLLER://127.0.0.1:CONTROLLER_PORT
advertised.listeners=CLIENT://127.0.0.1:PORT
inter.broker.listener.name=CLIENT
listener.security.protocol.map=CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:ANONYMOUS
listener.name.client.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
username="admin" password="of-admin" """ + " ".join(f'user_{each}="of-{each}"' for each in USERS) + ";\n"  # fmt: skip
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
    folder, port = Path(tempfile.mkdtemp(prefix=f"styx-test-services-{os.getpid()}-")), free_port(following=1)
    settings = folder / "more.properties"
    settings.write_text(SETTINGS.replace("CONTROLLER_PORT", str(port + 1)).replace("PORT", str(port)))
    broker = RealKafka(folder, port, {"STYX_KAFKA_SETTINGS": str(settings)})
    try:
        broker.start()
        asyncio.run(_allow(port))
        yield port
    finally:
        broker.stop()
        shutil.rmtree(folder)


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
    words = [sys.executable, "-m", "styx", "up", "shop:app", "--workers", "1", "--slots", "2", "--port", "0"]
    words += ["--log", url_of(port), "--store", f"file://{directory}/store"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STYX_")} | login("styx")
    with subprocess.Popen(
        words, cwd=directory, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith("Ctrl-C"):
                    break
            assert lines[-1].startswith("Ctrl-C"), lines
            assert "of-styx" not in "".join(lines)
            yield port
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE_SECONDS)


def as_user(monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    for name, value in login(user).items():
        monkeypatch.setenv(name, value)


async def _credit(port: int) -> Any:
    async with styx.connect(url_of(port), app="shop") as client:
        return await client.call("account", "ada", "credit", 5)


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
