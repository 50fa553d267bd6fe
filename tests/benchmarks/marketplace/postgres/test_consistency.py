"""The check of the PostgreSQL line passes after a sound run, and finds each fault that is planted."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg
import msgspec
import pytest
import uvloop

from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.session import Generators, Session
from benchmarks.marketplace.driving.witness import record_of
from benchmarks.marketplace.options import add_options, make_workload
from benchmarks.marketplace.postgres.consistency import checked
from benchmarks.marketplace.postgres.filling import fill
from benchmarks.marketplace.postgres.serving import Shape, served
from benchmarks.marketplace.record import Asked, Ended, Kind, Record
from benchmarks.reference.fastapi_deployment import ROLE
from benchmarks.reference.postgres_accounting import BACKENDS
from benchmarks.reference.postgres_server import PostgresServer
from tests.benchmarks.marketplace.postgres.line import new_server

pytestmark = pytest.mark.slow

AN_ORDER = "WHERE (customer_id, order_id) = (SELECT customer_id, order_id FROM new_orders LIMIT 1)"
FAULTS = {
    "pieces come": "UPDATE stock_items SET qty_available = qty_available + 1 WHERE (seller_id, product_id) = (1, 1)",
    "demand is": "UPDATE stock_items SET demand = demand + 1 WHERE (seller_id, product_id) = (1, 1)",
    "too little": "INSERT INTO low_stock VALUES (1, 1, 0, 0, now())",
    "a copy": "UPDATE replicas SET price = price + 1 WHERE (seller_id, product_id) = (1, 1)",
    "an order is the sum": f"UPDATE orders SET total_items = total_items + 1 {AN_ORDER}",
    "an order is the sum of its lines": f"DELETE FROM order_items {AN_ORDER}",
    "an order is the sum of its lines, paid": f"UPDATE payments SET value = value + 1 {AN_ORDER}",
    "an order is the sum of its lines, paid, packed": f"DELETE FROM packages {AN_ORDER}",
    "an order is the sum of its lines, paid, packed, and with its": f"DELETE FROM entry_details {AN_ORDER}",
    "a submission": f"DELETE FROM checkouts {AN_ORDER}",
    "a customer's counts": "UPDATE counts SET success_payment_count = 77 WHERE customer_id = 1",
    "there is None": f"DELETE FROM orders {AN_ORDER}",
    "in the cart was": f"UPDATE order_items SET quantity = quantity + 1 {AN_ORDER}",
    "has 99 changes": "UPDATE products SET change = 99 WHERE (seller_id, product_id) = (1, 1)",
}


class Run:
    """A run that was sound, on a server that still has what it left."""

    def __init__(self, server: PostgresServer, record: Record, roles: set[str]) -> None:
        self.server = server
        self.record = record
        self.roles = roles

    def violations(self, fault: str = "SELECT 1", record: Record | None = None) -> list[str]:
        """With a fault in the tables, which is gone afterwards."""

        async def found() -> list[str]:
            connection = await asyncpg.connect(**self.server.connection())
            try:
                await connection.execute("CREATE SCHEMA kept")
                tables = [row[0] for row in await connection.fetch(_TABLES)]
                for name in tables:
                    await connection.execute(f'CREATE TABLE kept."{name}" AS TABLE public."{name}"')
                await connection.execute(fault)
                return (await checked(self.server.connection(), record or self.record)).violations
            finally:
                for name in tables:
                    await connection.execute(f'TRUNCATE public."{name}" CASCADE')
                for name in tables:
                    await connection.execute(f'INSERT INTO public."{name}" TABLE kept."{name}"')
                await connection.execute("DROP SCHEMA kept CASCADE")
                await connection.close()

        return asyncio.run(found())


_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename <> 'products'"


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    for server in new_server():
        yield uvloop.run(_run_on(server))


async def _run_on(server: PostgresServer) -> Run:
    parser = argparse.ArgumentParser()
    add_options(parser)
    options = parser.parse_args(["--mix", "checkout-price", "--size", "0.005", "--seller-zipf", "1.2", "--orders", "2"])
    workload = make_workload(options)
    await fill(server.connection(), workload.initial())
    async with served(server, Shape(workers=2, connections=4)) as deployment:
        session = Session(workload, Generators(make_workload, options), deployment, lambda _, __: None, print)
        plan = LoadPlan(rate=1, duration_s=2, warm_up_s=0.2, concurrency=8)
        async with session.clients(plan, 30) as clients:
            result = await session.measure(clients, plan)
            witnesses = await clients.witnesses()
    assert not result.errors
    return Run(server, record_of(witnesses), set(result.roles))


def test_a_sound_run_passes(run: Run) -> None:
    assert run.violations() == []
    assert sum(asked.kind is Kind.CHECKOUT for asked in run.record) > 5
    assert {ROLE, BACKENDS} <= run.roles, "the processor time of all servers is known"


@pytest.mark.parametrize(("told", "fault"), FAULTS.items(), ids=FAULTS)
def test_a_fault_in_the_tables_is_found(told: str, fault: str, run: Run) -> None:
    assert any(told in each for each in run.violations(fault))


def changed(record: Record, which: Kind, /, **changes: Any) -> Record:
    """The record, in which the first request of a kind that has committed is another one."""
    asked: list[Asked] = list(record)
    place = next(n for n, each in enumerate(asked) if each.kind is which and each.ended is Ended.COMMITTED)
    asked[place] = msgspec.structs.replace(asked[place], **changes)
    return Record.of(asked)


def test_a_client_that_was_told_of_another_order_is_noticed(run: Run) -> None:
    told = {"outcome": "ACCEPTED", "order_id": 77, "refused": [], "repeated": False}
    assert any(
        "was told of order 77" in each
        for each in run.violations(record=changed(run.record, Kind.CHECKOUT, result=told))
    )


def test_an_order_that_no_client_knows_is_noticed(run: Run) -> None:
    lost = changed(run.record, Kind.CHECKOUT, kind=Kind.ABANDON)
    assert any("no client has submitted" in each for each in run.violations(record=lost))


def test_a_price_that_a_client_was_told_and_is_not_there_is_noticed(run: Run) -> None:
    asked = list(run.record)
    place = max(number for number, each in enumerate(asked) if each.kind is Kind.PRICE)
    other = {"outcome": "UPDATED", "version": "v0", "price": 1, "change": asked[place].result["change"]}
    asked[place] = msgspec.structs.replace(asked[place], result=other)
    assert any("was told 1" in each for each in run.violations(record=Record.of(asked)))


def test_what_has_no_reply_is_no_fault(run: Run) -> None:
    unknown = changed(run.record, Kind.CHECKOUT, ended=Ended.UNKNOWN, result=None)
    assert run.violations(record=unknown) == []
    assert run.violations(record=changed(run.record, Kind.PRICE, ended=Ended.UNKNOWN, result=None)) == []
