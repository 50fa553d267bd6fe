"""The echo on a real broker: every request comes back once, to its own requester."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
import uvloop

from benchmarks.driver.result import SearchResult, read
from benchmarks.reference.__main__ import main
from benchmarks.reference.echo_deployment import ROLE, echo_on
from benchmarks.ycsbt.bank import account
from proof.cluster.child import ChildFailed
from styx.client.kafka.client import KafkaClient
from styx.model.app import App
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow


def test_each_request_comes_back_with_its_arguments(kafka: RealKafka, tmp_path: Path) -> None:
    app = App("echo-arguments", [account])

    async def scenario() -> None:
        async with echo_on(kafka.bootstrap, app, 4, tmp_path) as deployment:
            assert deployment.replies is not None
            since = await asyncio.to_thread(deployment.replies.ends)
            url = f"kafka://{kafka.bootstrap}"
            async with KafkaClient(url, app) as one, KafkaClient(url, app.name) as other:
                sent = [(client, key) for key in range(300) for client in (one, other)]
                replies = await asyncio.gather(
                    *(client.request("account", key, "transfer", key + 1, key) for client, key in sent)
                )
            assert [reply.result for reply in replies] == [[key + 1, key] for _, key in sent]
            assert len({reply.tid for reply in replies}) == len(sent)
            assert await asyncio.to_thread(deployment.replies.since, since) == (len(sent), 0)

    uvloop.run(scenario())


def test_an_echo_that_has_ended_is_told(kafka: RealKafka, tmp_path: Path) -> None:
    app = App("echo-ended", [account])

    async def scenario() -> None:
        async with echo_on(kafka.bootstrap, app, 1, tmp_path) as deployment:
            # Not even a request: nobody but the benchmark's clients writes there, so whatever it is, it is a fault.
            (pid,) = deployment.pids()[ROLE]
            async with KafkaClient(f"kafka://{kafka.bootstrap}", app) as client:
                await client.call("account", 1, "read")

            os.kill(pid, signal.SIGKILL)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    deployment.pids()
                    await asyncio.sleep(0.02)

    with pytest.raises(ChildFailed, match="ended by itself"):
        uvloop.run(scenario())


def test_the_command_measures_each_process(kafka: RealKafka, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    words = "--rates 200 --no-search --duration 1 --warm-up 0.5 --slots 4 --keys 50 --quiet"
    assert main(["echo", *words.split(), "--out", str(out)]) == 0
    result = read(out)
    assert isinstance(result, SearchResult)
    (step,) = result.steps
    assert step.result.sent == 200
    assert set(step.result.roles) == {"client", ROLE, "broker"}
    assert result.duplicated == 0
    assert result.audit is not None
    assert result.audit.checked == ["300 replies: each has its own request's arguments"]
