"""`styx events`: what it prints, from where, and how it fails."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from styx import App, Operator
from styx.cli.events import EXAMPLES
from styx.model.event_seen import checked_cursor
from styx.testing import EmbeddedCluster, embedded_cluster
from tests.cli.conftest import Styx
from tests.embedded.event_app import shop
from tests.gateway.running import running


@pytest.fixture(scope="module")
def shop_served() -> Iterator[tuple[BlockingPortal, EmbeddedCluster, str]]:
    """A gateway in a thread of its own, in front of an app whose transactions have emitted two events."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(embedded_cluster(shop())) as cluster:
        for key, amount in (("a", 5), ("b", 7)):
            portal.call(cluster.call, "order", key, "pay", amount)
        with portal.wrap_async_context_manager(running(cluster.engine)) as server:
            yield portal, cluster, server.url


@pytest.fixture
def shop_url(shop_served: tuple[BlockingPortal, EmbeddedCluster, str]) -> str:
    return shop_served[2]


def test_a_line_has_time_place_entity_and_value(styx: Styx, shop_url: str) -> None:
    ran = styx("events", "order-paid", "--url", shop_url)
    assert ran.status == 0
    first, second = ran.out.splitlines()
    assert first.endswith('  order[a]  {"amount":5,"by":"a"}')
    assert second.endswith('  order[b]  {"amount":7,"by":"b"}')
    assert first[:4].isdigit()


def test_json_lines_have_cursors_from_which_to_go_on(styx: Styx, shop_url: str) -> None:
    lines = [json.loads(line) for line in styx("events", "order-paid", "--json", "--url", shop_url).out.splitlines()]
    assert [line["value"]["amount"] for line in lines] == [5, 7]
    behind = styx("events", "order-paid", "--json", "--after", lines[0]["cursor"], "--url", shop_url).out
    assert [json.loads(line) for line in behind.splitlines()] == lines[1:]
    assert styx("events", "order-paid", "--after", lines[1]["cursor"], "--url", shop_url).out == ""


def test_after_the_end_there_is_nothing(styx: Styx, shop_url: str) -> None:
    assert styx("events", "order-paid", "--after", "end", "--url", shop_url).out == ""


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["nix"], "has no event 'nix'; it has: noted, order-paid"),
        (["order-paid", "--after", "5"], '--after takes the cursor of an event that was read, "end" for only those'),
        (["order-paid", "--after", ""], "--after takes the cursor"),
        (["order-paid", "--after", "END"], "--after takes the cursor"),
        (["order-paid", "--after", f"{0:029x}.010.00000001"], "which is the id of an event: its cursor is told beside"),
        (["x" * 101], "EVENT is a name of 1 to 100 letters, digits"),
        ([""], "EVENT is a name of 1 to 100 letters, digits"),
        (["order paid"], "such as order-paid: got 'order paid'"),
        (["order-paid", "order-paid"], "order-paid"),
        (["order-paid", "--url", "ftp://x"], "no gateway's URL"),
        (["order-paid", "--nix"], "--nix"),
        ([], "EVENT"),
        (["order-paid", "--api-key", "a b"], "API key"),
    ],
    ids=range(13),
)
def test_wrong_usage(styx: Styx, shop_url: str, words: list[str], error: str) -> None:
    url = [] if "--url" in words else ["--url", shop_url]
    ran = styx("events", *words, *url)
    assert (ran.status, ran.out) == (2, "")
    assert error in ran.err


def test_nobody_there(styx: Styx) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        ran = styx("events", "order-paid", "--url", f"http://127.0.0.1:{free.getsockname()[1]}")
    assert (ran.status, ran.out) == (1, "")
    assert "is the gateway running there" in ran.err


@pytest.mark.parametrize("operator", ["o", "events"])
def test_an_app_without_events_says_so(styx: Styx, operator: str) -> None:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(embedded_cluster(App("bare", [Operator(operator)]))) as cluster,
        portal.wrap_async_context_manager(running(cluster.engine)) as server,
    ):
        ran = styx("events", "order-paid", "--url", server.url)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == "styx: the app has no events: declare them with App(…, events=[…])\n"


def test_the_cursor_of_the_examples_is_one() -> None:
    [cursor] = [line.split()[-1] for line in EXAMPLES.splitlines() if "--after 0" in line]
    assert checked_cursor(cursor) == cursor


def test_help(styx: Styx) -> None:
    assert "--follow" in styx("events", "--help").out
    assert "events" in styx("--help").out
