"""Measures how long no reply comes when a worker of a cluster with much state dies.

    python -m proof.cluster.recovery_time --keys 1000000 --deaths 3

Loads accounts, lets snapshots cover them, and kills one worker after the other under steady load of transfers. Half of
the dead workers are replaced at once; the slots of the others go to the surviving workers. An audit follows at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from proof.bank import INITIAL_BALANCE, account
from proof.cluster.audit import Audit, audit
from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.faults import APP, longest_silence
from proof.cluster.load import LoadOptions, Planned, SteadyLoad
from proof.cluster.recorded import newest_manifest
from proof.cluster.services import local_services, working_directory
from styx.testing.history import SerializabilityViolation
from styx.testing.patience import PATIENCE_SECONDS

LOAD_SECONDS_MAX: Final = PATIENCE_SECONDS
"""Limit on one chunk of the bulk load."""
WATCHED_SECONDS: Final = 8.0
"""How long replies are watched after a death."""
BEFORE_SECONDS: Final = 3.0
"""The time of steady load before a death, so that it never follows a snapshot at once."""
AMOUNT_MAX: Final = 5


class Death(NamedTuple):
    """A worker's death, whether another one took its place at once, and seconds until the next reply."""

    replaced: bool
    silence_s: float


class Measured(NamedTuple):
    """The findings of a run."""

    deaths: list[Death]
    audit: Audit | None


def transfers(rng: Random, keys: int) -> Callable[[], Planned]:
    """Makes transfers between two accounts of many."""

    def make() -> Planned:
        payer, payee = rng.sample(range(keys), 2)
        return Planned(account.name, f"a{payer}", "transfer", (f"a{payee}", rng.randint(1, AMOUNT_MAX)))

    return make


async def measure(
    cluster: ClusterUnderTest,
    keys: int,
    deaths: int,
    rng: Random,
    load_options: LoadOptions,
    audited: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> Measured:
    """Measures on a cluster that has not been started. Raises `SerializabilityViolation`."""
    loop = asyncio.get_running_loop()
    found: list[Death] = []
    await cluster.start()
    async with cluster.client() as client:
        began_s = time.monotonic()
        pairs = ((f"a{number}", INITIAL_BALANCE) for number in range(keys))
        await client.load(cluster.app.operator("account"), pairs, timeout=LOAD_SECONDS_MAX)
        tell(f"{keys} keys loaded in {time.monotonic() - began_s:.1f} s")
        operators = dict(cluster.app.operators)
        load = SteadyLoad(client, None, operators, transfers(rng, keys), load_options, rng)
        load.start()
        await snapshot_taken(cluster)
        for number in range(deaths):
            await asyncio.sleep(BEFORE_SECONDS * rng.uniform(1, 1.5))
            place, replaced = number % len(cluster.workers), number % 2 == 0
            victim, cluster.workers[place] = cluster.workers[place], None
            assert victim is not None
            at_s = loop.time()
            await victim.kill()
            if replaced:
                await cluster.start_worker(place)
            await asyncio.sleep(WATCHED_SECONDS)
            found.append(Death(replaced, longest_silence(load.reply_times, at_s, loop.time())))
            tell(f"a worker died, {'replaced' if replaced else 'not replaced'}: {found[-1].silence_s:.2f} s")
            if not replaced:
                await cluster.start_worker(place)
                await asyncio.sleep(WATCHED_SECONDS)
            cluster.check()
        await load.stop()
        if load.contradictions:
            raise SerializabilityViolation("\n".join(load.contradictions))
    return Measured(found, await audit(cluster, load.replies) if audited else None)


async def snapshot_taken(cluster: ClusterUnderTest) -> None:
    """Waits for a snapshot that begins after now."""
    store = await asyncio.to_thread(cluster.open_store)
    first = await asyncio.to_thread(newest_manifest, store)
    seen, before = 0, -1 if first is None else first.epoch
    while seen < 2:
        manifest = await asyncio.to_thread(newest_manifest, store)
        if manifest is not None and manifest.epoch > before:
            seen, before = seen + 1, manifest.epoch
        await asyncio.sleep(0.2)


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof.cluster.recovery_time", description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--deaths", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rate", type=float, default=100.0, help="requests a second (default 100)")
    parser.add_argument("--snapshot-interval", type=float, default=1.0, help="seconds (default 1)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    directory = working_directory("recovery")
    with local_services() as services:
        cluster = ClusterUnderTest(
            ClusterOptions(
                app=APP,
                name="recovery",
                kafka=services.kafka_address,
                store="recovery",
                s3_endpoint=services.s3_endpoint,
                directory=directory,
                workers=options.workers,
                slots=16,
                snapshot_interval_s=options.snapshot_interval,
            )
        )
        load = LoadOptions(rate=options.rate, keyed=0.1, http=0.0)

        async def run() -> Measured:
            async with cluster:
                return await measure(
                    cluster,
                    options.keys,
                    options.deaths,
                    Random(options.seed),
                    load,
                    tell=lambda text: print(text, flush=True),
                )

        try:
            measured = asyncio.run(run())
        except SerializabilityViolation as failure:
            print(f"FAILED: {failure}")
            return 1
    assert measured.audit is not None
    print(f"ok: {measured.audit.records} requests, each answered once, as serial replay does")
    return 0


if __name__ == "__main__":
    sys.exit(main())
