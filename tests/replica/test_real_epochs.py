"""A replica that follows the epochs of a real cluster, while workers, the coordinator and itself are killed and frozen:
each answer is the state that a gateway reads at the same epoch, none is below its token, none is torn.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
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

    async def rows(self, sql: str) -> tuple[int, list[dict[str, Any]]]:
        """The answer at the token's epoch or a later one."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (found := await self.sql(sql, self.token)) is None:  # noqa: ASYNC110 - it is another process
                await asyncio.sleep(0.1)
            return found

    async def status(self) -> dict[str, Any]:
        async with self.session.get(f"{self.cluster.replica_url}/status") as response:
            found: dict[str, Any] = await response.json()
            return found

    async def metric(self, name: str) -> float:
        async with self.session.get(f"{self.cluster.replica_url}/metrics") as response:
            [line] = [line for line in (await response.text()).splitlines() if line.startswith(f"{name} ")]
        return float(line.split()[1])

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
            found = await asked.rows(SQL)
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


VERSION = """
import msgspec
from styx import App, Context, Operator
{types}
account = Operator("account", state_type=Account{migrate})

@account.register
async def add(ctx: Context, amount: int) -> int:
    state = await ctx.get() or {new}
    state.{field} += {scale} * amount
    await ctx.put(state)
    return state.{field}

app = App({name!r}, [account])
"""
FIRST = {"types": "class Account(msgspec.Struct):\n    euro: int", "migrate": "", "new": "Account(0)"}
MORE = {**FIRST, "types": f"{FIRST['types']}\n    kind: str = 'plain'"}
CENTS = {
    "types": "class Account(msgspec.Struct):\n    cents: int\n    kind: str = 'plain'\n"
    "def migrate(old: dict) -> Account:\n    return Account(100 * old['euro'])",
    "migrate": ", migrate=migrate",
    "new": "Account(0)",
}
ENTITIES = 20


def module(directory: Path, name: str, app: str, field: str, scale: int, parts: dict[str, str]) -> str:
    (directory / f"{name}.py").write_text(VERSION.format(name=app, field=field, scale=scale, **parts))
    importlib.invalidate_caches()
    return name


def test_deployments(kafka: RealKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that converts nothing is followed at once; behind one that converts, a snapshot helps. No answer mixes two
    versions.
    """
    monkeypatch.syspath_prepend(str(tmp_path))
    unique = secrets.token_hex(4)
    first = module(tmp_path, f"first_{unique}", "any", "euro", 1, FIRST)

    async def test(cluster: ClusterUnderTest) -> None:
        async def deploy(name: str, field: str, scale: int, parts: dict[str, str]) -> None:
            found = importlib.import_module(
                module(tmp_path, f"{name}_{unique}", cluster.options.name, field, scale, parts)
            )
            package = pack(found.app, cluster.security.secret)
            answer = await ask(f"127.0.0.1:{cluster.coordinator_port}", cluster.security, Deploy(package))
            assert answer.done, answer.text

        async with cluster.client() as client, aiohttp.ClientSession() as session:
            asked = Asked(cluster, client, session)

            async def add(count: int) -> None:
                for at in range(count):
                    reply = await client.request("account", str(at % ENTITIES), "add", 1, timeout=PATIENCE_SECONDS)
                    reply.unwrap()
                    asked.token = max(asked.token, reply.epoch)

            await add(ENTITIES)
            await asked.until(lambda told: told["follows"] == "epochs")
            await add(ENTITIES)
            _, rows = await asked.rows("select sum((value->>'euro')::int)::int s, count(*) n from account.state")
            assert rows == [{"s": 2 * ENTITIES, "n": ENTITIES}]
            snapshots = (
                await asked.metric("styx_replica_snapshots_total"),
                await asked.metric("styx_replica_dropped_total"),
            )

            await deploy("more", "euro", 1, MORE)
            await add(ENTITIES)
            _, rows = await asked.rows(
                "select sum((value->>'euro')::int)::int s, min(value->>'kind') k, max(value->>'kind') l "
                "from account.state"
            )
            assert rows == [{"s": 3 * ENTITIES, "k": "plain", "l": "plain"}]
            assert snapshots == (
                await asked.metric("styx_replica_snapshots_total"),
                await asked.metric("styx_replica_dropped_total"),
            ), "nothing was converted, and a snapshot was read"

            await deploy("cents", "cents", 100, CENTS)
            await add(ENTITIES)
            _, rows = await asked.rows("select sum((value->>'cents')::int)::int s, count(*) n from account.state")
            assert rows == [{"s": 100 * 4 * ENTITIES, "n": ENTITIES}]
            assert await asked.metric("styx_replica_dropped_total") > snapshots[1]
            assert (await asked.status())["version"] == 3
        cluster.check()

    run(options(kafka, tmp_path, f"{first}:app"), test)
