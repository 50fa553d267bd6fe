"""Measures the cost of checking and converting the state of a loaded cluster of real processes, and checks the result.

    python -m proof.cluster.changing_state --keys 1000000

Loads accounts, and adds to random ones at a steady rate. Meanwhile a version that fits is checked, and one that does
not fit is refused. Then two versions are deployed whose `migrate=` converts every account. During the first conversion
a worker gets SIGKILL, during the second the coordinator. At the end every account in the store must have the last form
and the right sum. The exit status is 1 if not.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from proof.cluster.child import ChildFailed
from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.halting_coordinator import MODULE, halt_at, told_in
from proof.cluster.services import local_services, working_directory
from styx.cli.facts_client import fetch_status
from styx.client.base import Client
from styx.cluster.reaching import ask
from styx.cluster.wire import Answer, Deploy
from styx.deployment.package import pack
from styx.model.app import App
from styx.model.limits import Limits
from styx.schema.state_check import check_tables
from styx.snapshot.load import read_states
from styx.snapshot.manifest import newest_first, read_manifests
from styx.testing.patience import PATIENCE_SECONDS

SCALES: Final = {"balance": 1, "cents": 100, "mills": 1000}
"""The forms of an account, in order: the field with the balance, and its units in one unit of money."""
POLL_SECONDS: Final = 0.01
NOTE: Final = "an account like any other"

_VERSION: Final = """\
from typing import Any

import msgspec

from styx import App, Context, Operator


class Account(msgspec.Struct):
    {field}: int
    note: str
    {more}


