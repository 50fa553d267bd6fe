"""`styx events`: what it prints, from where, and how it fails."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

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
        (["order-paid", "--after", "5"], "after= takes the cursor"),
        (["order-paid", "--after", ""], "after= takes the cursor"),
        (["x" * 101], "a styx.Event or its name"),
        ([""], "a styx.Event or its name"),
        (["order-paid", "--url", "ftp://x"], "no gateway's URL"),
        (["order-paid", "--nix"], "--nix"),
        ([], "EVENT"),
        (["order-paid", "--api-key", "a b"], "API key"),
    ],
    ids=range(9),
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


def test_help(styx: Styx) -> None:
    assert "--follow" in styx("events", "--help").out
    assert "events" in styx("--help").out
