"""A cluster of real processes on real Kafka: each shows what is documented, and what it shows moves under load."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from proof.cluster.child import ChildProcess
from styx.process.ports import free_port
from styx.testing.patience import PATIENCE_SECONDS
from tests.docs.snippets import ROOT
from tests.metrics.documented import documented, shown, values
from tests.real_services import RealKafka

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SECONDS_MAX: Final = PATIENCE_SECONDS
"""For whatever is awaited; reached only by what will not happen."""
LOADS_MAX: Final = 10
"""One epoch in 64 is timed in detail, and not each of them waits for another worker."""
ACCOUNTS: Final = 40
APP: Final = """
from styx import App, Context, Operator

account = Operator("account")

@account.register
async def credit(ctx: Context, amount: int) -> None:
    await ctx.put(await ctx.get(0) + amount)

@account.register
async def transfer(ctx: Context, to: str, amount: int) -> None:
    balance = await ctx.get(0)
    if balance < amount:
        raise ValueError("not enough")
    await ctx.put(balance - amount)
    await ctx.call(account, credit, to, (amount,))

app = App("metered", operators=[account])
"""
WAYS: Final = ("sent", "received")
STEPS: Final = (
    *("sequencing", "execution", "record", "barrier_1", "validation", "barrier_2", "commit", "lock_phase", "replies"),
)
PARTS: Final = ("function", "state", "network", "protocol", "idle")
WORKERS_MOVE: Final = [
    *(f"styx_transactions_total,outcome={outcome}" for outcome in ("committed", "aborted")),
    "styx_transaction_seconds_count",
    "styx_calls_total",
    "styx_lock_phase_transactions_total",
    "styx_lock_phase_rounds_count",
    "styx_epochs_total",
    "styx_epoch_transactions_sum",
    "styx_epoch_seconds_sum",
    *(f"styx_epoch_step_seconds_sum,step={step}" for step in STEPS),
    "styx_sampled_transactions_total",
    *(f"styx_sampled_seconds_total,part={part}" for part in PARTS),
    *(f"styx_peer_{what}_total,direction={way}" for what in ("messages", "frames", "bytes") for way in WAYS),
    "styx_snapshot_parts_total,outcome=stored",
    "styx_snapshot_written_bytes_total",
    "styx_snapshot_part_seconds_count",
    "styx_entities",
    "styx_epoch",
]
COORDINATOR_MOVES: Final = [
    "styx_epoch",
    "styx_epochs_total",
    "styx_snapshots_total",
    "styx_snapshot_seconds_count",
    "styx_snapshot_written_bytes_total",
    "styx_snapshot_bytes",
]
GATEWAY_MOVES: Final = [
    *(f"styx_gateway_requests_total,status={status}" for status in (200, 409)),
    "styx_gateway_request_seconds_count",
    "styx_requester_sent_total",
    *(f"styx_requester_replies_total,outcome={outcome}" for outcome in ("committed", "aborted")),
    "styx_requester_reply_seconds_count",
]

SECTIONS: Final = {"w0": "Worker", "w1": "Worker", "coordinator": "Coordinator", "gateway": "Gateway"}
GROUPS: Final = {"workers": ("w0", "w1"), "coordinator": ("coordinator",), "gateway": ("gateway",)}


class Processes:
    """A coordinator, two workers and a gateway, with the addresses of their facts."""

    def __init__(self, directory: Path, kafka: RealKafka) -> None:
        self.directory = directory
        self.port, facts = free_port(), free_port()
        self.facts = {"coordinator": facts, "w0": free_port(), "w1": free_port()}
        self.coordinator = free_port()
        self.data = ["--log", f"kafka://{kafka.bootstrap}", "--store", f"file://{directory}/store"]
        self.children: dict[str, ChildProcess] = {}

    async def start(self) -> None:
        (self.directory / "metered.py").write_text(APP)
        words = ["coordinator", "--app", "metered:app", "--port", str(self.coordinator), "--workers", "2"]
        await self._start(
            "coordinator", *words, "--slots", "4", "--snapshot-interval", "0.5", "--silence", "600", *self.data
        )
        for name in ("w0", "w1"):
            await self._start(name, "worker", "--name", name, *self.data)
        await self._start("gateway", "gateway", "--port", str(self.port), *self.data[:2])

    async def _start(self, name: str, *words: str) -> None:
        if name in self.facts:
            words = (*words, "--http-port", str(self.facts[name]))
        if name != "coordinator":
            words = (*words, "--coordinator", f"127.0.0.1:{self.coordinator}")
        environment = {"STYX_SECRET": "0123456789abcdef", "PYTHONPATH": f"{self.directory}:{ROOT}"}
        self.children[name] = await ChildProcess.start(name, ["-m", "styx", *words], environment, self.directory)

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.facts.get(name, self.port)}/metrics"


@asynccontextmanager
async def running(directory: Path, kafka: RealKafka) -> AsyncIterator[Processes]:
    processes = Processes(directory, kafka)
    try:
        await processes.start()
        yield processes
    finally:
        for child in processes.children.values():
            await child.kill()


class Scraper:
    """Looks at /metrics of processes, by name, and sends requests to the gateway."""

    def __init__(self, processes: Processes, http: aiohttp.ClientSession) -> None:
        self._processes = processes
        self._http = http

    async def text(self, name: str) -> str:
        async with self._http.get(self._processes.url(name)) as response:
            assert response.status == 200
            return await response.text()

    async def values(self, *names: str) -> dict[str, float]:
        """Summed over the processes."""
        totals: dict[str, float] = {}
        for name in names:
            for sample, value in values(await self.text(name)).items():
                totals[sample] = totals.get(sample, 0.0) + value
        return totals

    async def until(self, name: str, what: Callable[[dict[str, float]], bool]) -> None:
        async with asyncio.timeout(SECONDS_MAX):
            while True:
                self._processes.children[name].check()
                try:
                    if what(await self.values(name)):
                        return
                except aiohttp.ClientError:
                    pass  # it is starting
                await asyncio.sleep(0.05)

    async def post(self, key: str, function: str, arguments: list[Any]) -> int:
        url = f"http://127.0.0.1:{self._processes.port}/v1/account/{key}/{function}"
        async with self._http.post(url, json=arguments, headers={"Styx-Timeout": "600"}) as response:
            await response.read()
            return response.status


async def load(scraper: Scraper) -> None:
    """Enough epochs for a sample, with calls between workers, conflicts and an abort."""
    for turn in range(100):
        calls = [
            scraper.post(f"k{(turn + i) % ACCOUNTS}", "transfer", [f"k{(turn + i + 7) % ACCOUNTS}", 1])
            for i in range(4)
        ]
        assert set(await asyncio.gather(*calls)) == {200}
    assert set(await asyncio.gather(*(scraper.post("hot", "credit", [1]) for _ in range(50)))) == {200}
    assert await scraper.post("k1", "transfer", ["k2", 1_000_000]) == 409


async def test_documented_metrics_appear_in_the_right_process_and_move(tmp_path: Path, kafka: RealKafka) -> None:
    async with running(tmp_path, kafka) as processes, aiohttp.ClientSession() as http:
        scraper = Scraper(processes, http)
        await scraper.until("coordinator", lambda seen: seen["styx_phase,phase=running"] == 1)
        await scraper.until("gateway", lambda seen: seen["styx_app_version"] == 1 and seen["styx_kafka_reachable"] == 1)
        for key in range(ACCOUNTS):
            assert await scraper.post(f"k{key}", "credit", [1_000]) == 200
        before = {name: await scraper.values(*of) for name, of in GROUPS.items()}
        snapshots = before["coordinator"]["styx_snapshots_total"]
        loads, network = 0, "styx_sampled_seconds_total,part=network"
        sampled = before["workers"].get(network, 0.0)
        while loads == 0 or (loads < LOADS_MAX and (await scraper.values("w0", "w1"))[network] <= sampled):
            await load(scraper)
            loads += 1
        await scraper.until("coordinator", lambda seen: seen["styx_snapshots_total"] > snapshots)
        after = {name: await scraper.values(*of) for name, of in GROUPS.items()}
        for name, moves in (("workers", WORKERS_MOVE), ("coordinator", COORDINATOR_MOVES), ("gateway", GATEWAY_MOVES)):
            still = [sample for sample in moves if after[name][sample] <= before[name].get(sample, 0.0)]
            assert not still, f"{name}: {still} did not grow"
        for section, name in (
            ("Worker", "w0"),
            ("Worker", "w1"),
            ("Coordinator", "coordinator"),
            ("Gateway", "gateway"),
        ):
            assert shown(await scraper.text(name)) == documented(section, "Each process of a cluster")
        workers, coordinator = after["workers"], after["coordinator"]
        assert workers["styx_transactions_total,outcome=committed"] == ACCOUNTS + 450 * loads
        assert workers["styx_transaction_seconds_count"] == ACCOUNTS + 451 * loads
        assert (workers["styx_slots"], workers["styx_entities"], workers["styx_request_lag"]) == (4, ACCOUNTS + 1, 0)
        assert (
            workers["styx_peer_messages_total,direction=sent"] == workers["styx_peer_messages_total,direction=received"]
        )
        assert (coordinator["styx_workers,state=member"], coordinator["styx_gateways"]) == (2, 1)
        await processes.children["w1"].kill()
        await scraper.until("coordinator", lambda seen: seen["styx_recoveries_total,cause=worker_lost"] == 1)
        await scraper.until("w0", lambda seen: seen["styx_loads_total"] > 1 and seen["styx_slots"] == 4)
