"""One window of pgbench on a PostgreSQL server with the bank's table: its rate and latencies from pgbench's own log of
each transaction, and the processor time of the server and of pgbench in the same window.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import asyncpg
import msgspec

from benchmarks.driver.best_speed import best_ms
from benchmarks.driver.calibration import calibrate
from benchmarks.driver.environment import Environment, environment, processors
from benchmarks.driver.latency import Cells, percentile_us, record
from benchmarks.driver.pace import pace_of_work
from benchmarks.driver.probe import Probe
from benchmarks.reference.postgres_accounting import processes
from benchmarks.reference.postgres_bank import UPDATE
from benchmarks.reference.postgres_deployment import fill
from benchmarks.reference.postgres_server import PostgresServer, find_binaries
from benchmarks.reference.postgres_settle import SESSION
from benchmarks.reference.postgres_tuning import SIZES, best
from benchmarks.ycsbt.settings import AMOUNT_MAX, Settings
from benchmarks.ycsbt.workload import YcsbT
from styx.errors import ConfigurationError

WARM_UP_SECONDS: Final = 1.0
"""At the beginning, not counted."""
REST_SECONDS: Final = 0.5
"""After the window, so that the server's processes are still there when they are read at its end."""
TRY_SECONDS: Final = 2.0
CLIENT: Final = "pgbench"
DURABILITIES: Final[Mapping[str, str]] = {
    "on": "fsync before each answer",
    "off": "answered before fsync",
}
"""By PostgreSQL's `synchronous_commit`."""
_PARAMETERS: Final = {"$1": ":debtor", "$2": ":creditor", "$3": ":amount"}


class Load(NamedTuple):
    """So many `connections` for `seconds`; as fast as it can, or at `rate` transactions a second."""

    connections: int
    seconds: float
    rate: float | None = None

    @property
    def threads(self) -> int:
        """One for each processor, as far as each has a connection."""
        return min(processors(), self.connections)


class Logged(NamedTuple):
    """One transaction: when it ended (seconds since 1970), how long it took, and how often it was repeated."""

    ended_s: float
    latency_us: int
    repeated: int


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One window. `asked` is the rate, None for as fast as it could; `rate` what was committed a second. `again` is how
    often a transaction was repeated, on average. `cpu_us` is processor time per transaction by role. `wrong`: the sum
    of all balances is another than before, or one is negative. `slow` warns of a slow phase of the machine.
    """

    version: str
    synchronous_commit: str
    connections: int
    threads: int
    seconds: float
    window_from_s: float
    asked: float | None
    rate: float
    p50_us: int
    p99_us: int
    again: float
    cpu_us: dict[str, float]
    wrong: bool
    slow: str
    environment: Environment


def script(keys: int) -> str:
    """A transfer as pgbench's script: two distinct accounts, and the UPDATE of the bank as its statement."""
    statement = re.sub(r"\$\d", lambda match: _PARAMETERS[match[0]], UPDATE).strip()
    return (
        f"\\set debtor random(0, {keys - 1})\n"
        f"\\set other random(0, {keys - 2})\n"
        "\\set creditor :other + case when :other >= :debtor then 1 else 0 end\n"
        f"\\set amount random(1, {AMOUNT_MAX})\n"
        f"{statement};\n"
    )


def words_of(load: Load, place: Path) -> list[str]:
    """The arguments of pgbench: prepared statements, repeated until they are serialized, a log in `place`."""
    seconds = load.seconds + WARM_UP_SECONDS + REST_SECONDS
    words = ["--no-vacuum", "--protocol=prepared", "--max-tries=0", f"--time={int(seconds + 1)}"]
    words += [f"--client={load.connections}", f"--jobs={load.threads}", "--file=script.sql"]
    words += ["--log", f"--log-prefix={place / 'log'}"]
    return words if load.rate is None else [*words, f"--rate={load.rate:g}"]


def parsed(lines: Iterable[str], with_lag: bool) -> list[Logged]:
    """pgbench's log; `with_lag`: of a run at a rate, where the latency counts from when a transaction was due."""
    found = []
    for each in lines:
        fields = each.split()
        repeated = int(fields[7 if with_lag else 6])
        found.append(Logged(int(fields[4]) + int(fields[5]) / 1e6, int(fields[2]), repeated))
    return found


