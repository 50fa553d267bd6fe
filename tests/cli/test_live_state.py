"""`styx state list`, `export` and `edit` against a gateway before a real engine."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

import styx as product
from styx import App, Context, Operator
from styx.client.embedded import EmbeddedClient
from styx.model.limits import Limits
from tests.cli.conftest import Styx
from tests.gateway.running import running


class Account(msgspec.Struct):
    balance: int
    limit: Decimal = Decimal("0.5")


class Line(msgspec.Struct):
    number: int
    text: str = "a"


account = Operator("account", key_type=str, state_type=Account)
order = Operator("order", key_type=(int, str))
lines = order.table("lines", Line, key="number")


@account.register
async def put(ctx: Context, balance: int) -> None:
    await ctx.put(Account(balance))


app = App("look", [account, order])


class Live:
    """A gateway before an engine, in a thread of its own."""

    def __init__(self, portal: BlockingPortal, client: EmbeddedClient, url: str) -> None:
        self._portal = portal
        self.client = client
        self.url = ("--url", url)

    def call(self, *words: Any) -> Any:
        return self._portal.call(lambda: self.client.call(*words))

    def load(self, operator: Any, pairs: list[Any]) -> None:
        self._portal.call(lambda: self.client.load(operator, pairs))

    def load_rows(self, table: Any, pairs: list[Any]) -> None:
        self._portal.call(lambda: self.client.load_rows(table, pairs))


@pytest.fixture
def live() -> Iterator[Live]:
    with start_blocking_portal() as portal:
        client = product.embedded(app, limits=Limits(versions_max=3))
        with (
            portal.wrap_async_context_manager(client),
            portal.wrap_async_context_manager(running(client.engine)) as server,
        ):
            live = Live(portal, client, server.url)
            live.load(account, [(name, Account(number)) for number, name in enumerate(("ada", "bob", "ä b"))])
            live.load(order, [((1, "x"), {"total": 5})])
            live.load_rows(lines, [((1, "x"), Line(number)) for number in range(3)])
            yield live


def test_a_listing_is_printed_as_that_of_a_snapshot(styx: Styx, live: Live) -> None:
    ran = styx("state", "list", "account", "--limit", "2", *live.url)
    assert (ran.status, ran.out.splitlines()) == (
        0,
        ['{"key":"ada","value":{"balance":0,"limit":"0.5"}}', '{"key":"bob","value":{"balance":1,"limit":"0.5"}}'],
    )
    first, more = ran.err.splitlines()
    assert first.startswith("styx: the end of epoch ")
    epoch = first.split()[5]
    assert more == f"styx: there are more: --after bob --at {epoch}"
    live.call(account, "ä b", put, 9)
    rest = styx("state", "list", "account", "--after", "bob", "--at", epoch, *live.url)
    assert rest.out == '{"key":"ä b","value":{"balance":2,"limit":"0.5"}}\n'
    newest = styx("state", "list", "account", "--prefix", "ä", "--freshness", "strict", *live.url)
    assert '"balance":9' in newest.out
    rows = styx("state", "list", "order/lines", "--prefix", "[1]", "--after", '[1,"x",1]', *live.url)
    assert rows.out == '{"key":[1,"x",2],"value":{"number":2,"text":"a"}}\n'


def test_an_epoch_that_is_not_kept_any_more_says_what_to_do(styx: Styx, live: Live) -> None:
    epoch = styx("state", "list", "account", *live.url).err.split()[5]
    for number in range(5):
        live.call(account, "ada", put, number)
    ran = styx("state", "list", "account", "--at", epoch, *live.url)
    assert (ran.status, ran.out) == (1, "")
    assert "snapshot_too_old" in ran.err
    assert "List on without --at" in ran.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("nobody",), "has no operator 'nobody'"),
        (("account", "--limit", "0"), "--limit is a number from 1"),
        (("order", "--prefix", "x"), "is a JSON array"),
        (("order/nix",), "has no table 'nix'"),
        (("account", "--at", "1", "--freshness", "strict"), "give one of them"),
    ],
)
def test_a_wrong_listing(styx: Styx, live: Live, words: tuple[str, ...], complaint: str) -> None:
    ran = styx("state", "list", *words, *live.url)
    assert (ran.status, ran.out) == (2, "")
    assert complaint in ran.err


def test_a_snapshot_has_its_epoch(styx: Styx, tmp_path: Path) -> None:
    ran = styx("state", "list", "account", "--at", "3", "--data-dir", str(tmp_path))
    assert (ran.status, "a snapshot has its epoch" in ran.err) == (2, True)


def test_no_gateway(styx: Styx) -> None:
    ran = styx("state", "list", "account", "--url", "http://127.0.0.1:1")
    assert (ran.status, "no gateway answers" in ran.err) == (1, True)
