"""The judge's command line: `run` and `cluster` record and judge, `check` judges a recorded history.

The exit status is 0 without an anomaly, 1 with one, 2 if adya could not decide.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from proof.cluster.child import ChildFailed
from proof.judge import adya, cluster_command
from proof.judge.app import app
from proof.judge.claimed_order import problems, shared_ids
from proof.judge.recorded import KINDS, Kind, Recorded, load
from proof.judge.recording import NUMBERS_PER_KIND, recorded_of
from proof.judge.rows.pairs import PROBLEMS_MAX, Paired, run_pairs
from proof.judge.rows.verdict import check_rows
from styx.client.base import Client
from styx.client.connect import connect
from styx.client.credential import from_environment
from styx.client.embedded import embedded
from styx.errors import ConfigurationError
from styx.testing.fixture import embedded_cluster

CRASH_EVERY_SECONDS = 0.5
"""The time from a recovery of the judge's own engine to its next loss of power."""
SNAPSHOT_SECONDS = 0.2
"""Shorter than `CRASH_EVERY_SECONDS`, so that a recovery does not begin with the first transaction each time."""


def main(arguments: list[str] | None = None) -> int:
    """Runs a command. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof.judge", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="send transactions, record what they did, and judge it")
    run.add_argument("--url", help="a deployment of proof.judge.app:app; default: an engine of its own")
    run.add_argument("--model", choices=KINDS, action="append", help="default: one after the other")
    run.add_argument("--transactions", type=int, default=5_000, help="of each model")
    run.add_argument("--processes", type=int, default=20, help="transactions at the same time")
    run.add_argument("--keys", type=int, default=8, help="entities in use at a time; fewer mean more conflicts")
    run.add_argument("--seed", type=int, default=0)
    run.add_argument("--out", type=Path, default=Path("judged"), help="where the histories are written")
    cluster = commands.add_parser("cluster", help="the same on a cluster of real processes, with faults")
    cluster_command.add_options(cluster)
    cluster.add_argument("--out", type=Path, default=Path("judged"), help="where the histories are written")
    pairs = commands.add_parser("pairs", help="pairs of transactions that want one unique value: one must get it")
    pairs.add_argument("--pairs", type=int, default=100_000)
    pairs.add_argument("--processes", type=int, default=5, help="pairs at the same time; with more, fewer of them meet")
    pairs.add_argument("--seed", type=int, default=0)
    check = commands.add_parser("check", help="judge histories recorded before")
    check.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    try:
        if options.command == "pairs":
            return told_of_pairs(asyncio.run(_pairs(options)))
        if options.command != "cluster" or options.model != cluster_command.PAIRS:
            adya.find_adya()
        if options.command == "check":
            return _worst([judge(recorded, options.folder) for recorded in load(options.folder)])
        if options.command == "cluster":
            histories, paired, _ = cluster_command.run(options)
            told = [_told(shared_ids(histories)), *([told_of_pairs(paired)] if paired.pairs else [])]
            return _worst([*told, *(_judged(recorded, options.out) for recorded in histories)])
        return _worst([_judged(_run(options, model), options.out) for model in options.model or KINDS])
    except (ConfigurationError, OSError, ChildFailed) as error:
        print(error, file=sys.stderr)
        return 2


def judge(recorded: Recorded, folder: Path) -> int:
    """Prints the verdict on a history saved in `folder`. Returns the exit status."""
    if recorded.model == "rows":
        claimed, found, verdict = check_rows(recorded, folder)
    else:
        claimed, found, verdict = problems(recorded), [], adya.check(recorded, folder)
    counts = ", ".join(f"{recorded.count(type)} {type}" for type in ("ok", "fail", "info"))
    phases = ", ".join(f"{commits} in phase {phase}" for phase, commits in enumerate(recorded.commits_by_phase()))
    valid = False if found else verdict.valid
    words = {True: "strictly serializable", False: "NOT strictly serializable", None: "unknown"}[valid]
    print(f"{recorded.model}: {counts}; {phases}: {words}; {len(claimed)} problems with the claimed order")
    for kind, explanations in verdict.anomalies.items():
        for explanation in explanations:
            print(f"\n{kind}\n{explanation}")
    for problem in found + claimed:
        print(problem)
    if valid is False or claimed:
        return 1
    return 0 if valid else 2


def told_of_pairs(paired: Paired) -> int:
    """Prints what became of pairs. Returns the exit status."""
    print(paired)
    for problem in paired.problems[:PROBLEMS_MAX]:
        print(problem)
    return 1 if paired.problems else 0


def _worst(statuses: list[int]) -> int:
    """The worst exit status. An anomaly is worse than no decision."""
    return 1 if 1 in statuses else max(statuses)


def _told(shared: list[str]) -> int:
    """Prints the unique ids that two histories share. Returns the exit status."""
    for each in shared:
        print(f"two transactions of the two histories were given the unique id {each}")
    return 1 if shared else 0


def _judged(recorded: Recorded, folder: Path) -> int:
    recorded.save(folder)
    return judge(recorded, folder)


def _run(options: argparse.Namespace, model: Kind) -> Recorded:
    return asyncio.run(_remote(options, model) if options.url else _own(options, model))


async def _pairs(options: argparse.Namespace) -> Paired:
    async with embedded(app) as client:
        return await run_pairs([client], pairs=options.pairs, processes=options.processes, seed=options.seed, first=0)


async def _remote(options: argparse.Namespace, model: Kind) -> Recorded:
    async with connect(options.url, app, **from_environment(options.url)) as client:
        # Numbers by the time, so that no run uses the entities of an earlier one in the deployment.
        return await _recorded(options, model, client, int(time.time()) * NUMBERS_PER_KIND * len(KINDS))


async def _own(options: argparse.Namespace, model: Kind) -> Recorded:
    with tempfile.TemporaryDirectory() as data_dir:
        async with embedded_cluster(app, data_dir, snapshot_interval=SNAPSHOT_SECONDS) as cluster:

            async def crash() -> None:
                while True:
                    await asyncio.sleep(CRASH_EVERY_SECONDS)
                    await cluster.crash_and_recover()

            crashes = asyncio.create_task(crash())
            recorded = await _recorded(options, model, cluster, 0)
            crashes.cancel()
            await asyncio.wait([crashes])
            return recorded


async def _recorded(options: argparse.Namespace, model: Kind, client: Client, first: int) -> Recorded:
    return await recorded_of(
        model,
        [client],
        keys=options.keys,
        seed=options.seed,
        first=first,
        processes=options.processes,
        transactions=options.transactions,
    )


if __name__ == "__main__":
    sys.exit(main())
