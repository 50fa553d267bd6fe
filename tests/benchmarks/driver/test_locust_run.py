"""Locust, as a process of its own, on a gateway: every workload's locustfile reports requests, and no failure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from styx.process.ports import free_port
from styx.testing.patience import PATIENCE_SECONDS
from tests.docs.snippets import ROOT

pytestmark = pytest.mark.slow

START_SECONDS_MAX: Final = PATIENCE_SECONDS
LOCUST_SECONDS: Final = 3
LOCUST_SECONDS_MAX: Final = 100
ENVIRONMENT: Final = {**os.environ, "PYTHONPATH": str(ROOT)}


@contextmanager
def gateway(app: str, directory: Path) -> Iterator[str]:
    """`styx dev`, while the block lasts; its address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    words = ["-m", "styx", "dev", app, "--port", str(port), "--data-dir", str(directory)]
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, env=ENVIRONMENT, cwd=ROOT) as process:
        try:
            until_s = time.monotonic() + START_SECONDS_MAX
            while not is_ready(url):
                assert process.poll() is None
                assert time.monotonic() < until_s
                time.sleep(0.1)
            yield url
        finally:
            process.terminate()


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz"):
            return True
    except OSError:
        return False


def locust(package: str, url: str, options: str, names: set[str]) -> tuple[int, dict[str, tuple[int, int]]]:
    """Exit status, and (requests, failures) by name; of a run that was long enough for requests of all `names`."""
    seconds = LOCUST_SECONDS
    while True:
        status, counted = locust_for(seconds, package, url, options)
        if names <= counted.keys() or seconds > LOCUST_SECONDS_MAX:
            return status, counted
        seconds *= 8


def locust_for(seconds: int, package: str, url: str, options: str) -> tuple[int, dict[str, tuple[int, int]]]:
    words = ["-f", f"{package.replace('.', '/')}/locustfile.py", "--host", url, "--headless", "--json"]
    words += ["--users", "10", "--spawn-rate", "10", "--run-time", f"{seconds}s"]
    ended = subprocess.run(
        [sys.executable, "-m", "locust", *words],
        env={**ENVIRONMENT, "WORKLOAD_OPTIONS": options},
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.stdout, ended.stderr
    counted = {each["name"]: (each["num_requests"], each["num_failures"]) for each in json.loads(ended.stdout)}
    return ended.returncode, counted


@pytest.mark.parametrize(
    ("package", "app", "options", "names"),
    [
        (
            "benchmarks.ycsbt",
            "benchmarks.ycsbt.bank:app",
            "--keys 100 --overdraft 0.2 --read-only 0.2",
            {"transfer", "transfer aborted", "read"},
        ),
        (
            "benchmarks.tpcc",
            "benchmarks.tpcc.app:app",
            "--warehouses 1 --items 100 --customers 30 --rollback 0.2",
            {"new-order", "new-order aborted", "payment"},
        ),
        ("benchmarks.deathstar.hotel", "benchmarks.deathstar.hotel.app:app", "--hotels 20", {"search", "recommend"}),
        (
            "benchmarks.deathstar.movie",
            "benchmarks.deathstar.movie.app:app",
            "--mix mixed --long-text 0.2",
            {"compose", "compose aborted", "read-movie"},
        ),
        (
            "benchmarks.marketplace",
            "benchmarks.marketplace.app:app",
            "--size 0.01",
            {"add", "checkout", "delivery", "dashboard", "price", "replace"},
        ),
    ],
)
def test_it_reports_no_failure(package: str, app: str, options: str, names: set[str], tmp_path: Path) -> None:
    with gateway(app, tmp_path / "data") as url:
        load = ["-m", package, "load", "--on", url, *options.split()]
        subprocess.run([sys.executable, *load], env=ENVIRONMENT, cwd=ROOT, check=True, capture_output=True)
        status, counted = locust(package, url, options, names)
    assert status == 0
    assert names <= counted.keys()
    assert all(requests > 0 and not failures for requests, failures in counted.values())


def test_without_data_requests_fail_and_say_so(tmp_path: Path) -> None:
    with gateway("benchmarks.ycsbt.bank:app", tmp_path / "data") as url:
        status, counted = locust("benchmarks.ycsbt", url, "", {"transfer"})
    assert status == 1
    requests, failures = counted["transfer"]
    assert requests == failures > 0
