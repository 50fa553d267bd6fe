"""The poison set: whatever is wrong with a request costs only itself, and the next one is served."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from styx.client.embedded import EmbeddedClient
from styx.log.base import Record, Stream
from styx.model.limits import Limits
from styx.testing.fixture import embedded_cluster
from styx.testing.patience import PATIENCE_SECONDS
from tests.embedded.ledger_app import app

pytestmark = pytest.mark.anyio

LIMITS = Limits(value_bytes_max=10_000, request_bytes_max=20_000, invocations_max=500, operations_max=5_000)


@pytest.fixture
async def client() -> AsyncIterator[EmbeddedClient]:
    async with embedded_cluster(app, limits=LIMITS) as cluster:
        yield cluster
        assert await cluster.call("ledger", "next", "add") == 1


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


POISON: list[tuple[Any, Any, Any, tuple[Any, ...], str, str]] = [
    ("legder", "a", "add", (), "unknown_operator", "legder"),
    ("ledger", "a", "ad", (), "unknown_function", "it has: add"),
    (None, "a", "add", (), "bad_arguments", "operator"),
    ("ledger", "a", None, (), "bad_arguments", "function"),
    ("ledger", None, "add", (), "bad_arguments", "key"),
    ("ledger", 7, "add", (), "bad_arguments", "keys of type str"),
    ("ledger", "a\ud800", "add", (), "bad_arguments", "encoded"),
    ("ledger", "k" * 5_000, "add", (), "bad_arguments", "5000 bytes"),
    ("pair", (1, 2), "count", (), "bad_arguments", r"\(int, str\)"),
    ("pair", (1,), "count", (), "bad_arguments", r"\(int, str\)"),
    ("pair", (2**70, "x"), "count", (), "bad_arguments", "encoded"),
    ("pair", (1, None), "count", (), "bad_arguments", "key"),
    ("ledger", "a", "add", (1, 2, 3), "bad_arguments", "ledger.add"),
    ("ledger", "a", "move", (), "bad_arguments", "to"),
    ("ledger", "a", "add", ("five",), "bad_arguments", "amount"),
    ("ledger", "a", "add", (Odd(),), "bad_arguments", "encoded"),
    ("ledger", "a", "add", (2**70,), "bad_arguments", "encoded"),
    ("ledger", "a", "echo", (b"x" * 15_000,), "too_large", "15"),
    ("ledger", "a", "echo", (b"x" * 30_000,), "too_large", "limit is 20000"),
    ("ledger", "a", "put", ({1, 2}, 1), "bad_arguments", "put"),
    ("ledger", "a", "put_set", (), "aborted", "state_type"),
    ("ledger", "a", "large_reply", (20_000,), "aborted", "limit is 10000"),
    ("ledger", "a", "unencodable_reply", (), "aborted", "cannot be encoded"),
    ("ledger", "a", "leave", (), "aborted", "3"),
    ("ledger", "a", "interrupt", (), "aborted", ""),
    ("ledger", "a", "stop_iteration", (), "aborted", ""),
    ("ledger", "a", "nameless", (), "aborted", "text"),
    ("ledger", "a", "forever", (), "aborted", "500|endless"),
    ("ledger", "a", "forever_waiting", (), "aborted", "500|endless"),
    ("ledger", "a", "loop", (), "aborted", "endless loop"),
    ("ledger", "a", "sleep", (), "aborted", "ledger_app.py:.* awaits"),
]


@pytest.mark.parametrize(
    ("operator", "key", "function", "args", "code", "text"), POISON, ids=[f"{p[2]}-{n}" for n, p in enumerate(POISON)]
)
async def test_a_bad_request_costs_only_itself(
    client: EmbeddedClient, operator: Any, key: Any, function: Any, args: tuple[Any, ...], code: str, text: str
) -> None:
    await client.call("ledger", "bystander", "add")
    bad = client.submit(operator, key, function, *args, timeout=PATIENCE_SECONDS)
    good = client.submit("ledger", "bystander", "add")
    reply = await bad
    assert reply.error is not None
    assert reply.error.code == code
    assert re.search(text, reply.error.message), reply.error.message
    assert (await good).result == 2
    assert client.state() == {("ledger", "bystander"): 2}


async def test_a_mutated_argument_is_nobody_elses(client: EmbeddedClient) -> None:
    items = [1]
    assert await client.call("ledger", "a", "mutate", items) == [1, 99]
    assert items == [1]
    assert client.entity("ledger", "a") is None


@pytest.mark.parametrize("garbage", [b"", b"\xc1", b"\x93\x01\x02\x03", b"\x96" * 3_000, b"{}"])
async def test_garbage_in_the_log_is_skipped_and_reported(client: EmbeddedClient, garbage: bytes) -> None:
    engine = client.engine
    offset = engine.log.append(Stream.REQUESTS, 2, 1, garbage)
    engine._drive.request(2, Record(offset, 1, garbage))
    await client.call("ledger", "bystander", "add")
    assert [(report.slot, report.offset) for report in engine.poison] == [(2, offset)]
    assert "styx_poison_records_total 1" in engine.metrics()
