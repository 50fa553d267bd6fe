"""`styx changes`: what it prints, from where, and how it fails."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from styx.client import http_changes
from styx.testing import EmbeddedCluster, embedded_cluster
from styx.testing.patience import PATIENCE_SECONDS
from tests.cli.conftest import Styx
from tests.gateway.running import running
from tests.gateway.test_changes import app

Served = tuple[BlockingPortal, EmbeddedCluster, str]


@pytest.fixture
def served() -> Iterator[Served]:
    """A gateway in a thread of its own."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(embedded_cluster(app)) as cluster,
        portal.wrap_async_context_manager(running(cluster.engine)) as server,
    ):
        yield portal, cluster, server.url


def printed(styx: Styx, served: Served, *words: str) -> tuple[int, list[dict[str, object]], str]:
    """What the command prints while carts are filled, until the engine ends: (status, lines, its error)."""
    portal, cluster, url = served

    def until(metric: str) -> None:
        late_s = time.monotonic() + PATIENCE_SECONDS
        while metric not in urlopen(f"{url}/metrics").read().decode():
            assert time.monotonic() < late_s, metric

    def fill() -> None:
        try:
            until("styx_gateway_change_readers 1")
            for sku in ("tea", "jam"):
                portal.call(cluster.call, "cart", "ada", "add", sku, 2)
            until("styx_gateway_changed_epochs_sent_total 2")
        finally:
            portal.call(cluster.engine.crash)

    filling = threading.Thread(target=fill)
    filling.start()
    ran = styx("changes", *words, "--url", url)
    filling.join()
    return ran.status, [json.loads(line) for line in ran.out.splitlines()], ran.err


def test_a_line_has_an_epoch_and_its_changes(styx: Styx, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_changes, "ATTEMPTS_MAX", 1)
    status, lines, error = printed(styx, served, "cart/items")
    assert status == 1
    assert "cannot be read" in error
    assert [line["changes"] for line in lines] == [
        [{"table": "items", "key": "ada", "row_key": sku, "value": {"sku": sku, "quantity": 2}}]
        for sku in ("tea", "jam")
    ]
    assert [*lines[0]] == ["epoch", "changes"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["nix"], "unknown_operator"),
        (["cart/nix"], "has no table 'nix'"),
        (["cart", "--from", "-1"], "takes the first epoch whose changes are wanted"),
        (["cart", "--url", "ftp://x"], "no gateway's URL"),
        ([], "OPERATOR"),
    ],
    ids=range(5),
)
def test_wrong_usage(styx: Styx, served: Served, words: list[str], error: str) -> None:
    url = [] if "--url" in words else ["--url", served[2]]
    ran = styx("changes", *words, *url)
    assert (ran.status, ran.out) == (2, "")
    assert error in ran.err


def test_changes_that_are_gone(styx: Styx, served: Served) -> None:
    portal, cluster, url = served
    portal.call(cluster.call, "cart", "ada", "add", "tea", 2)
    ran = styx("changes", "cart", "--from", "0", "--url", url)
    assert (ran.status, ran.out) == (1, "")
    assert "kept from epoch" in ran.err


def test_nobody_there(styx: Styx) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        ran = styx("changes", "cart", "--url", f"http://127.0.0.1:{free.getsockname()[1]}")
    assert (ran.status, ran.out) == (1, "")
    assert "cannot be read" in ran.err


def test_help(styx: Styx) -> None:
    assert "--from" in styx("changes", "--help").out
    assert "changes" in styx("--help").out
