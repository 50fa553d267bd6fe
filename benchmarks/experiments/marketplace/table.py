"""The table of the experiments. A new one is a line.

Those that begin with `vmodb` are of R. Laigner et al., vMODB (arXiv 2504.19757), sections 6.3 and 6.4. `concurrency`,
`skew`, `scaling`, `latency` and `criteria` are of R. Laigner and Y. Zhou, Benchmarking Data Management Systems for
Microservices, section 7.2. The others are of neither.
"""

from __future__ import annotations

from typing import Final

from benchmarks.driver.zipf import STEEPEST
from benchmarks.experiments.marketplace.experiment import CLUSTER, Experiment, Numbers, Setting
from benchmarks.experiments.numbers import WORKERS_MAX

_ALONE: Final = (Setting("as it is"),)
_ARCHIVES: Final = (Setting("no archives", "", "MARKETPLACE_ARCHIVE=off"), Setting("archives"))
_DASHBOARDS: Final = (Setting("no dashboards", "--without dashboard"), Setting("dashboards"))
_WRITERS: Final = 12.48
_WRITERS_SHARE: Final = 0.52
"""Of scenario C; the rest are dashboards."""
_WITH_DASHBOARDS: Final = f"--rate {_WRITERS / _WRITERS_SHARE:g}"
_WAYS: Final = (
    Setting("no dashboards", f"--without dashboard --rate {_WRITERS:g}"),
    Setting("transactions", _WITH_DASHBOARDS),
    Setting("read", f"{_WITH_DASHBOARDS} --dashboard read"),
    Setting("sql", f"{_WITH_DASHBOARDS} --dashboard sql --replica own"),
)
"""The writers come at one rate, with and without dashboards."""
_DURABILITY: Final = (
    Setting("in memory", "--in-memory"),
    Setting("log", "--snapshot-interval 100000"),
    Setting("log and snapshots", "--snapshot-interval 1"),
)
_REPLICATION: Final = tuple(
    Setting(name, "", f"MARKETPLACE_REPLICATION={name}") for name in ("eventual", "object", "seller", "together")
)
_CRITERIA: Final = (
    Setting("eventual, no dashboards", "--without dashboard", "MARKETPLACE_REPLICATION=eventual"),
    Setting("causal, dashboards", "", "MARKETPLACE_REPLICATION=seller"),
)
_LEVELS: Final = Numbers("--concurrency", "requests at once", "1,8,24,48", 1, 10_000)
_SKEW: Final = Numbers("--seller-zipf", "Zipf exponent of the sellers", "0,0.4,0.8,1.2", 0, STEEPEST)
_WORKERS: Final = Numbers("--workers", "workers", "1,2,4", 1, WORKERS_MAX)
_EPOCHS: Final = Numbers("--epoch-transactions", "transactions of an epoch at most", "1,4,16,64,200", 1, 100_000)
_MANY_AT_ONCE: Final = "--concurrency 200"
"""More than the largest epoch."""
_WAREHOUSES: Final = Numbers("--warehouses", "warehouses", "1,2,4,8", 1, 1_000)
_VMODB: Final = "--mix vmodb"
_ONE_TRANSACTION: Final = "MARKETPLACE_PAYMENT=together"
"""A checkout of vMODB ends with its payment and its shipment."""
_TPCC_MIXES: Final = (Setting("NewOrder", "--mix new-order"), Setting("standard mix", "--mix standard"))

TABLE: Final = {
    "concurrency": Experiment("requests at once, with archives and without", _ARCHIVES, numbers=_LEVELS),
    "skew": Experiment("the sellers' skew", _DASHBOARDS, numbers=_SKEW, apart="dashboard"),
    "scaling": Experiment("more and more workers", _ARCHIVES, numbers=_WORKERS, on=CLUSTER),
    "logging": Experiment("what archives cost", _ARCHIVES),
    "dashboard": Experiment("what dashboards cost", _DASHBOARDS, apart="dashboard"),
    "dashboard-ways": Experiment(
        "what dashboards cost the writers of scenario C, by the way in which they are asked for",
        _WAYS,
        "--mix c --gateway",
        on=CLUSTER,
        apart="dashboard",
        open=True,
    ),
    "replication": Experiment("how copies follow, scenario B", _REPLICATION, "--mix b"),
    "criteria": Experiment("what dashboards and causal copies cost together", _CRITERIA, apart="dashboard"),
    "durability": Experiment("what files cost", _DURABILITY),
    "latency": Experiment(
        "latency of each kind, by scenario",
        tuple(Setting(f"scenario {mix.upper()}", f"--mix {mix}") for mix in "abc"),
        by_kind=True,
    ),
    "epochs": Experiment("the size of an epoch", _ALONE, _MANY_AT_ONCE, _EPOCHS),
    "crash": Experiment("a worker dies in the middle", _ALONE, on=CLUSTER, dies=True),
    "vmodb-concurrency": Experiment(
        "vMODB's mix, requests at once", _DURABILITY, _VMODB, _LEVELS, variables=_ONE_TRANSACTION
    ),
    "vmodb-latency": Experiment(
        "vMODB's mix, latency of each kind", _ALONE, _VMODB, variables=_ONE_TRANSACTION, by_kind=True
    ),
    "vmodb-scaling": Experiment(
        "checkouts alone, workers", _ALONE, "--mix checkout-only", _WORKERS, variables=_ONE_TRANSACTION, on=CLUSTER
    ),
    "vmodb-skew": Experiment(
        "vMODB's mix, the sellers' skew",
        _DASHBOARDS,
        _VMODB,
        _SKEW,
        variables=_ONE_TRANSACTION,
        apart="dashboard",
        by_kind=True,
    ),
    "vmodb-epochs": Experiment(
        "vMODB's mix, the size of an epoch",
        _ALONE,
        f"{_VMODB} {_MANY_AT_ONCE}",
        _EPOCHS,
        variables=_ONE_TRANSACTION,
        by_kind=True,
    ),
    "vmodb-tpcc": Experiment(
        "TPC-C's NewOrder, warehouses", _DURABILITY, "--mix new-order", _WAREHOUSES, workload="tpcc"
    ),
    "vmodb-tpcc-mix": Experiment(
        "TPC-C's mix beside its NewOrder, warehouses", _TPCC_MIXES, "", _WAREHOUSES, workload="tpcc", by_kind=True
    ),
}
"""By the name that the command takes."""
