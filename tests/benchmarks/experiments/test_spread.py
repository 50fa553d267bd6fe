"""One load on several clusters: each gets its share and an audit of its own. On engines in this process, and once on
real clusters.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import styx
from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.deployment.own_cluster import deployment_of
from benchmarks.driver.deployment.replies import Replies
from benchmarks.driver.styx_target import settle
from benchmarks.driver.workload import Audit, Planned
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.place import place
from benchmarks.experiments.settings import Common
from benchmarks.experiments.spaced_worker import MODULE, space
from benchmarks.experiments.spread.deployment import RepliesOfAll, spread_over
from benchmarks.experiments.spread.workload import Spread
from benchmarks.experiments.subject import Load, subjects
from benchmarks.ycsbt.settings import Settings
from styx.client.base import Client
from styx.host.waiters import Receiver
from styx.messages import Reply

CLUSTERS = 3
CLIENTS = 2
REQUESTS = 90
SETTINGS = Settings(keys=30, balance=500)


class Through:
    """A `Target`, and a factory of itself, of an engine in this process; it counts."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.submitted = 0
        self.connected = 0

    def __call__(self, timeout_s: float, in_flight_max: int) -> Through:
        return self

    async def connect(self) -> None:
        self.connected += 1

    def submit(self, planned: Planned, receiver: Receiver) -> None:
        self.submitted += 1
        _, operator, key, function, arguments = planned[:5]
        asyncio.ensure_future(self._client.submit(operator, key, function, *arguments)).add_done_callback(
            partial(settle, receiver)
        )

    async def close(self) -> None:
        self.connected -= 1


@asynccontextmanager
async def opened(client: Client) -> AsyncIterator[Client]:
    yield client


def pids() -> Mapping[str, Sequence[int]]:
    return {}


Tampering = Callable[[Sequence[Client]], Awaitable[None]]


async def _nothing(_clients: Sequence[Client]) -> None: ...


async def spent(targets: list[Through], tamper: Tampering = _nothing) -> Audit:
    """A run of several client processes on engines that `targets` gets, what `tamper` does to them, and the audit."""
    workload = Spread(SETTINGS, CLUSTERS)
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(styx.embedded(workload.app)) for _ in range(CLUSTERS)]
        targets += map(Through, clients)
        deployment = spread_over(
            [
                Deployment(facts={}, open_client=partial(opened, client), make_target=target, pids=pids)
                for client, target in zip(clients, targets, strict=True)
            ]
        )
        async with deployment.open_client() as together:
            for loading in workload.initial():
                await together.load(loading.operator, loading.pairs)
            witnesses = [await witnessed(deployment, workload, number) for number in range(CLIENTS)]
            await tamper(clients)
            return await workload.audit(together, witnesses)


async def witnessed(deployment: Deployment, workload: Spread, number: int) -> Any:
    assert deployment.make_target is not None
    target = deployment.make_target(5.0, 1000)
    generator = workload.generator(number, CLIENTS, 1)
    await target.connect()
    sent: list[tuple[Planned, asyncio.Future[Reply]]] = []
    for _ in range(REQUESTS):
        planned, future = generator.next(), asyncio.get_running_loop().create_future()
        target.submit(planned, future)
        sent.append((planned, future))
    for planned, future in sent:
        generator.answered(planned, await future)
    await target.close()
    # As it is between two processes.
    return msgspec.msgpack.decode(msgspec.msgpack.encode(generator.witness()))