def migrate(old: dict[str, Any]) -> Account:
    return Account(old[{before!r}] * {scale} // {scale_before}, old["note"])


account = Operator("account", key_type=int, state_type=Account, migrate={migrate})


@account.register
async def add(ctx: Context, amount: int) -> int:
    state = await ctx.get()
    state.{field} += amount * {scale}
    await ctx.put(state)
    return state.{field} // {scale}


app = App({name!r}, [account])
"""


class Found(NamedTuple):
    """The findings of a run; times in seconds. `migrated_s`: from the command until the new version runs."""

    keys: int
    quiet_p99_s: float
    check_s: float
    check_p99_s: float
    refused: str
    migrated_s: list[float]
    requests: int


def version(directory: Path, name: str, field: str, *, migrate: bool = False, more: str = "") -> App:
    """The app whose accounts have this form, in a new module in `directory`, which is importable."""
    before = list(SCALES)[max(0, list(SCALES).index(field) - 1)]
    module = f"{name.replace('-', '_')}_{field}_{'migrate' if migrate else 'plain'}_{'more' if more else ''}"
    text = _VERSION.format(
        field=field,
        before=before,
        scale=SCALES[field],
        scale_before=SCALES[before],
        migrate="migrate" if migrate else None,
        name=name,
        more=more,
    )
    (directory / f"{module}.py").write_text(text)
    importlib.invalidate_caches()
    app: App = importlib.import_module(module).app
    return app


def processor_us(app: App, form: App, entities: int = 100_000) -> float:
    """Microseconds of the processor to check an entity of `form` against `app`, in this process."""
    encode = form.operators["account"].encode_state
    state_type = form.operators["account"].state_type
    table = {key: encode(state_type(key, NOTE)) for key in range(entities)}
    begun_s = time.thread_time()
    check_tables(app, 1, Limits(), {0: {"account": table}})
    return 1e6 * (time.thread_time() - begun_s) / entities


class Adds:
    """Adds 1 to random accounts at a rate until `stop`. Each addition is sent until it is answered, and counts once."""

    def __init__(self, client: Client, keys: int, rate: float, rng: Random) -> None:
        self.sums: defaultdict[int, int] = defaultdict(int)
        self.answers: list[tuple[float, float]] = []
        """(intended time of sending, time until the answer) of each addition, by the loop's clock, in seconds."""
        self._client = client
        self._keys = keys
        self._rate = rate
        self._rng = rng
        self._stopped = False
        self._running = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        """Waits until each addition has its answer. Raises the error that broke the load."""
        self._stopped = True
        await self._running

    def p99_s(self, since_s: float, until_s: float) -> float:
        """The p99 latency of additions with an intended time of sending in this period."""
        took = sorted(took_s for at_s, took_s in self.answers if since_s <= at_s < until_s)
        return took[len(took) * 99 // 100] if took else 0.0

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        async with asyncio.TaskGroup() as tasks:
            number = 0
            while not self._stopped:
                at_s = begun_s + number / self._rate
                if at_s > loop.time():
                    await asyncio.sleep(at_s - loop.time())
                tasks.create_task(self._add(f"once-{number}", self._rng.randrange(self._keys), at_s))
                number += 1

    async def _add(self, once: str, key: int, at_s: float) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                await self._client.call("account", key, "add", 1, idempotency_key=once, timeout=PATIENCE_SECONDS)
            except OSError:
                await asyncio.sleep(POLL_SECONDS)
                continue
            self.answers.append((at_s, loop.time() - at_s))
            self.sums[key] += 1
            return


class StateChanger:
    """Changes the state of one cluster, which runs a halting coordinator."""

    def __init__(self, cluster: ClusterUnderTest, tell: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._tell = tell
        self._halts = 0

    def pack(self, app: App) -> bytes:
        """The package of a deployment. Packing holds up this process for some 70 ms, so no answer is timed
        meanwhile.
        """
        return pack(app, self._cluster.security.secret)

    async def order(self, package: bytes, *, only_check: bool = False) -> tuple[Answer, float]:
        """Deploys a version, or has it checked. Returns the answer, and the time until it in seconds."""
        security = self._cluster.security
        begun_s = time.monotonic()
        answer = await ask(f"127.0.0.1:{self._cluster.coordinator_port}", security, Deploy(package, only_check))
        took_s = time.monotonic() - begun_s
        self._tell(f"{'checked' if only_check else 'deployed'} in {took_s:.2f} s: {answer.text.splitlines()[0]}")
        return answer, took_s

    async def migrate(self, app: App, victim: str) -> float:
        """Deploys a version, and kills a `worker` or the `coordinator` while state is loaded and converted.

        Returns the time from the command until that version runs, in seconds.
        """
        cluster = self._cluster
        before = (await self._status()).app_version
        halt_at(cluster.options.directory, "loading")
        begun_s = time.monotonic()
        ordering = asyncio.ensure_future(self.order(self.pack(app)))
        while len(halts := [told for told in self._told() if told.halted]) == self._halts:
            if ordering.done():
                raise ChildFailed(f"it was not deployed: {ordering.result()}")
            await asyncio.sleep(POLL_SECONDS)
        self._halts = len(halts)
        coordinator = cluster.coordinator
        assert coordinator is not None
        if victim == "worker":
            worker, cluster.workers[0] = cluster.workers[0], None
            assert worker is not None
            await worker.kill()
            coordinator.thaw()
            await cluster.start_worker(0)
        else:
            cluster.coordinator = None
            await coordinator.kill()
            await cluster.start_coordinator()
        with contextlib.suppress(OSError):
            await ordering
        await cluster.settled()
        assert (await self._status()).app_version > before, "the marker was in the log, and the old version runs"
        took_s = time.monotonic() - begun_s
        self._tell(f"converted in {took_s:.2f} s, with a SIGKILL of a {victim} amid it")
        return took_s

    def _told(self) -> list[Any]:
        return told_in(sorted(self._cluster.options.directory.glob("*-coordinator.log")))

    async def _status(self) -> Any:
        return await asyncio.to_thread(fetch_status, self._cluster.facts_url)


async def measure(
    cluster: ClusterUnderTest,
    keys: int,
    rate: float,
    rng: Random,
    watched_s: float,
    tell: Callable[[str], None] = lambda _: None,
) -> Found:
    """Measures on a cluster that has not been started. Raises `AssertionError` or `ChildFailed`."""
    directory, name = cluster.options.directory, cluster.options.name
    loop = asyncio.get_running_loop()
    await cluster.start()
    changer = StateChanger(cluster, tell)
    async with cluster.client() as client:
        form = cluster.app.operators["account"].state_type
        await client.load("account", ((key, form(key, NOTE)) for key in range(keys)))
        tell(f"{keys:,} accounts are loaded")
        adds = Adds(client, keys, rate, rng)
        await asyncio.sleep(watched_s)
        begun_s = loop.time()
        await asyncio.sleep(watched_s)
        quiet_p99_s = adds.p99_s(begun_s, loop.time())
        fits = changer.pack(version(directory, name, "balance", more='currency: str = "EUR"'))
        begun_s = loop.time()
        answer, check_s = await changer.order(fits, only_check=True)
        assert answer.done, answer.text
        check_p99_s = adds.p99_s(begun_s, loop.time())
        answer, _ = await changer.order(changer.pack(version(directory, name, "cents")))
        assert not answer.done
        assert answer.text.startswith(f"{keys:,} of {keys:,} stored entities do not fit"), answer.text
        migrated_s = [
            await changer.migrate(version(directory, name, field, migrate=True), victim)
            for field, victim in (("cents", "worker"), ("mills", "coordinator"))
        ]
        await adds.stop()
    tell(f"{len(adds.answers):,} additions were answered")
    await _stop(cluster)
    await asyncio.to_thread(_check, cluster, keys, adds.sums)
    tell("every account has the last form, and the sum of what was added to it")
    return Found(keys, quiet_p99_s, check_s, check_p99_s, answer.text, migrated_s, len(adds.answers))


async def _stop(cluster: ClusterUnderTest) -> None:
    """Ends the coordinator, which takes a last snapshot."""
    coordinator, cluster.coordinator = cluster.coordinator, None
    assert coordinator is not None
    await coordinator.stop()


def _check(cluster: ClusterUnderTest, keys: int, sums: dict[int, int]) -> None:
    store = cluster.open_store()
    manifests, damaged = read_manifests(store)
    assert not damaged
    app = version(cluster.options.directory, cluster.options.name, "mills", migrate=True)
    decode = app.operators["account"].decode_state
    found = {}
    slots = range(cluster.options.slots)
    newest = newest_first(manifests)[0]
    for state in read_states(newest, slots, store).values():
        for key, data in state.table("account").at(newest.epoch).items():
            account = decode(data)
            assert app.operators["account"].encode_state(account) == data, "it is not in the last form"
            found[key] = account.mills
    expected = {key: SCALES["mills"] * (key + sums.get(key, 0)) for key in range(keys)}
    assert found == expected, [key for key in expected if found.get(key) != expected[key]][:10]


def first_version(directory: Path, name: str) -> str:
    """Makes the cluster's first app and returns its MODULE:APP. `directory` is importable from now on."""
    directory.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(directory))
    version(directory, name, "balance")
    return f"{name.replace('-', '_')}_balance_plain_:app"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof.cluster.changing_state", description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second (default 200)")
    parser.add_argument("--watched", type=float, default=10.0, help="seconds without a change (default 10)")
    parser.add_argument("--snapshot-interval", type=float, default=5.0, help="seconds (default 5)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    directory = working_directory("changing-state")
    app = first_version(directory, "changing")
    stored = version(directory, "changing", "balance")
    for what, other in (
        ("of the same type", stored),
        ("with a new field", version(directory, "changing", "balance", more='currency: str = "EUR"')),
        ("that migrate= converts", version(directory, "changing", "cents", migrate=True)),
        ("that does not fit", version(directory, "changing", "cents")),
    ):
        print(f"an entity {what}: {processor_us(other, stored):.1f} µs of processor time", flush=True)
    with local_services() as services:
        cluster = ClusterUnderTest(
            ClusterOptions(
                app=app,
                name="changing",
                kafka=services.kafka_address,
                store=f"file://{directory}/store",
                directory=directory,
                workers=options.workers,
                slots=options.slots,
                snapshot_interval_s=options.snapshot_interval,
                coordinator_module=MODULE,
            )
        )

        async def run() -> Found:
            async with cluster:
                return await measure(
                    cluster,
                    options.keys,
                    options.rate,
                    Random(options.seed),
                    options.watched,
                    lambda line: print(line, flush=True),
                )

        try:
            found = asyncio.run(run())
        except (AssertionError, ChildFailed) as failure:
            print(f"FAILED: {failure}")
            return 1
    print(
        f"check: {found.check_s:.2f} s for {found.keys:,} entities; 99 of 100 answers within "
        f"{1e3 * found.check_p99_s:.0f} ms meanwhile, {1e3 * found.quiet_p99_s:.0f} ms before"
    )
    print(f"ok: {found.requests:,} requests, converted in {' and '.join(f'{s:.1f} s' for s in found.migrated_s)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
