"""The group `tpcc`, on one worker: the rate with one warehouse by that with ten, and the cost of a NewOrder with few
conflicts and with many.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from typing import Final

from benchmarks.experiments.bench import Bench
from benchmarks.experiments.place import Place, place
from benchmarks.experiments.subject import Subject
from benchmarks.experiments.targets.compare import compare, note
from benchmarks.experiments.targets.verdict import Run, Verdict
from benchmarks.experiments.workload_table import DataSet, Kind
from benchmarks.experiments.workloads import Measured, at_a_moderate_rate, data_set_on, options_of

RATE: Final = "tpcc-one-by-ten"
UNCONTENDED: Final = "tpcc-new-order"
CONTENDED: Final = "tpcc-new-order-contended"
PACKAGE: Final = "benchmarks.tpcc"
NEW_ORDER: Final = Kind("NewOrder", "--mix new-order")
BOTH: Final = Kind("NewOrder and Payment", "--mix new-order-payment")
ONE: Final = DataSet("TPC-C, 1 warehouse", PACKAGE, "--warehouses 1", (BOTH, NEW_ORDER))
TEN: Final = DataSet("TPC-C, 10 warehouses", PACKAGE, "--warehouses 10", (BOTH,))
HUNDRED: Final = DataSet("TPC-C, 100 warehouses", PACKAGE, "--warehouses 100 --items 5000 --customers 30", (NEW_ORDER,))
"""A thousand districts: of the orders of one epoch, few are of the same one."""


async def measure(bench: Bench, verdicts: Mapping[str, Verdict], _many_keys: int) -> None:
    """Each data set on a cluster of its own; those that no row needs are not started."""
    async with place(bench) as here:
        if RATE in verdicts:
            async with AsyncExitStack() as stack:
                one = await stack.enter_async_context(_kind_of(bench, here, ONE, BOTH, "rate-1"))
                ten = await stack.enter_async_context(_kind_of(bench, here, TEN, BOTH, "rate-10"))
                await compare(bench, verdicts[RATE], one.highest_rate, ten.highest_rate, "/s")
        for name, data_set in ((UNCONTENDED, HUNDRED), (CONTENDED, ONE)):
            if name in verdicts:
                async with _kind_of(bench, here, data_set, NEW_ORDER, name) as subject:
                    await subject.warmed()
                    found = Measured(data=data_set.name, kind=NEW_ORDER.name, workers=1, rate=0.0)
                    await at_a_moderate_rate(bench, subject, NEW_ORDER, found)
                    for number, cpu_us in enumerate(found.cpu_us, 1):
                        note(bench, verdicts[name], number, Run(over=cpu_us))


@asynccontextmanager
async def _kind_of(bench: Bench, here: Place, data_set: DataSet, kind: Kind, name: str) -> AsyncIterator[Subject]:
    """On one worker; the state is audited behind the block."""
    module = import_module(f"{data_set.package}.options")
    given = [options_of(module, data_set, each, 1, bench.common.slots) for each in data_set.kinds]
    cluster = await here.cluster(name, 1, app=module.make_workload(given[0]).app_target)
    async with data_set_on(bench, cluster, data_set, module.make_workload, given) as opened, opened(kind) as subject:
        yield subject
    await cluster.end()
