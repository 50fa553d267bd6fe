"""The public client's promises, through an engine in memory."""

from __future__ import annotations

import asyncio

import pytest

import styx
from styx.errors import ConfigurationError
from styx.messages import Request
from styx.model.limits import Limits
from styx.testing.fixture import embedded_cluster
from tests.embedded.ledger_app import app, ledger, move, pair
from tests.placed import placed

pytestmark = pytest.mark.anyio


async def test_call_request_and_submit() -> None:
    async with embedded_cluster(app) as client:
        assert await client.call("ledger", "a", "add", 5) == 5
        assert await client.call(ledger, "a", move, "b", amount := 2) == 3
        reply = await client.request("ledger", "a", "move", "b", 100)
        assert reply.error is not None
        assert (reply.result, reply.error.code, reply.error.type) == (None, "aborted", "Refused")
        assert reply.error.message == "a has 3, not 100"
        replies = await asyncio.gather(*[client.submit("ledger", "c", "add") for _ in range(50)])
        assert sorted(reply.result for reply in replies) == list(range(1, 51))
        assert client.state() == {("ledger", "a"): 3, ("ledger", "b"): amount, ("ledger", "c"): 50}
    assert client.report is not None
    assert client.report.committed == 52


async def test_call_raises_what_ended_the_transaction() -> None:
    async with styx.embedded(app) as client:
        with pytest.raises(styx.TransactionAborted, match="a has 0, not 1") as aborted:
            await client.call("ledger", "a", "move", "b", 1)
        assert (aborted.value.type, aborted.value.message) == ("Refused", "a has 0, not 1")
        with pytest.raises(styx.RequestRejected, match="ad") as rejected:
            await client.call("ledger", "a", "ad", 1)
        assert rejected.value.code == "unknown_function"


async def test_places_are_unique_and_ordered_in_time() -> None:
    async with styx.embedded(app) as client:
        replies = [await client.request("ledger", "a", "add") for _ in range(5)]
        places = [(reply.epoch, reply.phase, reply.tid) for reply in replies]
        assert places == sorted(set(places))
        assert len({reply.request_id for reply in replies}) == 5


async def test_tuple_keys() -> None:
    async with embedded_cluster(app) as client:
        assert await client.call(pair, (1, "x"), "count") == 1
        assert await client.call("pair", (1, "x"), "count") == 2
        assert client.entity("pair", (1, "x")) == 2


async def test_idempotency_key_gives_the_first_reply_again() -> None:
    async with embedded_cluster(app) as client:
        first = await client.request("ledger", "a", "add", idempotency_key="k")
        both = await asyncio.gather(*[client.request("ledger", "a", "add", idempotency_key="k2") for _ in range(2)])
        again = await client.request("ledger", "a", "add", idempotency_key="k")
        assert (again.result, again.tid, again.epoch) == (first.result, first.tid, first.epoch)
        assert both[0][:5] == both[1][:5]
        assert client.entity("ledger", "a") == 2


async def test_a_timeout_ends_the_waiting_only() -> None:
    async with embedded_cluster(app) as client:
        waiting = client.submit("ledger", "a", "add", timeout=1e-6)
        # Looked at before the engine's pass: nothing has run yet.
        client.engine._intake.taken._sweep()
        with pytest.raises(TimeoutError, match="may still commit"):
            await waiting
        assert await client.call("ledger", "a", "add") == 2


async def test_cancelling_does_not_cancel_the_transaction() -> None:
    async with embedded_cluster(app) as client:
        task = asyncio.ensure_future(client.request("ledger", "a", "add"))
        await asyncio.sleep(0)
        task.cancel()
        assert await client.call("ledger", "a", "add") == 2


@pytest.mark.parametrize("bad", [0, -1, 601, "1", True])
async def test_a_bad_timeout_raises_at_once(bad: float) -> None:
    async with styx.embedded(app) as client:
        with pytest.raises(ValueError, match="timeout is a number of seconds"):
            client.submit("ledger", "a", "add", timeout=bad)


async def test_use_outside_of_the_block() -> None:
    client = styx.embedded(app)
    with pytest.raises(ConfigurationError, match="async with"):
        client.submit("ledger", "a", "add")
    async with client:
        pass
    with pytest.raises(styx.RequestRejected, match="the engine is closed") as rejected:
        await client.call("ledger", "a", "add")
    assert rejected.value.code == "unavailable"
    await client.close()


async def test_clients_are_held_back_in_order_and_the_gateway_is_refused() -> None:
    async with embedded_cluster(app, limits=Limits(in_flight_max=3)) as client:
        engine = client.engine
        waiting = [client.submit("ledger", "a", "add") for _ in range(20)]
        assert (engine.in_flight, engine.held) == (3, 17)
        with pytest.raises(styx.RequestRejected) as rejected:
            engine.submit_request(placed(engine, Request("x", "ledger", "a", "add", b"\x90")))
        assert rejected.value.code == "overloaded"
        assert [(await reply).result for reply in waiting] == list(range(1, 21))
        assert (engine.in_flight, engine.held) == (0, 0)


async def test_the_gateways_way_in() -> None:
    async with embedded_cluster(app) as client:
        engine = client.engine
        assert (engine.ready, engine.unavailable_reason) == (True, None)
        record = await engine.submit_request(placed(engine, Request("mine-1", "ledger", "a", "add", b"\x91\x05")))
        assert (record.request_id, record.result, record.error) == ("mine-1", b"\x05", None)
        waiting = engine.submit_request(placed(engine, Request("mine-2", "ledger", "a", "add", b"\x90")))
        with pytest.raises(styx.RequestRejected, match="under way already"):
            engine.submit_request(placed(engine, Request("mine-2", "ledger", "a", "add", b"\x90")))
        await waiting


async def test_close_finishes_what_is_in_flight() -> None:
    async with styx.embedded(app) as client:
        waiting = [client.submit("ledger", "a", "add") for _ in range(2_000)]
    assert [(await reply).result for reply in waiting] == list(range(1, 2_001))
    assert not client.engine.ready


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"n_slots": 0}, "n_slots must be a number"),
        ({"n_slots": True}, "n_slots must be a number"),
        ({"snapshot_interval": 0}, "snapshot_interval is a number of seconds"),
        ({"data_dir": ""}, "data_dir is empty"),
    ],
)
def test_bad_options(options: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        styx.embedded(app, **options)  # type: ignore[arg-type]
