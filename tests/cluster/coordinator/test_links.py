"""Connections by number; a worker that is turned away again and again is told of once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from styx.cluster.coordinator.links import Links
from styx.cluster.wire import INGEST_FACT, REPLICA_FACT


def test_each_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    links = Links(5)
    for _ in range(3):
        connection = cast(Any, SimpleNamespace(peer=SimpleNamespace(name="a")))
        link = links.register(connection)
        assert links.turned_away(link.number, "it runs on another Python") is connection
    assert (len(caplog.records), links.workers) == (1, {})
    assert links.turned_away(5, "it runs on another Python") is None


def test_an_ingest_process_and_a_replica_are_no_gateways() -> None:
    links = Links(5)
    facts: dict[str, dict[str, str]] = {"b": {}, "i": {INGEST_FACT: ""}, "r": {REPLICA_FACT: ""}, "a": {"runtime": "x"}}
    for name, told in facts.items():
        links.gateways[links.number()] = cast(Any, SimpleNamespace(peer=SimpleNamespace(name=name, facts=told)))
    assert links.gateway_names == ["a", "b"]
