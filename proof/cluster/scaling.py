"""Measures the cost of changing the number of workers of a loaded cluster of real processes, and audits the result.

    python -m proof.cluster.scaling --keys 1000000 --steps 4,2,4,2
    python -m proof.cluster.scaling --keys 5000 --steps 4,2,4,2,4,2 --kill both

Prints for each change the pause in service, the generations that it led to, and how many recorded epochs these had to
replay: none, unless a process was killed. At the end everything is audited, and the entities that clients read are
compared. The exit status is 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack
from random import Random
from typing import Any, Final, NamedTuple

from proof.bank import INITIAL_BALANCE, account
from proof.chaos_app import text
from proof.cluster.audit import Audit, AuditFailed, audit
from proof.cluster.child import ChildFailed
from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.faults import APP
from proof.cluster.halting_coordinator import MODULE
from proof.cluster.load import LoadOptions, Planned, SteadyLoad, row_request
from proof.cluster.planned_changes import KILLS, Change, Changer, KillPlan
from proof.cluster.recorded import Begun, read_generations
from proof.cluster.recovery_time import LOAD_SECONDS_MAX, snapshot_taken, transfers
from proof.cluster.services import local_services, working_directory
from styx.client.base import Client
from styx.client.connect import connect
from styx.errors import NotSent
from styx.messages import Reply
from styx.testing.history import SerializabilityViolation
from styx.testing.patience import PATIENCE_SECONDS
from styx.testing.serial import State
from styx.values.codec import decode_plain

WATCHED_SECONDS: Final = 4.0
"""How long replies are watched after each change, and without a change."""
READ_MAX: Final = 20_000
"""Limit on the entities of an operator that clients read at the end. If there are more, random ones are read."""
READ_AT_ONCE: Final = 500
READ_HTTP_SHARE: Final = 0.02
ROWS_SHARE: Final = 0.1
"""Share of requests that work on rows, if there are cells."""
READ_SECONDS_MAX: Final = PATIENCE_SECONDS
READ_AGAIN_SECONDS: Final = 0.2


class Scaled(NamedTuple):
    """The findings of a run. `unchanged_s` is the longest time without a reply while nothing changed, in seconds.

    `planned` are the generations that a held snapshot led to, and `read` counts entities that clients read.
    """

    unchanged_s: float
    changes: list[Change]
    generations: list[Begun]
    planned: set[int]
    audit: Audit
    read: int


async def measure(
    cluster: ClusterUnderTest,
    steps: Sequence[int],
    kills: Sequence[str],
    keys: int,
    value_bytes: int,
    rng: Random,
    load_options: LoadOptions,
    watched_s: float = WATCHED_SECONDS,
    tell: Callable[[str], None] = lambda _: None,
) -> Scaled:
    """Measures on a cluster that has not been started, and that runs a halting coordinator.

    `kills`, of `KILLS`, are used by the changes in turn. There are `keys` accounts and, if `value_bytes` is set, as
    many cells with a note of that length. Raises `SerializabilityViolation`, or `ChildFailed` if a change has no
    effect.
    """
    plan = KillPlan(kills, rng)
    changes: list[Change] = []
    async with AsyncExitStack() as stack:
        await cluster.start()
        kafka = await stack.enter_async_context(cluster.client())
        http = await stack.enter_async_context(connect(cluster.http_url))
        await _load(cluster, kafka, keys, value_bytes)
        make = _requests(rng, keys, bool(value_bytes))
        load = SteadyLoad(kafka, http, dict(cluster.app.operators), make, load_options, rng)
        load.start()
        await snapshot_taken(cluster)
        changer = Changer(cluster, load, rng, watched_s)
        unchanged_s = await changer.unchanged()
        tell(f"no change: {unchanged_s:.2f} s without a reply at most")
        workers = cluster.options.workers
        for wanted in steps:
            changes.append(await changer.change(wanted, plan.of(wanted > workers)))
            tell(shown(changes[-1]))
            workers = wanted
        await load.stop()
        if load.contradictions:
            raise AuditFailed("\n".join(load.contradictions))
        read = await _read(kafka, http, keys, bool(value_bytes), rng)
    begun = await asyncio.to_thread(_generations, cluster)
    planned = changer.planned()
    check_generations(begun, planned)
    found = await audit(cluster, [*load.replies, *read.values()])
    check_read(read, found.history.state)
    return Scaled(unchanged_s, changes, begun, planned, found, len(read))


async def _load(cluster: ClusterUnderTest, client: Client, keys: int, value_bytes: int) -> None:
    accounts = ((f"a{number}", INITIAL_BALANCE) for number in range(keys))
    await client.load(cluster.app.operator(account.name), accounts, timeout=LOAD_SECONDS_MAX)
    if value_bytes:
        cell = {"number": 0, "counter": 0, "note": "x" * value_bytes}
        cells = ((f"k{number}", cell) for number in range(keys))
        await client.load(cluster.app.operator(text.name), cells, timeout=LOAD_SECONDS_MAX)


def _requests(rng: Random, keys: int, cells: bool) -> Callable[[], Planned]:
    transfer = transfers(rng, keys)

    def make() -> Planned:
        if cells and rng.random() < ROWS_SHARE:
            return row_request(rng)
        if cells and rng.random() < 0.5:
            return Planned(text.name, f"k{rng.randrange(keys)}", "run", ([["add", rng.randint(1, 9)]],))
        return transfer()

    return make


# What must hold ------------------------------------------------------------------------------------------------


def check_generations(begun: Iterable[Begun], planned: Collection[int]) -> None:
    """Checks that generations on held snapshots had nothing to replay. Raises `AuditFailed`."""
    for each in begun:
        if each.generation in planned and each.replayed:
            raise AuditFailed(f"generation {each.generation} was planned, and had {each.replayed} epochs to replay")


def check_read(read: dict[tuple[str, str], Reply], state: State) -> None:
    """Checks that clients have read the state that a serial replay leaves. Raises `AuditFailed`."""
    for entity, reply in read.items():
        kept: Any = decode_plain(state[entity])
        expected = kept["number"] if entity[0] == text.name else kept
        if reply.result != expected:
            raise AuditFailed(f"{entity} was read as {reply.result}; a serial replay leaves {expected}")


async def _read(kafka: Client, http: Client, keys: int, cells: bool, rng: Random) -> dict[tuple[str, str], Reply]:
    """Reads entities through Kafka and over HTTP, by requests that change nothing."""
    numbers = rng.sample(range(keys), min(keys, READ_MAX))
    wanted: list[tuple[str, str, str, Any]] = [(account.name, f"a{number}", "credit", 0) for number in numbers]
    if cells:
        wanted += [(text.name, f"k{number}", "run", [["read"]]) for number in numbers]
    read: dict[tuple[str, str], Reply] = {}

    async def one(operator: str, key: str, function: str, argument: Any) -> None:
        client = http if rng.random() < READ_HTTP_SHARE else kafka
        async with asyncio.timeout(READ_SECONDS_MAX):
            while True:
                try:
                    reply = await client.request(operator, key, function, argument, timeout=READ_SECONDS_MAX)
                except NotSent:  # a busy broker has been silent for a while
                    await asyncio.sleep(READ_AGAIN_SECONDS)
                else:
                    read[operator, key] = reply
                    return

    for first in range(0, len(wanted), READ_AT_ONCE):
        await asyncio.gather(*(one(*each) for each in wanted[first : first + READ_AT_ONCE]))
    return read


def _generations(cluster: ClusterUnderTest) -> list[Begun]:
    reader = cluster.reader()
    try:
        return read_generations(reader, cluster.options.slots)
    finally:
        reader.close()


# The command ---------------------------------------------------------------------------------------------------


def shown(change: Change) -> str:
    """A change in a few lines."""
    killed = "".join(f", {kill.victim} killed at {kill.moment!r}" for kill in change.kills)
    lines = [
        f"{len(change.before)} to {change.workers} workers{killed}: {change.pause_s:.2f} s without a reply at most, "
        f"settled after {change.settled_s:.2f} s, generation {change.first} to {change.last}",
        f"    slots before {_placed(change.before)}",
        f"    slots after  {_placed(change.after)}",
    ]
    if change.parts:
        lines.append("    in ms: " + ", ".join(f"{part} {1e3 * part_s:.0f}" for part, part_s in change.parts.items()))
    return "\n".join(lines)


def _placed(slots: dict[str, list[int]]) -> str:
    return "; ".join(f"{worker}: {' '.join(map(str, owned))}" for worker, owned in slots.items())


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof.cluster.scaling", description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--value-bytes", type=int, default=0, help="as many cells beside the accounts (default none)")
    parser.add_argument("--workers", type=int, default=2, help="to begin with (default 2)")
    parser.add_argument("--steps", default="4,2,4,2", help="numbers of workers to change to (default 4,2,4,2)")
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second (default 200)")
    parser.add_argument("--kill", default="none", help=f"in the changes in turn, of {', '.join(KILLS)} (default none)")
    parser.add_argument("--snapshot-interval", type=float, default=5.0, help="seconds (default 5)")
    parser.add_argument("--seed", type=int, default=1, help="decides requests, victims and moments (default 1)")
    options = parser.parse_args(arguments)
    steps = [int(each) for each in options.steps.split(",")]
    if any(not 1 <= step <= options.slots for step in steps):
        parser.error(f"{options.slots} slots can be shared by 1 to {options.slots} workers")
    kills = options.kill.split(",")
    if not set(kills) <= set(KILLS):
        parser.error(f"--kill takes {', '.join(KILLS)}")
    directory = working_directory("scaling")
    with local_services() as services:
        cluster = ClusterUnderTest(
            ClusterOptions(
                app=APP,
                name="scaling",
                kafka=services.kafka_address,
                store="scaling",
                s3_endpoint=services.s3_endpoint,
                directory=directory,
                workers=options.workers,
                slots=options.slots,
                snapshot_interval_s=options.snapshot_interval,
                coordinator_module=MODULE,
            )
        )

        async def run() -> Scaled:
            async with cluster:
                return await measure(
                    cluster,
                    steps,
                    kills,
                    options.keys,
                    options.value_bytes,
                    Random(options.seed),
                    LoadOptions(rate=options.rate),
                    tell=lambda line: print(line, flush=True),
                )

        try:
            scaled = asyncio.run(run())
        except (SerializabilityViolation, ChildFailed) as failure:
            print(f"FAILED: {failure}")
            return 1
    _print(scaled)
    return 0


def _print(scaled: Scaled) -> None:
    for begun in scaled.generations:
        planned = ", planned" if begun.generation in scaled.planned else ""
        print(
            f"generation {begun.generation}{planned}: on the snapshot of epoch {begun.snapshot_epoch}, "
            f"{begun.replayed} epochs replayed"
        )
    history = scaled.audit.history
    print(
        f"ok: {scaled.audit.records} requests, each answered once; {scaled.read} entities read; serial replay agrees "
        f"on {history.committed} commits, {history.aborted} aborts, {history.repetitions} repetitions, and on the state"
    )


if __name__ == "__main__":
    sys.exit(main())
