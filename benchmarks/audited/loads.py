"""The applications whose determinism is audited, and the requests that they get: random programs with events, transfers
between accounts, and TPC-C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Final, NamedTuple

from benchmarks.driver.workload import Loading, Workload
from benchmarks.tpcc.settings import Settings as OfTpcC
from benchmarks.tpcc.workload import TpcC
from benchmarks.ycsbt.settings import Settings as OfTransfers
from benchmarks.ycsbt.workload import YcsbT
from proof.cluster.load import Planned, chaos_requests

ACCOUNTS: Final = 2_000
"""Few enough for conflicts in every epoch."""


class Load(NamedTuple):
    """An application as MODULE:APP, what is loaded before it runs, and what makes its requests on so many slots."""

    app: str
    initial: Callable[[], Iterable[Loading]]
    requests: Callable[[Random, int], Callable[[], Planned]]


def _of(workload: Workload) -> Load:
    """The load of a workload of the benchmarks' driver, whose replies are not looked at: the audit judges them."""

    def requests(rng: Random, n_slots: int) -> Callable[[], Planned]:
        generator = workload.generator(0, 1, rng.randrange(2**32))

        def make() -> Planned:
            planned = generator.next()
            return Planned(planned.operator.name, planned.key, planned.function, planned.arguments)

        return make

    return Load(workload.app_target, workload.initial, requests)


LOADS: Final[dict[str, Load]] = {
    "programs": Load("proof.chaos_app:emitting", tuple, chaos_requests),
    "bank": _of(YcsbT(OfTransfers(keys=ACCOUNTS))),
    "tpcc": _of(TpcC(OfTpcC(warehouses=2, items=1_000, customers=60))),
}
"""By name."""
