"""Reads outside the log by HTTP, behind a real engine: what the headers ask for, and the session's token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Never, cast

import pytest

import styx
from styx import App, Context, Operator, RequestRejected, SnapshotTooOld, TransactionAborted
from styx.client.embedded import EmbeddedClient
from styx.client.http import HttpClient
from styx.gateway.app import Gateway
from styx.gateway.engine import Engine
from styx.gateway.reads import answer_read
from styx.model.freshness import LATEST, SESSION, Freshness
from styx.model.limits import Limits
from styx.model.request import Placed
from tests.gateway.asgi import Answer, exchange
from tests.gateway.running import running

pytestmark = pytest.mark.anyio

account = Operator("account", key_type=str)


@account.register
async def deposit(ctx: Context, amount: int) -> int:
    balance: int = await ctx.get(0) + amount
    await ctx.put(balance)
    return balance


@account.register(read_only=True)
async def balance(ctx: Context, least: int = 0) -> int:
    found = int(await ctx.get(0))
    if found < least:
        raise ValueError("too little")
    return found


app = App("bank", operators=[account])


@pytest.fixture
async def client() -> AsyncIterator[EmbeddedClient]:
    async with styx.embedded(app, limits=Limits(versions_max=3)) as client:
        yield client


@pytest.fixture
def gateway(client: EmbeddedClient) -> Gateway:
    return Gateway(client.engine)


async def ask(gateway: Gateway, path: str, **headers: str) -> Answer:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return await exchange(gateway, "GET", path, [b""], sent)


async def post(gateway: Gateway, path: str, body: bytes, **headers: str) -> Answer:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return await exchange(gateway, "POST", path, [body], {"content-type": "application/json", **sent})


BALANCE = "/v1/account/ada/balance"


async def test_a_read_outside_the_log_says_its_epoch(client: EmbeddedClient, gateway: Gateway) -> None:
    await client.call(account, "ada", deposit, 7)
    for freshness in ("latest", "session", "strict"):
        answer = await ask(gateway, BALANCE, styx_freshness=freshness)
        assert answer.status == 200
        assert answer.json == {"result": 7, "read": {"epoch": 0}}
        assert answer.headers["styx-epoch"] == "0"
        assert answer.headers["cache-control"] == "no-store"
    assert client.epoch == 0  # no transaction has run


async def test_without_such_a_header_a_transaction_reads(client: EmbeddedClient, gateway: Gateway) -> None:
    answer = await ask(gateway, BALANCE)
    assert answer.json["transaction"]["id"] > 0
    assert answer.headers["styx-epoch"] == "0"
    assert client.epoch == 0


async def test_entities_and_arguments_are_read_as_well(client: EmbeddedClient, gateway: Gateway) -> None:
    await client.call(account, "ada", deposit, 7)
    assert (await ask(gateway, "/v1/account/ada", styx_freshness="latest")).json["result"] == 7
    none = await ask(gateway, "/v1/account/bob", styx_freshness="latest")
    assert (none.status, none.json["error"]["code"]) == (404, "unknown_entity")
    aborted = await ask(gateway, f"{BALANCE}?least=8", styx_freshness="latest")
    assert (aborted.status, aborted.json["error"]["type"], aborted.json["read"]) == (409, "ValueError", {"epoch": 0})
    posted = await post(gateway, BALANCE, b"[5]", styx_freshness="latest")
    assert posted.json == {"result": 7, "read": {"epoch": 0}}


async def test_a_token_alone_asks_for_the_session(client: EmbeddedClient, gateway: Gateway) -> None:
    await client.call(account, "ada", deposit, 1)
    assert (await ask(gateway, BALANCE, styx_epoch="0")).json == {"result": 1, "read": {"epoch": 0}}
    foreign = await ask(gateway, BALANCE, styx_epoch="1")
    assert (foreign.status, foreign.json["error"]["code"]) == (409, "unknown_epoch")
    assert "the session's token is epoch 1, and the newest epoch is 0" in foreign.json["error"]["message"]


async def test_what_has_not_closed_is_waited_for(client: EmbeddedClient, gateway: Gateway) -> None:
    await client.call(account, "ada", deposit, 1)
    waiting = asyncio.ensure_future(ask(gateway, BALANCE, styx_at="1"))
    await asyncio.sleep(0.02)
    assert not waiting.done()
    await client.call(account, "ada", deposit, 1)
    assert (await waiting).json == {"result": 2, "read": {"epoch": 1}}
    late = await ask(gateway, BALANCE, styx_at="99", styx_timeout="0.05")
    assert (late.status, late.json["error"]["code"]) == (504, "timeout")
    assert "nothing was changed. It waits for the end of epoch 99" in late.json["error"]["message"]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (Freshness(SESSION, 7), "It waits for the end of epoch 7, the session's token: if that is of another"),
        (Freshness(SESSION, -1), "nothing was changed"),
        (Freshness(LATEST), "nothing was changed"),
    ],
)
async def test_a_read_that_is_late_says_what_it_waits_for(wanted: Freshness, told: str) -> None:
    class Silent:
        async def read(self, request: object, wanted: Freshness) -> Never:
            await asyncio.sleep(60)
            raise AssertionError("it is cancelled before")

    answer = await answer_read(cast(Engine, Silent()), cast(Placed, None), wanted, 0.01)
    assert answer.status == 504
    assert told in answer.body.decode()
    assert ("epoch" in answer.body.decode()) == (wanted.token >= 0)


async def test_before_the_first_epoch_there_is_no_token(gateway: Gateway) -> None:
    """Clients send back what they get, and -1 is not a token."""
    answer = await ask(gateway, BALANCE, styx_freshness="latest")
    assert answer.json == {"result": 0, "read": {"epoch": -1}}
    assert "styx-epoch" not in answer.headers


async def test_a_token_does_not_make_a_read_of_a_call(client: EmbeddedClient, gateway: Gateway) -> None:
    """A browser may send it with every request."""
    answer = await post(gateway, "/v1/account/ada/deposit", b"[5]", styx_epoch="99")
    assert (answer.status, answer.headers["styx-epoch"]) == (200, "0")


async def test_an_earlier_epoch(client: EmbeddedClient, gateway: Gateway) -> None:
    await client.read(account, "ada", balance)
    for _ in range(5):
        await client.call(account, "ada", deposit, 1)
    assert (await ask(gateway, BALANCE, styx_at="2")).json == {"result": 3, "read": {"epoch": 2}}
    gone = await ask(gateway, BALANCE, styx_at="0")
    assert (gone.status, gone.json["error"]["code"]) == (410, "snapshot_too_old")


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"styx_freshness": "newest"}, "freshness is one of"),
        ({"styx_freshness": "latest", "styx_at": "1"}, "give `at` alone"),
        ({"styx_at": "x"}, "Styx-At must be an epoch"),
        ({"styx_epoch": "-1"}, "Styx-Epoch must be an epoch"),
        ({"styx_epoch": "9" * 30}, "Styx-Epoch must be an epoch"),
        ({"styx_max_staleness": "soon"}, "Styx-Max-Staleness must be seconds"),
    ],
)
async def test_headers_that_cannot_be_read(gateway: Gateway, headers: dict[str, str], words: str) -> None:
    answer = await ask(gateway, BALANCE, **headers)
    assert (answer.status, answer.json["error"]["code"]) == (400, "bad_request")
    assert words in answer.json["error"]["message"]


async def test_what_may_write_is_refused(client: EmbeddedClient, gateway: Gateway) -> None:
    deposited = "/v1/account/ada/deposit"
    posted = await post(gateway, deposited, b"[5]", styx_freshness="latest")
    assert (posted.status, posted.json["error"]["code"]) == (422, "not_read_only")
    assert (await ask(gateway, deposited, styx_freshness="latest")).status == 405
    assert client.entity(account, "ada") is None


async def test_a_state_that_is_too_old_is_refused(
    client: EmbeddedClient, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = client.engine.reads
    await client.call(account, "ada", deposit, 7)

    def stale(seconds: float) -> int:
        raise RequestRejected("too_stale", "the newest state is too old")

    assert (await ask(gateway, BALANCE, styx_max_staleness="0.5")).status == 200
    monkeypatch.setattr(reads, "_young", stale)
    answer = await ask(gateway, BALANCE, styx_max_staleness="0.5")
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")


async def test_sessions_go_on_over_clients(client: EmbeddedClient, gateway: Gateway) -> None:
    async with running(client.engine) as served, HttpClient(served.url) as one, HttpClient(served.url) as other:
        assert one.epoch == -1
        assert await one.call(account, "ada", deposit, 5) == 5
        assert one.epoch == 0
        assert await one.read(account, "ada", balance, freshness="session") == 5
        await one.call(account, "ada", deposit, 5)
        other.saw(one.epoch)
        assert await other.read(account, "ada", balance, freshness="session") == 10
        assert other.epoch == one.epoch == 1
        assert await other.read(account, "ada", balance, 10, freshness="strict") == 10
        reply = await one.read_request(account, "ada", balance, at=1, timeout=5)
        assert (reply.result, reply.epoch, reply.phase, reply.tid) == (10, 1, 4, 0)
        assert (await one.read(account, "ada", max_staleness_s=60)).result == 10
        with pytest.raises(TransactionAborted, match="too little"):
            await one.read(account, "ada", balance, 11)
        for _ in range(4):
            await one.call(account, "ada", deposit, 0)
        with pytest.raises(SnapshotTooOld):
            await one.read(account, "ada", balance, at=0)
        with pytest.raises(RequestRejected, match="not_read_only"):
            await one.read(account, "ada", deposit, 1)
        with pytest.raises(TimeoutError):
            await one.read(account, "ada", balance, at=77, timeout=0.05)
        assert client.entity(account, "ada") == 10
