"""A replica that follows the epochs of a real cluster, while workers, the coordinator and itself are killed and frozen:
each answer is the state that a gateway reads at the same epoch, none is below its token, none is torn.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.changing_state import version
from proof.cluster.reads_app import COUNTERS
from styx.client.base import Client
from styx.client.connect import connect
from styx.cluster.reaching import ask
from styx.cluster.wire import Deploy
from styx.deployment.package import pack
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow

NAMES = [f"{letter}{place}" for letter in "ab" for place in range(COUNTERS)]
SQL = "select key, value::int as value from counter.state"
State = dict[str, int]


def options(kafka: RealKafka, tmp_path: Path, app: str = "proof.cluster.reads_app:app") -> ClusterOptions:
    return ClusterOptions(
        app=app,
        name=f"epochs-{secrets.token_hex(4)}",
        kafka=kafka.bootstrap,
        store=f"file://{tmp_path}/store",
        directory=tmp_path / "processes",
    )


class Asked:
    """Everybody who asks: writers, readers through the gateway, and readers of the replica. `known` has what each saw
    at the end of an epoch; nobody may have seen anything else.
    """

    def __init__(self, cluster: ClusterUnderTest, client: Client, session: aiohttp.ClientSession) -> None:
        self.cluster = cluster
        self.client = client
        self.session = session
        self.token = -1
        self.known: dict[int, State] = {}
        self.answers = 0
        self.both = 0
        self.stop = False
        self.by_replica: set[int] = set()

    def saw(self, epoch: int, state: State, by_replica: bool) -> None:
        state = {name: state.get(name, 0) for name in NAMES}
        for place in range(COUNTERS):
            assert state[f"a{place}"] == state[f"b{place}"], f"epoch {epoch} is torn: {state}"
        before = self.known.setdefault(epoch, state)
        assert before == state, f"epoch {epoch} was another one"
        if by_replica:
            self.both += epoch not in self.by_replica
            self.by_replica.add(epoch)

    async def write(self, place: int) -> None:
        written = 0
        while not self.stop:
            reply = await self.client.request("counter", f"a{place}", "add_both", f"b{place}", timeout=PATIENCE_SECONDS)
            written = reply.unwrap()
            assert written >= 1
            self.token = max(self.token, reply.epoch)

    async def read(self) -> None:
        async with connect(self.cluster.http_url) as client:
            while not self.stop:
                reply = await client.read_request("counter", NAMES[0], "values", NAMES[1:], timeout=PATIENCE_SECONDS)
                self.saw(reply.epoch, dict(zip(NAMES, reply.unwrap(), strict=True)), by_replica=False)

    async def ask(self) -> None:
        last = -1
        while not self.stop:
            token = self.token
            found = await self.sql(SQL, token)
            if found is None:
                await asyncio.sleep(0.05)
                continue
            epoch, rows = found
            assert epoch >= token, "below its token"
            assert epoch >= last, "it goes back"
            last = epoch
            self.answers += 1
            self.saw(epoch, {row["key"]: row["value"] for row in rows}, by_replica=True)

    async def sql(self, sql: str, token: int) -> tuple[int, list[dict[str, Any]]] | None:
        """None if it has no answer yet, or is dead."""
        url, headers = f"{self.cluster.replica_url}/v1/sql", {"styx-epoch": str(max(0, token))}
        try:
            async with self.session.post(url, json={"sql": sql, "format": "json"}, headers=headers) as response:
                told = await response.json()
                if response.status == 200:
                    return told["epoch"], told["rows"]
                assert response.status in (503, 504), told
        except aiohttp.ClientError:
            pass
        return None

    async def status(self) -> dict[str, Any]:
        async with self.session.get(f"{self.cluster.replica_url}/status") as response:
            found: dict[str, Any] = await response.json()
            return found

    async def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """What the replica says when that is so."""
        told: dict[str, Any] = {}
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    with contextlib.suppress(aiohttp.ClientError):
                        told = await self.status()
                        if condition(told):
                            return told
                    await asyncio.sleep(0.05)
        except TimeoutError:
            replica = self.cluster.replica
            raise AssertionError(f"it is not so: {told}{'' if replica is None else replica.tail()}") from None

    async def some(self, answers: int) -> None:
        """Waits for so many further answers of the replica."""
        wanted = self.answers + answers
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.answers < wanted:  # noqa: ASYNC110 - what counts them is the test itself
                await asyncio.sleep(0.05)


@asynccontextmanager
async def everybody(cluster: ClusterUnderTest) -> AsyncIterator[Asked]:
    """Writes, reads and asks, until the block ends; then the replica has the state that a strict read has."""
    async with cluster.client() as client, aiohttp.ClientSession() as session:
        asked = Asked(cluster, client, session)
        async with asyncio.TaskGroup() as group:
            for place in range(COUNTERS):
                group.create_task(asked.write(place))
            group.create_task(asked.read())
            await asked.until(lambda told: told["follows"] == "epochs")
            group.create_task(asked.ask())
            try:
                yield asked
            finally:
                asked.stop = True
        async with connect(cluster.http_url) as reader:
            last = await reader.read_request("counter", NAMES[0], "values", NAMES[1:], freshness="strict")
            asked.saw(last.epoch, dict(zip(NAMES, last.unwrap(), strict=True)), by_replica=False)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while (found := await asked.sql(SQL, asked.token)) is None:
                    await asyncio.sleep(0.1)
            assert {row["key"]: row["value"] for row in found[1]} == dict(zip(NAMES, last.unwrap(), strict=True))
        cluster.check()


def run(opened: ClusterOptions, test: Callable[[ClusterUnderTest], Awaitable[None]]) -> None:
    async def within() -> None:
        async with ClusterUnderTest(opened) as cluster:
            await cluster.start()
            await cluster.settled()
            await cluster.start_replica()
            await test(cluster)

    asyncio.run(asyncio.wait_for(within(), 4 * PATIENCE_SECONDS))


def test_workers_and_the_coordinator_are_killed_and_the_replica_is_frozen(kafka: RealKafka, tmp_path: Path) -> None:
    async def test(cluster: ClusterUnderTest) -> None:
        async with everybody(cluster) as asked:
            await asked.some(10)
            told = await asked.status()
            assert told["lag_s"] < 1.0
            assert told["age_s"] < 2.0
            for place in (0, 1):
                generation = told["generation"]
                await cluster.replace_worker(place)
                told = await asked.until(lambda told: told["follows"] == "epochs" and told["generation"] > generation)  # noqa: B023
                await asked.some(5)
            await cluster.replace_coordinator()
            await asked.until(lambda told: told["follows"] == "epochs" and told["generation"] > generation)
            await asked.some(5)
            assert cluster.replica is not None
            cluster.replica.freeze()
            await asyncio.sleep(4.0)
            cluster.replica.thaw()
            await asked.some(5)
            await cluster.replica.kill()
            await cluster.start_replica()
            await asked.until(lambda told: told["follows"] == "epochs")
            await asked.some(5)
            await cluster.scale(1)
            await asked.some(5)
        assert asked.both > 20

    run(options(kafka, tmp_path), test)
