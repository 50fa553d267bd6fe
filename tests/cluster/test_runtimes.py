"""Workers of two runtimes on a real cluster: never together, and neither replays what the other ran; changed behind an
orderly stop.

The other runtime is one in name only, or the other form of this engine where it is compiled, or the interpreter that
STYX_TEST_OTHER_PYTHON names: one of another minor version, with what `requirements-run.lock` has.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import styx
from proof.cluster import ClusterOptions, ClusterUnderTest
from styx.client.base import Client
from styx.native.form import FORM
from styx.process.runtime import RUNTIME
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow

OTHER_PYTHON = os.environ.get("STYX_TEST_OTHER_PYTHON")
ROOT = Path(styx.__file__).parents[1]
BY_NAME = """
import sys

from styx.cluster.worker import node

node.RUNTIME = "CPython 2.7, another form"
from styx.cli import main

sys.exit(main())
"""
"""Of a worker's process."""
RUN = """
import os
import sys

os.environ.update({environment!r})
os.execv({python!r}, [{python!r}, "-m", "styx", *sys.argv[1:]])
"""
"""Of a process that becomes another one."""


def plain() -> str:
    """A worker of the plain form."""
    if not FORM.extensions:
        pytest.skip("nothing is compiled: there is no other form")
    return RUN.format(python=sys.executable, environment={"STYX_PLAIN": "1"})


def another_python(directory: Path) -> str:
    """Any process of Styx in another interpreter."""
    if OTHER_PYTHON is None:
        pytest.skip("STYX_TEST_OTHER_PYTHON names no interpreter")
    return RUN.format(python=OTHER_PYTHON, environment={"PYTHONPATH": f"{directory}{os.pathsep}{ROOT}"})


def options(kafka: RealKafka, directory: Path) -> ClusterOptions:
    return ClusterOptions(
        app="examples.bank:app",
        name=f"runtimes-{secrets.token_hex(4)}",
        kafka=kafka.bootstrap,
        store=f"file://{directory}/store",
        directory=directory,
        workers=1,
        slots=4,
        snapshot_interval_s=600.0,
    )


async def said(cluster: ClusterUnderTest, place: int, words: str) -> str:
    """Waits until a worker has said so; all that it has said. It is there still."""
    worker = cluster.workers[place]
    assert worker is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        while words not in worker.log.read_text():
            worker.check()
            await asyncio.sleep(0.1)
    return worker.log.read_text()


async def turned_away(cluster: ClusterUnderTest, place: int) -> None:
    """Waits until the worker has been told why: once, with both runtimes, and what to do."""
    text = await said(cluster, place, "turns this worker away")
    assert f"this cluster runs on {RUNTIME}, and the worker on CPython " in text
    assert f"and the worker on {RUNTIME}" not in text
    assert "To change the form, stop the coordinator" in text
    assert text.count("turns this worker away") == 1


async def kill_workers(cluster: ClusterUnderTest) -> None:
    for place, worker in enumerate(cluster.workers):
        if worker is not None:
            await worker.kill()
        cluster.workers[place] = None


async def credit(client: Client) -> int:
    """The balance behind a credit of one."""
    balance: int = await client.call("account", "ada", "credit", 1, timeout=PATIENCE_SECONDS)
    return balance


async def refused_and_replayed(cluster: ClusterUnderTest, other: ClusterOptions) -> None:
    """Another runtime joins no cluster, and replays nothing; the one that ran it does. The last balance is 102."""
    own = cluster.options
    await cluster.start()
    async with cluster.client() as client:
        await client.call("account", "ada", "open", 100, timeout=PATIENCE_SECONDS)
        cluster.options = other
        await cluster.add_worker()
        await turned_away(cluster, 1)
        await credit(client)

        await kill_workers(cluster)
        assert cluster.coordinator is not None
        await cluster.coordinator.kill()
        await cluster.start_coordinator()
        await cluster.start_worker(0)
        await turned_away(cluster, 0)
        await kill_workers(cluster)
        cluster.options = own
        await cluster.start_worker(0)
        assert await credit(client) == 102


async def exchange(
    cluster: ClusterUnderTest, options: ClusterOptions, last_words: str = "the snapshot is stored"
) -> None:
    """An orderly stop of the coordinator, and everything anew on another runtime."""
    assert cluster.coordinator is not None
    await cluster.coordinator.stop()
    assert f"stopping: {last_words}" in cluster.coordinator.log.read_text()
    await kill_workers(cluster)
    cluster.options = options
    await cluster.start_coordinator()
    await cluster.start_worker(0)


@pytest.mark.parametrize("kind", ["in name", "form"])
def test_another_form(kafka: RealKafka, tmp_path: Path, kind: str) -> None:
    own = options(kafka, tmp_path)
    (tmp_path / "other_runtime.py").write_text(plain() if kind == "form" else BY_NAME)
    other = replace(own, worker_module="other_runtime")

    async def run() -> None:
        async with ClusterUnderTest(own) as cluster:
            await refused_and_replayed(cluster, other)
            async with cluster.client() as client:
                await exchange(cluster, other)
                assert await credit(client) == 103
                await exchange(cluster, own)
                assert await credit(client) == 104

    asyncio.run(run())


def test_another_minor_version_of_python(kafka: RealKafka, tmp_path: Path) -> None:
    """It never runs this cluster, whose package is the first one's; nothing is lost by trying."""
    own = options(kafka, tmp_path)
    (tmp_path / "other_runtime.py").write_text(another_python(tmp_path))
    other = replace(own, worker_module="other_runtime")

    async def run() -> None:
        async with ClusterUnderTest(own) as cluster:
            await refused_and_replayed(cluster, other)
            async with cluster.client() as client:
                assert await credit(client) == 103
                await exchange(cluster, replace(other, coordinator_module="other_runtime"))
                text = await said(cluster, 0, "cannot run here")
                assert "the package was made with Python" in text
                await exchange(cluster, own, "there is no new snapshot")  # nothing has run
                assert await credit(client) == 104

    asyncio.run(run())
