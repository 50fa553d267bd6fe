"""The benchmark Job: waits, loads, runs, audits; what goes to which step, and its exit status and last line."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

import styx
from benchmarks import job as job_module
from benchmarks.job import DEFAULTS, Job, main
from benchmarks.ycsbt.bank import app as bank
from examples.bank import app as another
from styx.gateway.server import serve
from styx.model.app import App
from styx.testing.patience import PATIENCE_SECONDS
from tests.docs.snippets import ROOT

SMALL = ["--keys", "200", "--rate", "100", "--duration", "1", "--warm-up", "0.5", "--quiet"]


@contextmanager
def served(app: App) -> Iterator[str]:
    """The URL of an engine's gateway on a thread of its own."""
    started = threading.Event()
    urls: list[str] = []
    ends: list[Any] = []

    async def run() -> None:
        stop = asyncio.Event()
        ends.append((asyncio.get_running_loop(), stop))

        def on_started(url: str) -> None:
            urls.append(url)
            started.set()

        async with styx.embedded(app) as client:
            await serve(client.engine, port=0, on_started=on_started, stop=stop)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    assert started.wait(PATIENCE_SECONDS)
    yield urls[0]
    loop, stop = ends[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join()


def last_line(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert isinstance(facts, dict)
    return facts


def test_from_nothing_to_the_audit(capsys: pytest.CaptureFixture[str]) -> None:
    with served(bank) as url:
        assert main(["ycsbt", "--on", url, "--", *SMALL]) == 0
        out = capsys.readouterr().out.splitlines()
    facts = json.loads(out[-1])
    assert facts["steps"] == {"wait": 0, "load": 0, "run": 0, "audit": 0}
    assert facts["status"] == 0
    assert (facts["workload"], facts["rate"], facts["sent"], facts["missed"]) == ("ycsbt", 100.0, 100, 0)
    assert "job          wait ok, load ok, run ok, audit ok" in out
    assert "audit        passed" in out


def test_an_audit_that_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.driver.command import execute

    def disturbed(options: Any, make_workload: Any) -> int:
        if options.command == "audit":
            with styx.connect_sync(options.on) as client:
                client.call("account", 7, "credit", 1)
        return execute(options, make_workload)

    monkeypatch.setattr(job_module, "execute", disturbed)
    with served(bank) as url:
        assert main(["ycsbt", "--on", url, "--", *SMALL]) == 1
    facts = last_line(capsys)
    assert (facts["steps"]["run"], facts["steps"]["audit"], facts["status"]) == (0, 1, 1)


def test_another_app(capsys: pytest.CaptureFixture[str]) -> None:
    with served(another) as url:
        assert main(["deathstar.movie", "--on", url]) == 2
    captured = capsys.readouterr()
    assert "what is served there is not benchmarks.deathstar.movie.app:app" in captured.err
    assert json.loads(captured.out.splitlines()[-1])["steps"] == {"wait": 2}


def test_nobody_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ycsbt", "--on", "kafka://127.0.0.1:1", "--wait", "0.1"]) == 1
    captured = capsys.readouterr()
    assert "waiting: unavailable: Kafka at 127.0.0.1:1 cannot be reached" in captured.err
    assert "ycsbt was not served within 0.1 s" in captured.err
    assert json.loads(captured.out.splitlines()[-1])["status"] == 1


def test_a_load_that_fails_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    with served(bank) as url:
        assert main(["ycsbt", "--on", url, "--", *SMALL, "--balance", "-1"]) == 2
    assert "run" not in last_line(capsys)["steps"]


@pytest.mark.parametrize(
    "words",
    [
        ["nothing", "--on", "kafka://x"],
        ["ycsbt"],
        ["ycsbt", "--on", "kafka://x", "--", "--warehouses", "3"],
        ["tpcc", "--on", "kafka://x", "--rate", "3"],
    ],
)
def test_wrong_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2


def test_brokers_that_ask_who_it_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STYX_KAFKA_USERNAME", raising=False)
    assert main(["ycsbt", "--on", "kafka://x?protocol=SASL_PLAINTEXT&mechanism=SCRAM-SHA-512"]) == 2
    assert "needs STYX_KAFKA_USERNAME and STYX_KAFKA_PASSWORD" in capsys.readouterr().err


@pytest.mark.parametrize("workload", DEFAULTS)
def test_each_step_takes_the_options_that_it_knows(workload: str, tmp_path: Path) -> None:
    words = ["--rate", "70", "--slots", "24", "--clients", "2", "--metrics", "coordinator=http://c:8081"]
    steps = Job(workload, "kafka://k:9092", words, tmp_path)._steps
    assert [options.command for options in steps.values()] == ["load", "run", "audit"]
    assert {(options.on, options.slots) for options in steps.values()} == {("kafka://k:9092", 24)}
    run, audit = steps["run"], steps["audit"]
    assert (run.rate, run.clients, run.loaded, run.no_audit, run.duration) == (70.0, 2, True, True, 30.0)
    assert audit.witness == [run.witness]
    assert run.witness.parent == tmp_path


def test_it_needs_nothing_that_the_image_lacks() -> None:
    """Also the bank's audit: both run from the image, which has neither the tools of tests nor those of charts."""
    lock = (ROOT / "requirements-image.lock").read_text("utf-8")
    there = {"styx-dataflow", *(_plain(name) for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE))}
    modules = packages_distributions()
    lacking = {name for name, found in modules.items() if there.isdisjoint(map(_plain, found))}
    assert {"pytest", "matplotlib", "httpx"} <= lacking
    assert {"aiokafka", "hdrh"}.isdisjoint(lacking)
    subprocess.run([sys.executable, "-c", _WITHOUT, *lacking], check=True, cwd=ROOT)


_WITHOUT = """
import sys
for lacking in sys.argv[1:]:
    sys.modules[lacking] = None
from importlib import import_module
import benchmarks.job, examples.bank_audit.__main__
import benchmarks.driver.client_process, styx.client.http, styx.client.kafka.client
for name in benchmarks.job.DEFAULTS:
    import_module(f"benchmarks.{name}.options")
"""


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
