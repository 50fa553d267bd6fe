"""The group `postgres`: one worker on Kafka against PostgreSQL under SERIALIZABLE, in the same way and with the same
requests. PostgreSQL gets the number of connections that serves it best.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from asyncpg import PostgresError

from benchmarks.driver.deployment.own_cluster import deployment_of
from benchmarks.experiments.bench import Bench, StepFailed
from benchmarks.experiments.place import place
from benchmarks.experiments.subject import Load, Subject, subjects
from benchmarks.experiments.targets.compare import compare
from benchmarks.experiments.targets.verdict import Verdict
from benchmarks.reference.pgbench_run import DURABILITIES, best_connections, measured
from benchmarks.reference.pgbench_run import Load as PgbenchLoad
from benchmarks.reference.postgres_deployment import postgres_deployment
from benchmarks.reference.postgres_server import PostgresServer, postgres_server
from benchmarks.reference.postgres_tuning import best, tried
from benchmarks.ycsbt.settings import Settings
from benchmarks.ycsbt.workload import YcsbT

UNIFORM: Final = "postgres-uniform"
EXPONENTS: Final = {UNIFORM: 0.0, "postgres-zipf": 0.99}
PGBENCH: Final = {f"pgbench-{commit}": commit for commit in DURABILITIES}
"""The value of `synchronous_commit` by the row's name."""


async def measure(bench: Bench, verdicts: Mapping[str, Verdict], _many_keys: int) -> None:
    """One server for all rows, its table filled anew for each."""
    loads = {
        name: Settings(keys=bench.common.keys, n_slots=bench.common.slots, zipf=EXPONENTS[name])
        for name in EXPONENTS
        if name in verdicts or (name == UNIFORM and any(row in verdicts for row in PGBENCH))
    }
    async with AsyncExitStack() as stack:
        server = stack.enter_context(postgres_server())
        here = await stack.enter_async_context(place(bench))
        cluster = await here.cluster("one-worker", 1)
        asked = [Load(f"styx Zipf {settings.zipf:g}", settings) for settings in loads.values()]
        styx = await stack.enter_async_context(subjects(bench, deployment_of(cluster), asked, check=cluster.check))
        for (name, settings), subject in zip(loads.items(), styx, strict=True):
            if name == UNIFORM:
                await _by_pgbench(bench, verdicts, subject)
            if name not in verdicts:
                continue
            try:
                async with _postgres(bench, server, settings) as postgres:
                    await compare(bench, verdicts[name], subject.highest_rate, postgres.highest_rate, "/s")
            except PostgresError as error:
                raise StepFailed(f"PostgreSQL says: {error}") from None


async def _by_pgbench(bench: Bench, verdicts: Mapping[str, Verdict], subject: Subject) -> None:
    """pgbench needs a server of its own for each durability, and has no bound on p99 to keep."""
    accounts = Settings(keys=bench.common.keys)
    for name, commit in PGBENCH.items():
        if name not in verdicts:
            continue
        with postgres_server({"synchronous_commit": commit}) as server:
            try:
                connections = await best_connections(server, accounts, bench.say)
                load = PgbenchLoad(connections, bench.common.window_s)

                async def rate(server: PostgresServer = server, load: PgbenchLoad = load) -> float:
                    return (await measured(server, accounts, load)).rate

                await compare(bench, verdicts[name], subject.highest_rate, rate, "/s")
            except PostgresError as error:
                raise StepFailed(f"PostgreSQL says: {error}") from None


@asynccontextmanager
async def _postgres(bench: Bench, server: PostgresServer, settings: Settings) -> AsyncIterator[Subject]:
    name = f"PostgreSQL Zipf {settings.zipf:g}"
    workload, clients = YcsbT(settings), bench.common.clients
    rates = await tried(server, workload)
    connections = max(best(rates), clients)
    shown = ", ".join(f"{size}: {rate:.0f}/s" for size, rate in rates.items())
    bench.say(f"{name}: connections, always busy: {shown}; {connections} are taken")
    async with (
        postgres_deployment(server, workload, connections, clients) as deployment,
        subjects(bench, deployment, [Load(name, settings)], filled=True) as (subject,),
    ):
        yield subject
