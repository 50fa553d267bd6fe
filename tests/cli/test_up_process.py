"""`styx up` as a person uses it, on real Kafka and a real S3 server: served, hurt, deployed to, scaled, stopped."""

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]
import pytest

from styx.client.base import Client
from styx.client.connect import connect
from styx.process.ports import free_port
from styx.testing.patience import PATIENCE_SECONDS
from tests.cli.served import STYX, unset, until_served
from tests.docs.snippets import ROOT, snippets
from tests.real_services import RealKafka, RealMinio

pytestmark = pytest.mark.slow
SECONDS_MAX = PATIENCE_SECONDS
"""For whatever is awaited; reached only by what will not happen."""
APP = """
from styx import App, Context, Operator

account = Operator("account")

@account.register
async def credit(ctx: Context, amount: int) -> int:
    balance = await ctx.get(0) + amount
    await ctx.put(balance)
    return balance

app = App("{name}", operators=[account])
"""


class Ran(NamedTuple):
    status: int
    out: str
    err: str


class Cluster:
    """A running `styx up` of the app `shop` in its own directory."""

    def __init__(
        self, directory: Path, kafka: RealKafka, minio: RealMinio | None, name: str, app: str | None = None
    ) -> None:
        self.directory = directory
        self.environment = unset()
        store = f"file://{directory}/store"
        if minio is not None:
            store = f"s3://styx/{name}"
            self.environment["STYX_S3_ENDPOINT"] = f"http://{minio.endpoint}"
            self.environment["STYX_S3_ACCESS_KEY"] = minio.access_key
            self.environment["STYX_S3_SECRET_KEY"] = minio.secret_key
        self.name = name
        self.port = free_port()
        self.module(APP.format(name=name) if app is None else app)
        data = ["--log", f"kafka://{kafka.bootstrap}", "--store", store]
        words = [*STYX, "up", "shop:app", "--workers", "2", "--slots", "4", "--port", str(self.port), *data]
        self.process = subprocess.Popen(
            words, cwd=directory, env=self.environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self.lines = until_served(self.process)

    def module(self, text: str) -> None:
        (self.directory / "shop.py").write_text(text)

    def styx(self, *words: str) -> Ran:
        ran = subprocess.run(
            [*STYX, *words],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS_MAX,
        )
        return Ran(ran.returncode, ran.stdout.strip(), ran.stderr)

    def credit(self, amount: int) -> int:
        ran = self.styx("call", "account", "ada", "credit", str(amount), "--timeout", "600")
        assert ran.status == 0, ran
        return int(ran.out)

    def status(self) -> dict[str, Any]:
        ran = self.styx("status", "--json")
        return dict(json.loads(ran.out)) if ran.out else {}

    def pids(self) -> dict[str, int]:
        facts = json.loads((self.directory / f".styx/run/{self.name}/cluster.json").read_text())
        return dict(facts["pids"])

    def members(self) -> list[str]:
        return sorted(worker["name"] for worker in self.status().get("workers", []) if worker["member"])

    def end(self, by: signal.Signals) -> tuple[int, str]:
        """Its exit code and its last words; all of its children are gone then."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        assert len(children) >= 3
        self.process.send_signal(by)
        out, _ = self.process.communicate(timeout=SECONDS_MAX)
        _, alive = psutil.wait_procs(children, timeout=SECONDS_MAX)
        assert alive == []
        return self.process.returncode, out


def until(condition: Callable[[], object]) -> None:
    """Waits until it holds; fails when it does not for long."""
    end_s = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < end_s, "it does not come"
        time.sleep(0.1)


@pytest.fixture
def cluster(tmp_path: Path, kafka: RealKafka, minio: RealMinio, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    name = request.node.name.removeprefix("test_")[:40]
    yield from running(Cluster(tmp_path, kafka, minio, name))


def running(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster; behind it, nothing of it is there any more."""
    try:
        yield cluster
    finally:
        # Children end by themselves when their supervisor is gone; what remains would be a fault, and is told.
        children = psutil.Process(cluster.process.pid).children() if cluster.process.poll() is None else []
        cluster.process.kill()
        cluster.process.communicate()
        _, alive = psutil.wait_procs(children, timeout=SECONDS_MAX)
        assert alive == []


def test_life_of_a_cluster(cluster: Cluster) -> None:
    assert f"Serving {cluster.name} at http://127.0.0.1:{cluster.port}" in cluster.lines
    assert "Code   version 1 runs" in cluster.lines
    secret = cluster.directory / f".styx/run/{cluster.name}/secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    arguments = [" ".join(child.cmdline()) for child in psutil.Process(cluster.process.pid).children()]
    assert len(arguments) == 4
    assert not any(secret.read_text() in words for words in arguments), "anybody can list arguments"
    assert cluster.credit(5) == 5

    killed = cluster.pids()["worker-1"]
    os.kill(killed, signal.SIGKILL)
    assert cluster.credit(5) == 10
    until(lambda: cluster.pids().get("worker-1", killed) != killed)
    until(lambda: cluster.members() == ["worker-1", "worker-2"])
    killed = cluster.pids()["coordinator"]
    os.kill(killed, signal.SIGKILL)
    until(lambda: cluster.status().get("phase") == "running")
    assert cluster.credit(5) == 15

    status = cluster.status()
    assert (status["phase"], status["app_version"], status["gateways"]) == ("running", 1, ["gateway"])
    assert sorted(slot for worker in status["workers"] for slot in worker["slots"]) == [0, 1, 2, 3]
    assert cluster.styx("status").out.startswith(f"app       {cluster.name}, version 1\nstate     running")

    exit_code, words = cluster.end(signal.SIGINT)
    assert exit_code == 0
    assert words.splitlines()[-1] == "Stopped."
    assert cluster.styx("status").status == 1
    assert secret.exists(), "the store's code is signed with it"


def test_deploying(cluster: Cluster) -> None:
    assert cluster.credit(5) == 5
    assert cluster.styx("deploy", "shop:app") == Ran(0, "version 1 runs already, and is this very code", "")
    cluster.module(APP.format(name=cluster.name).replace("+ amount", "+ 100 * amount"))
    checked = "stored entities checked: 1; all of them fit"
    assert cluster.styx("deploy", "shop:app") == Ran(0, f"version 2 runs\n{checked}", "")
    assert cluster.credit(1) == 105
    os.kill(cluster.pids()["coordinator"], signal.SIGKILL)
    until(lambda: cluster.status().get("phase") == "running")
    assert cluster.credit(1) == 205, "a coordinator that starts again does not go back to what up was started with"
    rolled_back = f"version 3 runs, with the code from before version 2\n{checked}"
    assert cluster.styx("deploy", "--rollback") == Ran(0, rolled_back, "")
    assert cluster.credit(1) == 206
    cluster.module(APP.format(name=cluster.name).replace('Operator("account"', 'Operator("konto"'))
    ran = cluster.styx("deploy", "shop:app")
    assert (ran.status, ran.out) == (1, "")
    assert "operator 'account' has state" in ran.err
    assert "version 3 goes on" in ran.err
    assert cluster.credit(1) == 207


def test_another_up_that_cannot_run_disturbs_nobody(cluster: Cluster, kafka: RealKafka, tmp_path: Path) -> None:
    assert cluster.credit(5) == 5
    generation, coordinator = cluster.status()["generation"], cluster.pids()["coordinator"]
    there = ["--log", f"kafka://{kafka.bootstrap}"]
    same, none = [*there, "--store", f"s3://styx/{cluster.name}"], [*there, "--store", f"s3://styx/{cluster.name}-not"]
    elsewhere = ["--slots", "4", "--port", "0", "--run-dir", str(tmp_path / "elsewhere")]
    for words, complaint in (
        ([*same, "--port", str(cluster.port), "--run-dir", str(tmp_path / "other")], "Choose another --port"),
        ([*same, *elsewhere], "Start with the secret that this deployment was made with"),
        ([*none, *elsewhere], "start with the store that this deployment was made with"),
    ):
        ran = cluster.styx("up", "shop:app", *words)
        assert ran.status in (1, 2)
        assert complaint in ran.err
    assert cluster.credit(5) == 10
    until(lambda: cluster.status().get("phase") == "running")
    assert (cluster.status()["generation"], cluster.pids()["coordinator"]) == (generation, coordinator)


class Credits:
    """Credits of 1 to a few accounts, through Kafka and over HTTP in turns, from here until `stop`."""

    ACCOUNTS = 5
    PAUSE_SECONDS = 0.02

    def __init__(self, kafka_url: str, http_url: str, app: str) -> None:
        self.given: dict[str, list[int]] = {f"b{number}": [] for number in range(self.ACCOUNTS)}
        self._urls = (kafka_url, http_url)
        self._app = app
        self._stopped = threading.Event()
        self._threads = ThreadPoolExecutor(1)
        self._running = self._threads.submit(lambda: asyncio.run(self._run()))

    def stop(self) -> None:
        """Returns once each has its reply; raises what broke."""
        self._stopped.set()
        self._running.result(SECONDS_MAX)
        self._threads.shutdown()

    async def _run(self) -> None:
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(connect(url, self._app)) for url in self._urls]
            async with asyncio.TaskGroup() as tasks:
                for number in itertools.takewhile(lambda _: not self._stopped.is_set(), itertools.count()):
                    tasks.create_task(self._credit(clients[number % 2], f"b{number % self.ACCOUNTS}", f"once-{number}"))
                    await asyncio.sleep(self.PAUSE_SECONDS)

    async def _credit(self, client: Client, key: str, once: str) -> None:
        while True:
            try:
                balance = await client.call("account", key, "credit", 1, idempotency_key=once, timeout=SECONDS_MAX)
            except ConnectionError:
                await asyncio.sleep(self.PAUSE_SECONDS)
            else:
                self.given[key].append(balance)
                return


