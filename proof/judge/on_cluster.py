"""Records the requests and replies of a cluster's clients while real processes of the cluster are killed and stopped.

All models are recorded at the same time, through Kafka and through the gateway. So the order in real time is judged
between clients that share only the cluster. The faults are few and short, and each is mended at its end;
`proof.cluster.scenarios` has more, for the audit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import Final, Literal, NamedTuple

from proof.cluster.child import ChildFailed
from proof.cluster.cluster import ClusterUnderTest
from proof.cluster.services import Service
from proof.judge.app import entity_of
from proof.judge.counted import Counted
from proof.judge.record import TRY_AGAIN
from proof.judge.recorded import KINDS, Kind, Recorded
from proof.judge.recording import NUMBERS_PER_KIND, recorded_of
from proof.judge.rows.pairs import Paired, run_pairs
from styx.client.base import Client
from styx.client.connect import connect
from styx.testing.patience import PATIENCE_SECONDS

Way = Literal["kafka", "http"]
WAYS: Final[tuple[Way, ...]] = ("kafka", "http")

STEADY_SECONDS: Final = 2.0
"""The time without a fault before each fault and after the last, unless the plan says another."""
TRANSACTIONS_MAX: Final = 20_000
"""Limit on each model's transactions, because adya's time and memory grow with them."""
ANSWER_SECONDS_MAX: Final = PATIENCE_SECONDS
"""The longest time without a reply after a fault was mended."""
ATTEMPT_SECONDS_MAX: Final = 5.0
ATTEMPT_PAUSE_SECONDS: Final = 0.1
PAIRS_MAX: Final = 100_000
PAIR_PROCESSES: Final = 10
PAIRS_FIRST: Final = NUMBERS_PER_KIND * len(KINDS)
"""The first of the shelves of pairs."""
PULSE_NUMBER: Final = PAIRS_FIRST + NUMBERS_PER_KIND
"""The entity that is read to see whether a cluster answers. No transaction uses it."""


STOPPED_SECONDS: Final = 3.0
"""How long a worker is stopped: longer than the silence after which it is expelled."""

Fault = Callable[[ClusterUnderTest, Service, Random], Awaitable[None]]
"""A fault gets the cluster, its broker, and the generator that chooses the victim."""


async def _worker(cluster: ClusterUnderTest, kafka: Service, rng: Random) -> None:
    place = rng.randrange(len(cluster.workers))
    worker, cluster.workers[place] = cluster.workers[place], None
    assert worker is not None
    await worker.kill()
    await cluster.start_worker(place)


async def _coordinator(cluster: ClusterUnderTest, kafka: Service, rng: Random) -> None:
    coordinator, cluster.coordinator = cluster.coordinator, None
    assert coordinator is not None
    await coordinator.kill()
    await cluster.start_coordinator()


async def _stop(cluster: ClusterUnderTest, kafka: Service, rng: Random) -> None:
    worker = rng.choice(cluster.workers)
    assert worker is not None
    worker.freeze()
    await asyncio.sleep(STOPPED_SECONDS)
    worker.thaw()


async def _kafka(cluster: ClusterUnderTest, kafka: Service, rng: Random) -> None:
    await asyncio.to_thread(kafka.kill)
    await asyncio.to_thread(kafka.start)


FAULTS: Final[dict[str, Fault]] = {"worker": _worker, "coordinator": _coordinator, "stop": _stop, "kafka": _kafka}
"""The faults by name. All are SIGKILL, except `stop`, which is SIGSTOP and SIGCONT of a worker."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The length of a recording: `seconds`, or until all `transactions` are done, and at least until each fault has
    struck. `processes` and `transactions` are numbers for each model. The processes use Kafka and the gateway in turn.
    If rows are recorded, so are at most `pairs` pairs of transactions that want one unique value, `pair_processes` of
    them at the same time. With `all_pairs` it lasts until all of them are done, and needs no model.
    """

    models: Sequence[Kind] = KINDS
    ways: Sequence[Way] = WAYS
    faults: Sequence[str] = tuple(FAULTS)
    seconds: float = 0.0
    processes: int = 10
    transactions: int = TRANSACTIONS_MAX
    keys: int = 8
    pairs: int = PAIRS_MAX
    pair_processes: int = PAIR_PROCESSES
    all_pairs: bool = False
    steady_s: float = STEADY_SECONDS
    seed: int = 0


class Struck(NamedTuple):
    """A fault, and the seconds from its beginning to the first answer after it was mended."""

    fault: str
    seconds: float


class OnCluster(NamedTuple):
    """One history of each model, what became of the pairs, and what the processes have counted meanwhile."""

    histories: list[Recorded]
    paired: Paired
    counted: Counted


async def record_on_cluster(
    cluster: ClusterUnderTest, kafka: Service, plan: Plan, tell: Callable[[Struck], None] = lambda struck: None
) -> OnCluster:
    """Starts the cluster, whose app is `proof.judge.app:app`, and records.

    Raises `ChildFailed` if a process ended by itself, or if no answer comes after a fault.
    """
    async with AsyncExitStack() as stack:
        await cluster.start()
        opened = {way: await stack.enter_async_context(_client(cluster, way)) for way in plan.ways}
        clients = list(opened.values())
        enough, loop, counted = asyncio.Event(), asyncio.get_running_loop(), Counted()
        began_s = loop.time()
        async with asyncio.TaskGroup() as tasks:
            recordings = [
                tasks.create_task(
                    recorded_of(
                        model,
                        clients,
                        keys=plan.keys,
                        seed=plan.seed,
                        first=0,
                        processes=plan.processes,
                        transactions=plan.transactions,
                        enough=enough,
                    )
                )
                for model in plan.models
            ]
            pairs = tasks.create_task(
                run_pairs(
                    clients[::-1],
                    pairs=plan.pairs if plan.all_pairs or "rows" in plan.models else 0,
                    processes=plan.pair_processes,
                    seed=plan.seed,
                    first=PAIRS_FIRST,
                    enough=enough,
                )
            )

            def over() -> bool:
                late = loop.time() + plan.steady_s >= began_s + plan.seconds
                recorded = late or all(recording.done() for recording in recordings)
                return recorded and (pairs.done() or not plan.all_pairs)

            failed: ChildFailed | None = None
            try:
                await _Strikes(cluster, kafka, clients[0], plan, counted, tell).until(over)
                if recordings:
                    await asyncio.wait(recordings, timeout=max(began_s + plan.seconds - loop.time(), plan.steady_s))
            except ChildFailed as failure:  # alone, not in the group that the tasks' block raises
                failed = failure
                for task in (*recordings, pairs):
                    task.cancel()
            enough.set()
        if failed is not None:
            raise failed
        cluster.check()
        await counted.ask(cluster)
        return OnCluster([recording.result() for recording in recordings], pairs.result(), counted)


class _Strikes:
    """Strikes with all faults in turn, again and again."""

    def __init__(
        self,
        cluster: ClusterUnderTest,
        kafka: Service,
        client: Client,
        plan: Plan,
        counted: Counted,
        tell: Callable[[Struck], None],
    ) -> None:
        self._cluster, self._kafka, self._client = cluster, kafka, client
        self._plan, self._counted, self._tell = plan, counted, tell
        self._rng = Random(plan.seed)
        self._faults = cycle(plan.faults)
        self._due = len(plan.faults)

    async def until(self, over: Callable[[], bool]) -> None:
        """Strikes until it is `over`, and at least until each fault has struck."""
        while self._due > 0 or not over():
            await asyncio.sleep(self._plan.steady_s)
            self._cluster.check()
            await self._counted.ask(self._cluster)
            if self._due > 0 or (self._plan.faults and not over()):
                await self._strike(next(self._faults))

    async def _strike(self, fault: str) -> None:
        began_s = asyncio.get_running_loop().time()
        await FAULTS[fault](self._cluster, self._kafka, self._rng)
        await _answer(self._cluster, self._client, fault)
        self._due -= 1
        self._tell(Struck(fault, asyncio.get_running_loop().time() - began_s))


async def _answer(cluster: ClusterUnderTest, client: Client, fault: str) -> None:
    """Waits for the answer to a new request. It needs all processes, because no epoch ends without one of them."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            while not await _answers(client):
                cluster.check()
                await asyncio.sleep(ATTEMPT_PAUSE_SECONDS)
    except TimeoutError:
        tails = "".join(child.tail() for child in cluster.children)
        raise ChildFailed(f"no answer within {ANSWER_SECONDS_MAX:g} s after the fault {fault}.{tails}") from None


async def _answers(client: Client) -> bool:
    operator, key = entity_of(PULSE_NUMBER)
    try:
        reply = await client.request(operator, key, "apply", "r", None, timeout=ATTEMPT_SECONDS_MAX)
    except (TimeoutError, ConnectionError):
        return False
    return reply.error is None or reply.error.code not in TRY_AGAIN


def _client(cluster: ClusterUnderTest, way: Way) -> Client:
    return connect(cluster.http_url, cluster.app) if way == "http" else cluster.client()
