"""`python -m benchmarks.bill`: what an epoch with 1, 3, 10 and 100 transactions costs, on one worker and on two.

It starts a Kafka, a store and a cluster of its own for each number of workers, and once more with processes that count
the Python functions they enter. Bursts of transfers come from a client of Kafka, and from one over HTTP. Figures are of
an epoch, without what the processes do while nothing happens. `strace` counts system calls; without it they are left
out. It takes about ten minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.bill.bursts import Bursts, open_accounts
from benchmarks.bill.counted_process import MODULE as COUNTED
from benchmarks.bill.measure import CLIENT, KINDS, Counts, Line, Meter, calling, timing, tracing
from benchmarks.bill.system import can_trace
from benchmarks.driver.deployment.own_cluster import BenchmarkCluster
from benchmarks.experiments.text_table import text_table
from proof.cluster.cluster import ClusterOptions
from proof.cluster.services import local_services
from styx.client.connect import connect
from styx.native.form import FORM, describe

SIZES: Final = (1, 3, 10, 100)
WORKERS: Final = (1, 2)
KAFKA, HTTP = "Kafka", "HTTP"
SLOTS: Final = 16
REPLY_PARTITIONS: Final = 16
NEVER_SECONDS: Final = 86_400.0
"""Between two snapshots, which would be counted with the epochs."""
TRACED_BURSTS: Final = 50
_ORDER: Final = ("worker", "coordinator", "broker", "gateway", CLIENT)


@asynccontextmanager
async def cluster_of(workers: int, module: str) -> AsyncIterator[BenchmarkCluster]:
    """A cluster with a gateway, of processes of `module`, on services of its own."""
    with tempfile.TemporaryDirectory(prefix="styx-bill-") as folder, local_services() as services:
        options = ClusterOptions(
            app="benchmarks.ycsbt.bank:app",
            name="bill",
            kafka=services.kafka_address,
            store="bill",
            s3_endpoint=services.s3_endpoint,
            directory=Path(folder),
            workers=workers,
            slots=SLOTS,
            reply_partitions=REPLY_PARTITIONS,
            snapshot_interval_s=NEVER_SECONDS,
            worker_module=module,
            coordinator_module=module,
            gateway_module=module,
        )
        async with BenchmarkCluster(options, services, through_gateway=True) as cluster:
            await cluster.start()
            async with cluster.client() as client:
                await open_accounts(client)
            yield cluster


async def bill_of(cluster: BenchmarkCluster, sizes: Sequence[int], bursts: int, counted: bool) -> list[Line]:
    """Lines with the counts that this kind of processes is for."""
    workers, lines = cluster.options.workers, []
    for front in (KAFKA, HTTP):
        client = cluster.client() if front == KAFKA else connect(cluster.http_url, cluster.app)
        async with client:
            load = Bursts(client)
            pids = {role: list(each) for role, each in cluster.pids().items() if role != "store"}
            pids |= {CLIENT: [os.getpid()]}
            meters: list[tuple[Meter, int]] = []
            if counted:
                del pids["broker"]
                meters.append((calling(pids, cluster.options.directory), bursts))
            else:
                meters.append((timing(pids), bursts))
                if can_trace():
                    meters.append((tracing(pids), min(bursts, TRACED_BURSTS)))
            await load.run(1, bursts)  # the broker warms up
            for meter, _ in meters:
                await meter.idle()
            for size in sizes:
                counts: Counts = {}
                epochs = []
                await load.run(size, bursts // 4)
                for meter, number in meters:
                    found, each = await meter.of(load, size, number)
                    epochs.append(each)
                    for role, of_role in found.items():
                        counts.setdefault(role, {}).update(of_role)
                lines.append(Line(workers, front, size, sum(epochs) / len(epochs), counts))
                print(f"{workers} workers, {front}, {size}: done", file=sys.stderr, flush=True)
    return lines


def joined(lines: Sequence[Line], counted: Sequence[Line]) -> list[Line]:
    """The lines with the counts of both kinds of processes. What all others asked of the broker is its own."""
    by_key = {(each.workers, each.front, each.size): each.counts for each in counted}
    whole = []
    for line in lines:
        more = by_key[line.workers, line.front, line.size]
        counts = {role: {**of_role, **more.get(role, {})} for role, of_role in line.counts.items()}
        for kind in ("broker requests", "fetches"):
            counts["broker"][kind] = sum(of_role.get(kind, 0.0) for of_role in more.values())
        whole.append(msgspec.structs.replace(line, counts=counts))
    return whole


def table(lines: Sequence[Line]) -> str:
    """For people; a role that has no part in a front is left out."""
    rows = []
    for line in lines:
        for role in _ORDER:
            if role == "gateway" and line.front == KAFKA:
                continue
            of_role = line.counts[role]
            cells = [f"{of_role[kind]:,.1f}" if kind in of_role else "" for kind in KINDS]
            rows.append([str(line.workers), line.front, str(line.size), f"{line.epochs:.2f}", role, *cells])
    return text_table(["workers", "client", "transactions", "epochs", "process", *KINDS], rows)


async def _main(options: argparse.Namespace) -> None:
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    lines: list[Line] = []
    for workers in options.workers:
        async with cluster_of(workers, "styx") as cluster:
            plain = await bill_of(cluster, options.sizes, options.bursts, counted=False)
        async with cluster_of(workers, COUNTED) as cluster:
            new = joined(plain, await bill_of(cluster, options.sizes, options.bursts, counted=True))
        lines += new
        print(f"{describe(FORM)}, {workers} workers; of an epoch:\n{table(new)}", flush=True)
        if options.out is not None:
            whole = msgspec.json.encode({"form": describe(FORM), "lines": lines})
            options.out.write_bytes(msgspec.json.format(whole))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bill", description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS, metavar="N", help="(default 1 2)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="(default 1 3 10 100)")
    parser.add_argument("--bursts", type=int, default=300, help="of each size (default 300)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON of the same")
    asyncio.run(_main(parser.parse_args()))
