"""The table of the targets. The file named after a target's group measures it."""

from __future__ import annotations

from typing import Final, NamedTuple

from benchmarks.reference.pgbench_run import DURABILITIES

TOP: Final = "top"
CPU_RATES: Final = (1_000, 5_000, 10_000)
"""Requests a second at which worker and echo are compared; and `TOP`, near the worker's highest rate."""


class Target(NamedTuple):
    """`bound` is the highest allowed figure, or the lowest if `at_least`. `what` names the measurement; "A by B" is A
    divided by B. Shares are of 1; other figures are in `unit`. A target without a bound explains another row, and
    `explains` says which.
    """

    group: str
    name: str
    what: str
    bound: float | None
    unit: str = "times"
    at_least: bool = False
    explains: str = ""


TARGETS: Final = (
    Target("engine", "engine-uniform", "engine in memory, 10,000 keys: CPU by the bare loop's", 10),
    Target("engine", "engine-hot", "engine in memory, all in conflict: CPU by the bare loop's", 22),
    Target("workers", "two-by-engine", "2 workers, all multi-partition: CPU by the engine's in memory", 3),
    Target("workers", "two-by-one", "2 workers, all multi-partition: CPU by 1 worker's, equal rate", 3),
    Target("workers", "eight-by-two", "8 workers, all multi-partition: CPU by 2 workers', equal rate", 1.3),
    Target(
        "workers",
        "four-twos-by-two",
        "4 clusters of 2 workers: CPU by 1 of them's, equal total rate",
        None,
        explains="bounds the above",
    ),
    Target("pipeline", "rate-by-echo", "1 worker on Kafka: highest rate by the echo's", 0.3, "share", at_least=True),
    Target("pipeline", "latency-by-echo", "1 worker on Kafka, 100/s: median latency by the echo's", 1.6),
    *(
        Target("pipeline", f"cpu-{rate}", f"1 worker on Kafka, {rate}/s: CPU by the echo process's", 5)
        for rate in CPU_RATES
    ),
    Target("pipeline", f"cpu-{TOP}", "1 worker on Kafka, near its highest rate: CPU by the echo process's", 5),
    Target("postgres", "postgres-uniform", "highest rate by PostgreSQL's, uniform", 4, at_least=True),
    *(
        Target(
            "postgres",
            f"pgbench-{commit}",
            f"highest rate by pgbench's on PostgreSQL, {what}, uniform",
            None,
            explains="the strongest line",
        )
        for commit, what in DURABILITIES.items()
    ),
    Target("postgres", "postgres-zipf", "highest rate by PostgreSQL's, Zipf 0.99", 10, at_least=True),
    Target("skew", "skew-1", "1 worker: highest rate with Zipf 0.999 by uniform", 0.5, "share", at_least=True),
    Target("skew", "skew-2", "2 workers: highest rate with Zipf 0.999 by uniform", 0.5, "share", at_least=True),
    Target(
        "snapshots", "snapshots", "a snapshot each second, 1 M keys: rate by that without", 0.95, "share", at_least=True
    ),
    Target(
        "tpcc",
        "tpcc-one-by-ten",
        "TPC-C's NewOrder and Payment on 1 worker: highest rate with 1 warehouse by 10 warehouses'",
        0.25,
        "share",
        at_least=True,
    ),
    Target("tpcc", "tpcc-new-order", "TPC-C's NewOrder in 100 warehouses: CPU of 1 worker", 1000, "µs"),
    Target("tpcc", "tpcc-new-order-contended", "TPC-C's NewOrder in 1 warehouse: CPU of 1 worker", 2000, "µs"),
    Target("memory", "memory", "1 M keys of small state: memory for each, over key and value", 300, "bytes"),
)
GROUPS: Final = tuple(dict.fromkeys(target.group for target in TARGETS))