def logged_in(place: Path, with_lag: bool) -> list[Logged]:
    """What all threads of a run have logged."""
    return [one for file in place.glob("log.*") for one in parsed(file.read_text("ascii").splitlines(), with_lag)]


async def best_connections(server: PostgresServer, accounts: Settings, say: Callable[[str], None]) -> int:
    """The number of connections with the highest rate, each tried for a short time."""
    tries = {size: (await measured(server, accounts, Load(size, TRY_SECONDS))).rate for size in SIZES}
    shown = ", ".join(f"{size}: {rate:.0f}/s" for size, rate in tries.items())
    durability = DURABILITIES[server.settings["synchronous_commit"]]
    say(f"pgbench, {durability}: connections {shown}; {best(tries)} are taken")
    return best(tries)


async def measured(server: PostgresServer, accounts: Settings, load: Load) -> Figures:
    """A window on a table that is filled anew. Raises `ConfigurationError` if pgbench fails."""
    await fill(server, YcsbT(accounts))
    where, before = environment(), calibrate()
    with tempfile.TemporaryDirectory(prefix="styx-pgbench-") as folder:
        place = Path(folder)
        (place / "script.sql").write_text(script(accounts.keys), "utf-8")
        async with _pgbench(server, words_of(load, place), place) as pid:
            await asyncio.sleep(WARM_UP_SECONDS)
            server_pids = processes(server)

            def pids() -> Mapping[str, Sequence[int]]:
                return {CLIENT: [pid], **server_pids()}

            probe, from_s = Probe(pids), time.time()
            await probe.begin()
            await asyncio.sleep(load.seconds)
            await probe.end()
            to_s = time.time()
        logged = [one for one in logged_in(place, load.rate is not None) if from_s <= one.ended_s < to_s]
    beside = (before, calibrate())
    pace = pace_of_work(beside, best_ms(where, beside), probe.machine, where.processors)
    cells: Cells = {}
    record(cells, (one.latency_us for one in logged))
    rate = len(logged) / (to_s - from_s)
    return Figures(
        version=server.version,
        synchronous_commit=server.settings["synchronous_commit"],
        connections=load.connections,
        threads=load.threads,
        seconds=to_s - from_s,
        window_from_s=from_s,
        asked=load.rate,
        rate=rate,
        p50_us=percentile_us(cells, 50),
        p99_us=percentile_us(cells, 99),
        again=sum(one.repeated for one in logged) / max(len(logged), 1),
        cpu_us={role: usage.cores / rate * 1e6 for role, usage in probe.roles.items()} if rate else {},
        wrong=await _money_moved_wrongly(server, accounts.money),
        slow=f"a slow phase (x{pace.slower:.2f}, others {pace.others:.0%})" if pace.slow else "",
        environment=where,
    )


@asynccontextmanager
async def _pgbench(server: PostgresServer, words: list[str], place: Path) -> AsyncIterator[int]:
    binary = find_binaries() / "pgbench"
    if not binary.exists():
        raise ConfigurationError(f"there is no {binary}: on Debian and Ubuntu it is part of postgresql")
    connection = server.connection()
    where = {"PGHOST": connection["host"], "PGPORT": str(connection["port"]), "PGUSER": connection["user"]}
    options = " ".join(f"-c {name}={value}" for name, value in SESSION.items())
    with (place / "said").open("wb") as said:
        process = await asyncio.create_subprocess_exec(
            binary,
            *words,
            connection["database"],
            cwd=place,
            env={**os.environ, **where, "PGOPTIONS": options},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    try:
        yield process.pid
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ConfigurationError(f"pgbench failed: {(place / 'said').read_text('utf-8', 'replace')[-2000:].strip()}")


async def _money_moved_wrongly(server: PostgresServer, money: int) -> bool:
    connection = await asyncpg.connect(**server.connection())
    try:
        total, least = await connection.fetchrow("SELECT sum(balance), min(balance) FROM account")
        return bool(total != money or least < 0)
    finally:
        await connection.close()
