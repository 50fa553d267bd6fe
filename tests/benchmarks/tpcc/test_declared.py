"""What TPC-C's functions are declared as: reads as read-only, with all that they call, and transactions at home as
local; and in which phase the engine then runs them.
"""

from __future__ import annotations

import asyncio

import styx
from benchmarks.driver.loading import load
from benchmarks.driver.lossy import Loss, LossyApp
from benchmarks.driver.workload import Planned
from benchmarks.tpcc.app import app
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.workload import TpcC

SETTINGS = Settings(warehouses=2, items=100, customers=30)
READING = {"order_status", "stock_level", "items_below"}


def test_what_reads_only_is_declared_so_and_nothing_else() -> None:
    for operator in app.operators.values():
        for name, function in operator.functions.items():
            reads = name in READING or name.startswith("audit_")
            assert function.read_only == reads, f"{operator.name}.{name}"


def test_what_stays_at_home_is_declared_so_and_nothing_else() -> None:
    local = {
        f"{operator.name}.{name}"
        for operator in app.operators.values()
        for name, function in operator.functions.items()
        if function.local
    }
    assert local == {"district.local_new_order", "warehouse.local_payment", "warehouse.local_delivery"}


def phases(**options: str) -> dict[str, set[tuple[str, int]]]:
    """(function, phase) of the committed transactions, by kind."""

    async def run() -> dict[str, set[tuple[str, int]]]:
        workload = TpcC(Settings(warehouses=2, items=100, customers=30, **options))  # type: ignore[arg-type]
        found: dict[str, set[tuple[str, int]]] = {}
        async with styx.embedded(app) as client:
            for loading in workload.initial():
                await load(client, loading)
            generator = workload.generator(0, 1, 1)
            sent: list[Planned] = [generator.next() for _ in range(300)]
            replies = await asyncio.gather(
                *(client.submit(each.operator, each.key, each.function, *each.arguments) for each in sent)
            )
            for each, reply in zip(sent, replies, strict=True):
                generator.answered(each, reply)
                if reply.error is None:
                    found.setdefault(each.kind, set()).add((each.function, reply.phase))
            audit = await workload.audit(client, [generator.witness()])
            assert audit.violations == []
        return found

    return asyncio.run(run())


def test_reads_run_in_phase_0_what_is_at_home_in_phase_3_and_the_rest_in_neither() -> None:
    found = phases()
    assert {phase for kind in ("order-status", "stock-level") for _, phase in found[kind]} == {0}
    for kind in ("new-order", "payment", "delivery"):
        for function, phase in found[kind]:
            assert (phase == 3) == function.startswith("local_"), (function, phase)
    assert {function for function, _ in found["payment"]} == {"payment", "local_payment"}


def test_undeclared_ones_run_in_the_phases_of_any_transaction() -> None:
    found = phases(at_home="ordinary")
    assert {phase for kind in ("new-order", "payment", "delivery") for _, phase in found[kind]} <= {1, 2}


def test_a_function_that_loses_its_writes_keeps_its_declaration() -> None:
    lossy = LossyApp(app, Loss("district", "local_new_order", 0.1)).app.operator("district")
    assert lossy.functions["local_new_order"].local
    assert not lossy.functions["new_order"].local