def test_each_cluster_gets_its_share_and_an_audit() -> None:
    targets: list[Through] = []
    audit = asyncio.run(spent(targets))
    assert audit.violations == []
    assert [(target.submitted, target.connected) for target in targets] == [
        (CLIENTS * REQUESTS // CLUSTERS, 0)
    ] * CLUSTERS
    for number in range(CLUSTERS):
        assert any(text.startswith(f"cluster {number}: all 30 accounts") for text in audit.checked)


def test_money_that_went_from_one_cluster_to_another_is_found_on_both() -> None:
    async def tamper(clients: Sequence[Client]) -> None:
        for client, by in ((clients[0], -1), (clients[2], 1)):
            balance = await client.call("account", 7, "read")
            await client.load("account", [(7, {"balance": balance + by})], replace=True)

    audit = asyncio.run(spent([], tamper))
    assert {text.partition(":")[0] for text in audit.violations} == {"cluster 0", "cluster 2"}


def test_clusters_and_client_processes_get_requests_of_their_own() -> None:
    workload = Spread(SETTINGS, 2)

    def drawn(client: int) -> dict[Any, list[tuple[Any, ...]]]:
        generator = workload.generator(client, 2, 1)
        each: dict[Any, list[tuple[Any, ...]]] = {}
        for _ in range(20):
            planned = generator.next()
            each.setdefault(planned.operator, []).append((planned.key, *planned.arguments))
        return each

    every = [requests for client in range(2) for requests in drawn(client).values()]
    assert len(every) == 4
    assert all(one != other for number, one in enumerate(every) for other in every[:number])
    assert drawn(0) == drawn(0)


def test_processes_are_together_and_what_they_share_is_there_once() -> None:
    each = [
        Deployment(
            facts={"kind": "cluster"},
            open_client=lambda: opened(NotImplemented),
            pids=lambda number=number: {"worker": [number, number + 1], "broker": [99]},  # type: ignore[misc]
            urls=lambda number=number: {"worker": [f"http://{number}"]},  # type: ignore[misc]
            make_target=Through(NotImplemented),
        )
        for number in (10, 20)
    ]
    deployment = spread_over(each)
    assert deployment.pids() == {"worker": [10, 11, 20, 21], "broker": [99]}
    assert deployment.urls() == {"worker": ["http://10", "http://20"]}
    assert deployment.facts == {"kind": "cluster", "clusters": 2}


class Seen:
    """A `RepliesSeen` that tells what it was asked."""

    def __init__(self, replies: Replies, ends: dict[int, int]) -> None:
        self.replies = replies
        self._ends = ends
        self.asked: dict[int, int] = {}

    def ends(self) -> dict[int, int]:
        return self._ends

    def since(self, offsets: Mapping[int, int]) -> Replies:
        self.asked = dict(offsets)
        return self.replies


def test_replies_are_counted_behind_each_clusters_own_ends() -> None:
    each = [Seen(Replies(10, 1), {0: 5, 1: 6}), Seen(Replies(20, 2), {0: 7, 1: 8})]
    together = RepliesOfAll(each)
    assert together.since(together.ends()) == Replies(30, 3)
    assert [one.asked for one in each] == [{0: 5, 1: 6}, {0: 7, 1: 8}]


@pytest.mark.slow
def test_real_clusters_under_one_load(tmp_path: Path) -> None:
    bench = Bench(Common(window_s=1.0, warm_up_s=0.5, clients=2, keys=100, out=tmp_path))

    async def scenario() -> None:
        async with place(bench) as here:
            clusters = [await here.cluster(f"of-two-{number}", 2, slots=2, worker_module=MODULE) for number in range(2)]
            for cluster in clusters:
                space(cluster.options.directory, 0.05)
            deployment = spread_over([deployment_of(cluster) for cluster in clusters])
            load = Load("two clusters", Settings(keys=100, n_slots=2, multi_partition=1.0), clusters=2)
            # Behind the block is the audit.
            async with subjects(bench, deployment, [load]) as (subject,):
                result = await subject.run(200.0)
            assert sum(result.outcomes.values()) == 200
            counted = Counter({role: usage.processes for role, usage in result.roles.items()})
            assert counted == {"client": 2, "worker": 4, "coordinator": 2, "broker": 1, "store": 1}

    asyncio.run(scenario())