def test_scaling_under_load(cluster: Cluster, kafka: RealKafka) -> None:
    assert cluster.members() == ["worker-1", "worker-2"]
    generation = cluster.status()["generation"]
    credits = Credits(f"kafka://{kafka.bootstrap}", f"http://127.0.0.1:{cluster.port}", cluster.name)
    try:
        assert cluster.styx("scale", "4").status == 0
        until(lambda: cluster.members() == ["worker-1", "worker-2", "worker-3", "worker-4"])
        assert cluster.styx("scale", "2").status == 0
        until(lambda: len(cluster.pids()) == 4)
        assert len(cluster.members()) == 2
        assert cluster.status()["generation"] > generation
    finally:
        credits.stop()
    for key, given in credits.given.items():
        assert len(given) > 10
        assert sorted(given) == list(range(1, len(given) + 1)), "each credit counts once, and each has its own reply"
        assert cluster.styx("call", "account", key, "credit", "0").out == str(len(given))
    ran = cluster.styx("scale", "5")
    assert (ran.status, ran.err) == (1, "styx: not scaled: 4 slots can be shared by 1 to 4 workers, not by 5\n")


def test_children_end_with_a_killed_supervisor(cluster: Cluster) -> None:
    assert cluster.credit(5) == 5
    assert cluster.end(signal.SIGKILL)[0] == -signal.SIGKILL
    ran = cluster.styx("status")
    assert (ran.status, ran.out) == (1, ""), "what a killed one has left is not a cluster"


def test_the_documented_clients(cluster: Cluster, kafka: RealKafka) -> None:
    (code,) = (snippet.code for snippet in snippets("docs/services.md"))
    for before, after in (
        ("kafka://127.0.0.1:9092", f"kafka://{kafka.bootstrap}"),
        ("http://127.0.0.1:8080", f"http://127.0.0.1:{cluster.port}"),
        ('app="bank"', f'app="{cluster.name}"'),
        ('"open"', '"credit"'),
    ):
        assert before in code
        code = code.replace(before, after)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert ran.returncode == 0, ran.stderr
    assert cluster.styx("call", "account", "carol", "credit", "0").out == "100"
