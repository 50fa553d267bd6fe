"""`styx dead` against a real engine behind a gateway, and against what is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from styx import App, Context, Operator, Retry
from styx.testing import embedded_cluster
from styx.testing.fixture import EmbeddedCluster
from tests.cli.conftest import Styx
from tests.gateway.running import running

order = Operator("order")
mail = Operator("mail")


@order.register
async def give(ctx: Context, text: str) -> None:
    ctx.after_commit(mail, send, "m", (text,), retry=Retry(attempts=1))


@mail.register
async def send(ctx: Context, text: str) -> None:
    if await ctx.get() is None:
        raise ValueError("no postman")
    await ctx.put([*await ctx.get([]), text])


@mail.register
async def come(ctx: Context) -> None:
    await ctx.put([])


@mail.register
async def go(ctx: Context) -> None:
    await ctx.delete()


class Served:
    """An engine in a thread of its own, and where its gateway is."""

    def __init__(self, portal: BlockingPortal, cluster: EmbeddedCluster, url: str) -> None:
        self._portal = portal
        self._cluster = cluster
        self.url = url

    def call(self, *call: Any) -> Any:
        result = self._portal.call(lambda: self._cluster.call(*call))
        self._portal.call(self._cluster.advance, timedelta(0))
        return result

    def sent(self) -> Any:
        return self._portal.call(lambda: self._cluster.entity("mail", "m"))


@pytest.fixture(scope="module")
def serving() -> Iterator[Served]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(embedded_cluster(App("post", [order, mail]))) as cluster,
        portal.wrap_async_context_manager(running(cluster.engine)) as server,
    ):
        yield Served(portal, cluster, server.url)


@pytest.fixture
def shop(serving: Served, styx: Styx) -> Served:
    """As good as new."""
    styx("dead", "drop", "order", "--all", "--url", serving.url)
    serving.call("mail", "m", "go")
    return serving


def test_a_list_for_people_and_one_for_programs(styx: Styx, shop: Served) -> None:
    assert styx("dead", "list", "order", "--url", shop.url) == (0, "", "0 dead calls of order\n")
    for key in ("a", "b"):
        shop.call("order", key, "give", f"from {key}")
    ran = styx("dead", "list", "order", "--url", shop.url)
    assert (ran.status, ran.err) == (0, "2 dead calls of order\n")
    assert all('gave mail.send on "m", 1 attempts: ValueError: no postman' in line for line in ran.out.splitlines())
    ran = styx("dead", "list", "order", "--json", "--url", shop.url)
    assert sorted(json.loads(line)["arguments"][0] for line in ran.out.splitlines()) == ["from a", "from b"]
    ran = styx("dead", "list", "--url", shop.url)
    assert (len(ran.out.splitlines()), ran.err) == (2, "2 dead calls of order\n")
    ran = styx("dead", "list", "--json", "--url", shop.url)
    assert [json.loads(line)["operator_of_giver"] for line in ran.out.splitlines()] == ["order", "order"]
    ran = styx("dead", "list", "order", "--key", "b", "--json", "--url", shop.url)
    assert [json.loads(line)["giver"] for line in ran.out.splitlines()] == ["b"]


def test_one_is_tried_again_and_another_dropped(styx: Styx, shop: Served) -> None:
    for key in ("a", "b"):
        shop.call("order", key, "give", f"from {key}")
    ran = styx("dead", "list", "order", "--json", "--url", shop.url)
    ids = {call["giver"]: call["id"] for call in map(json.loads, ran.out.splitlines())}
    shop.call("mail", "m", "come")
    assert styx("dead", "replay", "order", ids["a"], "--url", shop.url) == (0, "", "")
    assert styx("dead", "drop", "order", ids["b"], "--url", shop.url) == (0, "", "")
    shop.call("order", "c", "give", "from c")
    assert shop.sent() == ["from a", "from c"]
    for act in ("replay", "drop"):
        ran = styx("dead", act, "order", ids["a"], "--url", shop.url)
        assert ran == (3, "", "absent: order has no such dead call any more\n")


def test_all_are_tried_again_once_though_they_fail_again(styx: Styx, shop: Served) -> None:
    for key in ("a", "b", "c"):
        shop.call("order", key, "give", f"from {key}")
    ran = styx("dead", "replay", "order", "--all", "--url", shop.url)
    assert ran == (0, "3 of 3 dead calls of order: tried again\n", "")
    shop.call("mail", "x", "go")
    assert styx("dead", "list", "order", "--url", shop.url).err == "3 dead calls of order\n"
    ran = styx("dead", "drop", "order", "--all", "--url", shop.url)
    assert ran == (0, "3 of 3 dead calls of order: dropped\n", "")


def test_wrong_uses(styx: Styx, shop: Served) -> None:
    for words, status, complaint in (
        (["list", "ordre"], 2, "it has: mail, order"),
        (["list", "--key", "a"], 2, "name the operator as well"),
        (["replay", "--all"], 2, "requires an argument"),
        (["list", "order", "--timeout", "0"], 2, "--timeout"),
        (["list", ""], 2, "dead calls are listed with GET"),
        (["replay", "order"], 2, "takes the id of one call, or --all"),
        (["drop", "order", "kqFhoWI", "--all"], 2, "takes the id of one call, or --all"),
        (["replay", "order", "xyz"], 2, "is no id of a dead call"),
        (["drop", "ordre", "kqFhoWI"], 2, "it has: mail, order"),
        (["bury", "order"], 2, "bury"),
    ):
        ran = styx("dead", *words, "--url", shop.url)
        assert (ran.status, ran.out) == (status, ""), words
        assert complaint in ran.err, words
    assert styx("dead", "list", "order", "--url", "http://127.0.0.1:1").status == 1
    assert styx("dead", "list", "order", "--url", "nowhere").status == 2
