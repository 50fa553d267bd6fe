"""Queries over moments in memory: results, places, the end of those whose asker leaves, and what others share."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from styx.query.process import QueryProcess
from styx.query.service import Asked, Limits, QueryFailed, QueryRefused
from styx.replica.arrow_rows import ArrowRows
from styx.replica.follower import Moment
from styx.replica.processes import QueryProcesses
from styx.replica.service import NothingToAsk, Places
from styx.replica.state import EpochState, SlotChange, after, whole
from styx.state.slot_state import Delta
from tests.query.conftest import Filled
from tests.query.shop import Line, Order, app, lines, order
from tests.replica.moments import LARGE, SMALL, asked, moment_of, service_over, until

ENDLESS = "select count(*) from range(100000000000) a, range(1000000) b where a.range % 7 = b.range % 5"


@pytest.fixture
def moment(filled: Filled) -> Moment:
    return moment_of(filled.directory, app)


def test_a_query_reads_what_all_share(moment: Moment) -> None:
    rows = ArrowRows(LARGE, 10_000)

    async def run() -> list[Any]:
        async with service_over(lambda: moment, rows=rows) as service:
            first = await asked(service, "select seller, count(*) n from cart.items group by all order by all")
            made = rows.rows_made
            second = await asked(
                service, "select i.product, s.value v from cart.items i, counter.state s where s.key = 7"
            )
            return [first, made, second, rows.rows_made]

    first, made, second, all_made = asyncio.run(run())
    assert sum(row["n"] for row in first) == made == len(second) == 51
    assert all_made == made + 4  # the counters; the items were there
    assert {row["v"] for row in second} == {"2"}


def test_parameters_and_descriptions(moment: Moment) -> None:
    async def run() -> None:
        async with service_over(lambda: moment) as service:
            found = await asked(service, "select product from cart.items where product = $1", SMALL, (5,))
            assert found == [{"product": 5}]
            async with service.run(Asked("select seller, product from cart.items", describe=True), SMALL) as answer:
                assert answer.schema.names == ["seller", "product"]
                assert [batch async for batch in answer.batches] == []
            catalog = "select table_name, table_type from information_schema.tables, (select 1 from cart.items limit 1)"
            async with service.run(Asked(catalog, catalog=True), SMALL) as answer:
                tables = [row for batch in [b async for b in answer.batches] for row in batch.to_pylist()]
            assert len(tables) == len(service.tables())
            assert {row["table_type"] for row in tables} == {"BASE TABLE"}

    asyncio.run(run())


@pytest.mark.parametrize(
    ("sql", "complaint", "cause"),
    [
        ("select * from cart.itms", "The tables are: account.item-sold", "query"),
        ("drop view cart.items", "only a SELECT may run, and this is DROP", "query"),
        ("select * from read_text('/proc/self/environ')", "file system operations are disabled", "query"),
        ("select * from range(100000)", "the result has more than 1000 rows: a larger number of rows, up to", "rows"),
        ("select list(i) from range(100000000) t(i)", "needs more than 200 MiB", "memory"),
        ("from \"styx incoming 0\"", "does not exist", "query"),
    ],
)  # fmt: skip
def test_queries_that_have_no_result(moment: Moment, sql: str, complaint: str, cause: str) -> None:
    async def run() -> None:
        async with service_over(lambda: moment) as service:
            with pytest.raises(QueryFailed) as failed:
                await asked(service, sql)
            assert complaint in str(failed.value)
            assert failed.value.cause == cause
            assert service.counts.failed == 1
            assert len(await asked(service, "select 1")) == 1

    asyncio.run(run())


def test_a_row_that_is_too_large_for_the_server(moment: Moment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.replica.shared_query.FRAME_BYTES_MAX", 2**20)

    async def run() -> None:
        async with service_over(lambda: moment) as service:
            with pytest.raises(QueryFailed, match="a few rows of the result are too large") as failed:
                await asked(service, "select repeat('x', 2000000)")
            assert failed.value.cause == "memory"
            found = await asked(service, "select repeat('x', 30000) x from range(1000)")  # they come in several parts
            assert len(found) == 1_000

    asyncio.run(run())


def test_who_leaves_ends_the_query(moment: Moment) -> None:
    async def run() -> None:
        async with service_over(lambda: moment, Places(1, 1)) as service:
            asking = asyncio.ensure_future(asked(service, ENDLESS, Limits(200, 600.0, 10)))
            await until(lambda: service.counts.running == 1)
            await asyncio.sleep(0.3)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert (service.counts.left, service.counts.running) == (1, 0)
            async with service.run(Asked("select * from range(100000)"), SMALL) as answer:
                assert (await anext(answer.batches)).num_rows == 1_000  # and no more: it leaves in the middle
            assert await asked(service, "select 1 x") == [{"x": 1}]

    asyncio.run(run())


def test_who_leaves_before_the_query_has_a_process_is_counted_as_well(moment: Moment) -> None:
    async def run() -> None:
        async with service_over(lambda: moment) as service:
            wanted, given, take = threading.Event(), threading.Event(), service.processes.take

            def slow() -> QueryProcess:
                wanted.set()
                given.wait()
                return take()

            service.processes.take = slow  # type: ignore[method-assign]
            asking = asyncio.create_task(asked(service, "select 1 x"))
            await until(wanted.is_set)
            asking.cancel()
            await asyncio.sleep(0)
            given.set()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert (service.counts.left, service.counts.running) == (1, 0)

    asyncio.run(run())


def test_more_than_fit_are_refused(moment: Moment) -> None:
    async def run() -> None:
        async with service_over(lambda: moment, Places(1, 1)) as service:
            running = asyncio.ensure_future(asked(service, ENDLESS, Limits(200, 600.0, 10)))
            await until(lambda: service.counts.running == 1)
            waiting = asyncio.ensure_future(asked(service, "select 1 x"))
            await until(lambda: service.counts.waiting == 1)
            with pytest.raises(QueryRefused, match="1 queries run and 1 are in line, which is the most"):
                await asked(service, "select 1")
            assert service.counts.refused == 1
            running.cancel()
            assert await waiting == [{"x": 1}]
            assert (service.counts.waiting, service.counts.running) == (0, 0)

    asyncio.run(run())


def test_one_in_line_that_leaves_takes_no_place(moment: Moment) -> None:
    async def run() -> None:
        async with service_over(lambda: moment, Places(1, 1)) as service:
            running = asyncio.ensure_future(asked(service, ENDLESS, Limits(200, 600.0, 10)))
            await until(lambda: service.counts.running == 1)
            waiting = asyncio.ensure_future(asked(service, "select 1 x"))
            await until(lambda: service.counts.waiting == 1)
            waiting.cancel()
            await until(lambda: service.counts.waiting == 0)
            running.cancel()
            assert await asked(service, "select 2 x") == [{"x": 2}]

    asyncio.run(run())


def test_without_a_state_it_says_so() -> None:
    def now() -> Moment:
        raise NothingToAsk("there is no snapshot yet")

    async def run() -> None:
        async with service_over(now) as service:
            with pytest.raises(NothingToAsk, match="no snapshot yet"):
                await asked(service, "select 1")
            with pytest.raises(NothingToAsk):
                service.tables()

    asyncio.run(run())


# One moment ----------------------------------------------------------------------------------------------------------


class Changing:
    """A replica of which each epoch has its number in both tables of `order`, in each row."""

    def __init__(self, moment: Moment) -> None:
        self.moment = moment
        self.state: EpochState
        self.take(0)

    def take(self, epoch: int) -> None:
        orders = {(at, "x"): order.encode_state(Order(Decimal(epoch), epoch)) for at in range(100)}
        rows = {(at, "x", 1): lines.row_type.encode(Line(1, "k", epoch)) for at in range(100)}
        delta: Delta = {"order": dict(orders), "order/lines": dict(rows)}
        slots = list(self.moment.state.slots)
        if epoch == 0:
            self.state = whole(epoch, 0, 0.0, {slot: delta if slot == 0 else {} for slot in slots}, LARGE)
        else:
            self.state = after(self.state, epoch, 0, 0.0, {0: SlotChange(delta)}, LARGE)

    def now(self) -> Moment:
        return self.moment._replace(state=self.state)


TORN = 'select min(o.lines) a, max(o.lines) b, min(l.amount) c, max(l.amount) d from "order".state o, "order".lines l'


def test_each_query_sees_one_epoch_while_others_come(moment: Moment) -> None:
    changing = Changing(moment)

    async def run() -> None:
        async with service_over(changing.now, Places(2, 50)) as service:
            ticking = asyncio.ensure_future(tick())
            epochs = await asyncio.gather(*(self_consistent(service) for _ in range(20)))
            ticking.cancel()
            assert epochs == sorted(epochs)
            assert len(set(epochs)) > 5

    async def tick() -> None:
        for epoch in range(1, 100_000):
            changing.take(epoch)
            await asyncio.sleep(0.01)

    async def self_consistent(service: Any) -> int:
        async with service.run(Asked(TORN), SMALL) as answer:
            [row] = [row for batch in [b async for b in answer.batches] for row in batch.to_pylist()]
        assert set(row.values()) == {answer.epoch}
        return int(answer.epoch)

    asyncio.run(run())


def test_a_query_keeps_its_epoch_when_another_comes(moment: Moment) -> None:
    changing = Changing(moment)

    async def run() -> None:
        async with service_over(changing.now) as service:
            changing.take(1)
            sql = 'select l.amount from "order".lines l, range(1000)'
            async with service.run(Asked(sql), Limits(200, 20.0, 1_000_000)) as answer:
                first = await anext(answer.batches)
                changing.take(2)
                assert await asked(service, 'select distinct amount from "order".lines') == [{"amount": 2}]
                rest = [batch async for batch in answer.batches]
            amounts = {value for batch in [first, *rest] for value in batch["amount"].to_pylist()}
            assert amounts == {1}

    asyncio.run(run())


# Memory and processes ------------------------------------------------------------------------------------------------


def test_rows_are_made_again_for_what_changed_alone(moment: Moment) -> None:
    rows = ArrowRows(LARGE, 10_000)
    changing = Changing(moment)
    relation = next(each for each in moment.relations if each.dataset.stored == "order/lines")
    first = rows.rows(changing.now().state, relation, 0)
    assert first is not None
    assert rows.rows(changing.now().state, relation, 0) is first
    changing.state = after(changing.state, 1, 0, 0.0, {0: SlotChange({"order": {(1, "y"): b"x"}})}, LARGE)
    assert rows.rows(changing.now().state, relation, 0) is first
    before = changing.now().state
    changing.take(2)
    second = rows.rows(changing.now().state, relation, 0)
    assert second is not None
    assert second is not first
    older = rows.rows(before, relation, 0)  # a query of the older epoch does not take the newer one's place
    assert older is not None
    assert rows.rows(changing.now().state, relation, 0) is second
    assert rows.rows(changing.now().state, relation, 1) is None


@pytest.mark.parametrize("bound", ["bytes", "files"])
def test_rows_take_no_more_than_they_may(moment: Moment, bound: str) -> None:
    one = ArrowRows(LARGE, 10_000)
    relation = next(each for each in moment.relations if each.dataset.stored == "cart/items")
    slots = [slot for slot in moment.state.slots if one.rows(moment.state, relation, slot) is not None]
    assert len(slots) > 2
    sizes = [rows.bytes for slot in slots if (rows := one.rows(moment.state, relation, slot))]
    bounded = ArrowRows(max(sizes) * 2, 10_000) if bound == "bytes" else ArrowRows(LARGE, 2)
    descriptors = len(os.listdir("/proc/self/fd"))
    for slot in slots:
        bounded.rows(moment.state, relation, slot)
        assert bounded.bytes <= max(sizes) * 2
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 2
    made = bounded.rows_made
    bounded.rows(moment.state, relation, slots[-1])
    assert bounded.rows_made == made
    bounded.rows(moment.state, relation, slots[0])
    assert bounded.rows_made > made


def test_nobody_can_change_what_is_shared(moment: Moment) -> None:
    relation = next(each for each in moment.relations if each.dataset.stored == "cart/items")
    rows = next(filter(None, (ArrowRows(LARGE, 9).rows(moment.state, relation, slot) for slot in moment.state.slots)))
    with pytest.raises(PermissionError):
        os.pwrite(rows.descriptor, b"x", 0)
    with pytest.raises(PermissionError):
        os.ftruncate(rows.descriptor, 0)


def test_processes_wait_and_are_used_once() -> None:
    processes = QueryProcesses(2)
    processes.fill()
    assert processes.idle == 2
    first = processes.take()
    assert processes.idle == 1
    processes.fill()
    assert processes.idle == 2
    dead = processes._idle[0]
    dead.kill()
    dead.status()
    second = processes.take()
    assert second is not dead
    third = processes.take()
    assert len({first.number, second.number, third.number, dead.number}) == 4
    for each in (first, second, third):
        assert not each.ended
        each.end()
    processes.fill()
    waiting = list(processes._idle)
    processes.close()
    assert [each.status() for each in waiting] == [-9, -9]
    processes.fill()
    assert processes.idle == 0


def test_a_process_ends_with_its_parent(tmp_path: Path) -> None:
    source = (
        "import time\nfrom styx.query.process import QueryProcess\n"
        "print(QueryProcess().number, flush=True)\ntime.sleep(600)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        number = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 60
    while Path(f"/proc/{number}/stat").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
