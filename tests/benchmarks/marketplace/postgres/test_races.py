"""Many checkouts and prices at once on PostgreSQL: none is lost, none is sold twice, and no statement reads a whole
table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest

from benchmarks.marketplace.postgres.checking_out import FORMS
from benchmarks.marketplace.postgres.consistency import checked
from benchmarks.marketplace.record import Record
from benchmarks.reference.postgres_accounting import counted
from benchmarks.reference.postgres_server import PostgresServer
from styx.testing.patience import PATIENCE_SECONDS
from tests.benchmarks.marketplace.postgres.line import Line, line, new_server
from tests.benchmarks.marketplace.shop import CUSTOMERS, PRODUCTS, item, request

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

ROUNDS = 12
PIECES = 100
PAIRS = [((1, 1), (2, 2)), ((2, 2), (1, 2)), ((1, 2), (2, 1)), ((2, 1), (1, 1))]
LOCK = "SELECT 1 FROM stock_items WHERE seller_id = $1 AND product_id = $2 FOR UPDATE NOWAIT"
WAITERS = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    yield from new_server()


async def buy_again_and_again(theirs: Line, customer_id: int) -> int:
    """How many pieces of each product the customer has got."""
    bought = 0
    for number in range(ROUNDS):
        for key in PAIRS[(customer_id + number) % len(PAIRS)]:
            await theirs.request("cart", customer_id, "add_item", item(*key))
        reply = await theirs.request("cart", customer_id, "checkout", request(customer_id))
        assert reply.error is None
        bought += 2 - len(reply.result["refused"])
    return bought


async def set_prices(theirs: Line, key: tuple[int, int]) -> None:
    for price in range(1, ROUNDS + 1):
        reply = await theirs.request("product", key, "set_price", 10_00 + price, "v0")
        assert reply.result["change"] == price


@pytest.mark.parametrize("form", FORMS)
async def test_nothing_is_lost_and_nothing_is_sold_twice(
    form: str, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with line(server, monkeypatch, form, connections=8, pieces=PIECES) as theirs:
        bought = sum(await asyncio.gather(*(buy_again_and_again(theirs, each) for each in CUSTOMERS)))
        left = sum(row["qty_available"] for row in await theirs.rows("stock_items"))
        assert left == len(PRODUCTS) * PIECES - bought
        assert [row["last_order_id"] for row in await theirs.rows("counts")] == [ROUNDS] * len(CUSTOMERS)
    assert (await counted(server)).rolled_back > 0, "nobody was in another one's way"


@pytest.mark.parametrize("form", FORMS)
async def test_stocks_are_taken_in_the_order_of_their_keys_so_nobody_deadlocks(
    form: str, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for the first one has not taken the second one yet, whoever it is."""
    async with line(server, monkeypatch, form) as theirs:
        for customer_id in CUSTOMERS:
            for key in ((2, 2), (1, 1)):
                await theirs.request("cart", customer_id, "add_item", item(*key))
            blocker = theirs.connection.transaction()
            await blocker.start()
            await theirs.connection.execute(LOCK, 1, 1)
            buying = asyncio.ensure_future(theirs.request("cart", customer_id, "checkout", request(customer_id)))
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not await theirs.connection.fetchval(WAITERS):  # noqa: ASYNC110 - the server has no event for it
                    await asyncio.sleep(0.01)
            await theirs.connection.execute(LOCK, 2, 2)
            await blocker.rollback()
            assert (await buying).result["order_id"] == 1


@pytest.mark.parametrize("form", FORMS)
async def test_the_last_pieces_are_sold_once(
    form: str, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with line(server, monkeypatch, form, connections=8, pieces=ROUNDS) as theirs:
        bought = sum(await asyncio.gather(*(buy_again_and_again(theirs, each) for each in CUSTOMERS)))
        assert bought == len(PRODUCTS) * ROUNDS, "more was asked for than there was"
        assert {row["qty_available"] for row in await theirs.rows("stock_items")} == {0}


@pytest.mark.parametrize("form", FORMS)
async def test_one_submission_sent_many_times_at_once_is_one_order(
    form: str, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with line(server, monkeypatch, form, connections=8) as theirs:
        await theirs.request("cart", 1, "add_item", item())
        replies = await asyncio.gather(
            *(theirs.request("cart", 1, "checkout", request(1, checkout_id="one")) for _ in range(8))
        )
        assert {(reply.result["outcome"], reply.result["order_id"]) for reply in replies} == {("ACCEPTED", 1)}
        assert sorted(reply.result["repeated"] for reply in replies) == [False, *[True] * 7]
        assert len(await theirs.rows("orders")) == 1


@pytest.mark.parametrize("form", FORMS)
async def test_prices_are_set_while_it_is_bought(
    form: str, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with line(server, monkeypatch, form, connections=8, pieces=PIECES) as theirs:
        await asyncio.gather(
            *(buy_again_and_again(theirs, each) for each in CUSTOMERS), *(set_prices(theirs, key) for key in PRODUCTS)
        )
        for table in ("products", "replicas"):
            rows = await theirs.rows(table)
            assert {(row["price"], row["change"]) for row in rows} == {(10_00 + ROUNDS, ROUNDS)}, table
        audit = await checked(server.connection(), Record())
        assert [
            each for each in audit.violations if "no client has submitted" not in each and "changes" not in each
        ] == []


@pytest.mark.parametrize("form", FORMS)
async def test_no_statement_reads_a_whole_table(
    form: str, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with line(server, monkeypatch, form, connections=1) as theirs:
        await theirs.connection.execute("SELECT pg_stat_reset()")
        await theirs.request("cart", 1, "add_item", item())
        await theirs.request("cart", 1, "seal")
        await buy_again_and_again(theirs, 1)
        await set_prices(theirs, (1, 1))
        await theirs.request("product", (1, 1), "set_price", 10_00, "another")
    await counted(server)
    connection = await asyncpg.connect(**server.connection())
    found = await connection.fetch("SELECT relname, seq_scan, idx_scan FROM pg_stat_user_tables")
    await connection.close()
    assert {row["relname"]: row["seq_scan"] for row in found if row["seq_scan"]} == {}
    assert sum(row["idx_scan"] or 0 for row in found) > ROUNDS
