"""The benchmark Job of each workload, small, through the brokers of a cluster of real processes."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.job import main
from proof.cluster import ClusterOptions, ClusterUnderTest
from tests.real_services import RealKafka, RealMinio

pytestmark = pytest.mark.slow

APPS = {
    "ycsbt": "benchmarks.ycsbt.bank:app",
    "tpcc": "benchmarks.tpcc.app:app",
    "deathstar.hotel": "benchmarks.deathstar.hotel.app:app",
    "deathstar.movie": "benchmarks.deathstar.movie.app:app",
    "marketplace": "benchmarks.marketplace.app:app",
}
SMALL = {
    "ycsbt": ["--keys", "500"],
    "tpcc": ["--warehouses", "1", "--items", "200", "--customers", "30"],
    "deathstar.hotel": ["--users", "50", "--places", "50"],
    "deathstar.movie": ["--users", "50", "--movies", "50"],
    "marketplace": ["--size", "0.01"],
}


@contextmanager
def running(options: ClusterOptions) -> Iterator[None]:
    """A cluster that starts beside whoever waits for it, on a thread of its own."""
    ends: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def run() -> None:
        stop = asyncio.Event()
        ends.append((asyncio.get_running_loop(), stop))
        async with ClusterUnderTest(options) as cluster:
            await cluster.start_coordinator()
            for place in range(options.workers):
                await cluster.start_worker(place)
            await stop.wait()
            cluster.check()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        yield
    finally:
        loop, stop = ends[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@pytest.mark.parametrize("workload", APPS)
def test_it_waits_loads_runs_and_audits(
    workload: str, kafka: RealKafka, minio: RealMinio, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"job-{secrets.token_hex(4)}"
    options = ClusterOptions(
        app=APPS[workload],
        name=name,
        kafka=kafka.bootstrap,
        store=name,
        s3_endpoint=f"http://{minio.endpoint}",
        directory=tmp_path,
    )
    words = ["--app-name", name, "--slots", str(options.slots), "--rate", "20", "--duration", "3", "--quiet"]
    with running(options):
        status = main([workload, "--on", f"kafka://{kafka.bootstrap}", "--", *words, *SMALL[workload]])
    captured = capsys.readouterr()
    assert status == 0, captured.out + captured.err
    facts = json.loads(captured.out.splitlines()[-1])
    assert facts["steps"] == {"wait": 0, "load": 0, "run": 0, "audit": 0}
    assert (facts["sent"], facts["missed"], facts["duplicated"]) == (60, 0, 0)
    assert "waiting: " in captured.err
