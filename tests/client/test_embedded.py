"""The blocking embedded client: any thread, one engine, closed when its process ends, refused in a fork."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

import styx
from styx import ConfigurationError
from styx.client.embedded import SyncEmbeddedClient
from styx.embedded_engine.storage import DataDirectory, DataDirectoryInUse
from tests.embedded.ledger_app import app
from tests.forking import in_fork


def test_the_names_of_the_other_blocking_client(tmp_path: Path) -> None:
    with styx.embedded_sync(app, tmp_path) as client:
        assert client.call("ledger", "a", "add") == 1
        assert client.request("ledger", "a", "add", idempotency_key="k").result == 2
        assert client.submit("ledger", "a", "add", idempotency_key="k").result().result == 2
        assert client.load("ledger", [("b", 5), ("c", 6)]).loaded == 2
        assert client.state() == {("ledger", "a"): 2, ("ledger", "b"): 5, ("ledger", "c"): 6}
        with pytest.raises(styx.RequestRejected, match="unknown_function"):
            client.call("ledger", "a", "nothing")
    with pytest.raises(ConfigurationError, match="with"):
        client.call("ledger", "a", "add")
    client.close()
    with styx.embedded_sync(app, tmp_path) as client:
        assert client.call("ledger", "a", "add") == 3


def test_from_many_threads() -> None:
    n_threads, each = 8, 25
    together = Barrier(n_threads)

    def add(client: SyncEmbeddedClient) -> list[Any]:
        together.wait()
        return [client.call("ledger", "a", "add") for _ in range(each)]

    with styx.embedded_sync(app) as client, ThreadPoolExecutor(n_threads) as pool:
        seen = [pool.submit(add, client) for _ in range(n_threads)]
        assert sorted(n for numbers in seen for n in numbers.result()) == list(range(1, n_threads * each + 1))


def test_threads_that_open_it_at_once_share_one_engine(tmp_path: Path) -> None:
    client = styx.embedded_sync(app, tmp_path)
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: client.open(), range(8)))
    assert opened == [client] * 8
    assert client.call("ledger", "a", "add") == 1
    client.close()
    DataDirectory(tmp_path).release()


def test_a_crash_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    with styx.embedded_sync(app, tmp_path) as client:
        assert client.call("ledger", "a", "add") == 1
        client.crash()
        with pytest.raises(styx.NotSent, match="crashed"):
            client.call("ledger", "a", "add")
    with styx.embedded_sync(app, tmp_path) as client:
        assert client.state() == {("ledger", "a"): 1}


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="n_slots"):
        styx.embedded_sync(app, n_slots=0)
    second = styx.embedded_sync(app, tmp_path)
    with styx.embedded_sync(app, tmp_path), pytest.raises(DataDirectoryInUse):
        second.open()
    with second:  # it can be tried again
        assert second.call("ledger", "a", "add") == 1


@pytest.mark.parametrize("use", ["call", "submit", "open", "state", "load"])
def test_a_fork_is_refused_clearly(tmp_path: Path, use: str) -> None:
    arguments = {"call": ("ledger", "a", "add"), "submit": ("ledger", "a", "add"), "load": ("ledger", [("x", 1)])}
    with styx.embedded_sync(app, tmp_path) as client:
        said = in_fork(lambda: str(getattr(client, use)(*arguments.get(use, ()))))
        assert said.startswith(f"ConfigurationError: this client was opened in process {os.getpid()}")
        assert "Open a client after the fork" in said

        def close() -> str:
            client.close()
            return "closed"

        assert in_fork(close) == "closed"
        assert client.call("ledger", "a", "add") == 1


def test_a_client_that_was_not_open_can_be_opened_by_the_fork(tmp_path: Path) -> None:
    client = styx.embedded_sync(app, tmp_path)

    def use() -> str:
        with client:
            return str(client.call("ledger", "a", "add"))

    assert in_fork(use) == "1"
    with client:
        assert client.call("ledger", "a", "add") == 2


def test_a_fork_does_not_keep_the_directory(tmp_path: Path) -> None:
    """One that outlives the engine, such as a worker of a web server that another one has opened."""
    reading, writing = os.pipe()
    here, there = os.pipe()
    held = DataDirectory(tmp_path)
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        os.write(there, b"x")
        os.read(reading, 1)  # until the parent is done
        os._exit(0)
    os.read(here, 1)
    held._descriptor, descriptor = None, held._descriptor
    assert descriptor is not None
    os.close(descriptor)  # as the kernel does when the parent dies
    DataDirectory(tmp_path).release()
    for end in (writing, reading, here, there):
        os.close(end)
    os.waitpid(pid, 0)


PROGRAM = """
import sys, styx
from tests.embedded.ledger_app import app
client = styx.embedded_sync(app, sys.argv[1]).open()
print(client.call("ledger", "a", "add"))
"""


@pytest.mark.slow
def test_one_that_nobody_closes_is_closed_with_its_process(tmp_path: Path) -> None:
    for expected in ("1\n", "2\n"):
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=600, check=False
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, expected, "")
    # In order: all of it is in a snapshot, and nothing is run again.
    with styx.embedded_sync(app, tmp_path) as client:
        assert client.state() == {("ledger", "a"): 2}
        assert client._client.engine.counters.committed == 0
