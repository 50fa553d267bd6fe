"""`python -m proof.judge cluster`: its options, and the services and processes that it starts.
`proof.judge.on_cluster` does the recording.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import tempfile
import time
from pathlib import Path
from typing import Any

from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.services import Service, local_services
from proof.judge.on_cluster import FAULTS, PAIRS_MAX, STEADY_SECONDS, WAYS, OnCluster, Plan, Struck, record_on_cluster
from proof.judge.recorded import KINDS
from styx.errors import ConfigurationError

APP = "proof.judge.app:app"
PAIRS = "pairs"
"""Instead of a model: no history, but as many pairs as are wanted."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options, but for `--out`."""
    models = (*KINDS, "all", PAIRS)
    parser.add_argument("--model", choices=models, default="all", help="all: at the same time (default); pairs: none")
    parser.add_argument("--seconds", type=float, default=30.0, help="at least; and each fault once (default 30)")
    parser.add_argument("--faults", default=",".join(FAULTS), help=f"of: {', '.join(FAULTS)}; or none (default: all)")
    parser.add_argument("--client", choices=(*WAYS, "both"), default="both", help="default: both")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--processes", type=int, default=10, help="transactions of each model, or pairs, at one time")
    parser.add_argument("--pairs", type=int, default=PAIRS_MAX, help="at most; with --model pairs: until all are done")
    parser.add_argument("--steady", type=float, default=STEADY_SECONDS, help="seconds before each fault (default 2)")
    parser.add_argument("--keys", type=int, default=8, help="entities in use at a time; fewer mean more conflicts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kafka", metavar="HOST:PORT", help="a broker that runs; default: one of its own")
    parser.add_argument("--s3-endpoint", metavar="URL", help="beside --kafka; default: a directory")


def run(options: argparse.Namespace) -> OnCluster:
    """Records as the options say. Raises `ConfigurationError`, `OSError`, or `ChildFailed`."""
    plan = _plan(options)
    # aiokafka logs each attempt to reach a broker that is away.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    if options.kafka is not None:
        return _recorded(options, plan, options.kafka, options.s3_endpoint, _Foreign())
    with local_services() as services:
        return _recorded(options, plan, services.kafka_address, services.s3_endpoint, services.kafka)


class _Foreign:
    """A broker of others, which must not be restarted. `_plan` allows no fault that would."""

    def kill(self) -> None:
        raise NotImplementedError

    def start(self) -> None:
        raise NotImplementedError


def _plan(options: argparse.Namespace) -> Plan:
    faults = [] if options.faults == "none" else options.faults.split(",")
    for fault in faults:
        if fault not in FAULTS:
            raise ConfigurationError(f"there is no fault {fault!r}: choose of {', '.join(FAULTS)}; or none")
    if options.kafka is not None and "kafka" in faults:
        raise ConfigurationError("the fault kafka needs a broker of its own: leave out --kafka, or name other --faults")
    if options.kafka is None and options.s3_endpoint is not None:
        raise ConfigurationError("--s3-endpoint goes with --kafka")
    if options.pairs < 1:
        raise ConfigurationError(f"--pairs is 1 or more, got {options.pairs}")
    of_pairs: dict[str, Any] = {"all_pairs": True, "pair_processes": options.processes}
    return Plan(
        models={"all": KINDS, PAIRS: ()}.get(options.model, (options.model,)),
        ways=WAYS if options.client == "both" else (options.client,),
        faults=faults,
        seconds=options.seconds,
        processes=options.processes,
        keys=options.keys,
        pairs=options.pairs,
        steady_s=options.steady,
        seed=options.seed,
        **(of_pairs if options.model == PAIRS else {}),
    )


def _recorded(
    options: argparse.Namespace, plan: Plan, kafka: str, s3_endpoint: str | None, broker: Service
) -> OnCluster:
    # A name by the time, so that the topics of an earlier run are not used.
    name = f"judge-{time.time_ns() // 1_000_000}"
    directory = Path(tempfile.mkdtemp(prefix="styx-judge-"))
    print(f"the processes' logs are in {directory}", flush=True)
    cluster_options = ClusterOptions(
        app=APP,
        name=name,
        kafka=kafka,
        store=name if s3_endpoint is not None else (directory / "store").as_uri(),
        s3_endpoint=s3_endpoint,
        directory=directory,
        workers=options.workers,
    )

    async def record() -> OnCluster:
        async with ClusterUnderTest(cluster_options) as cluster:
            return await record_on_cluster(cluster, broker, plan, _tell)

    recorded = asyncio.run(record())
    print(f"the processes counted: {recorded.counted}", flush=True)
    return recorded


def _tell(struck: Struck) -> None:
    print(f"{struck.fault}: an answer after {struck.seconds:.1f} s", flush=True)
