"""The payment provider: what is asked over HTTP, what counts as an answer, and one charge for each invoice."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from benchmarks.marketplace import charging, settings
from benchmarks.marketplace.services.order.rows import orders
from benchmarks.marketplace.services.payment.rows import payments
from tests.benchmarks.marketplace.shop import buy, fill, item, marketplace, request

pytestmark = pytest.mark.anyio

Asked = dict[str, Any]


@contextmanager
def provider(answer: Callable[[int], tuple[int, bytes]]) -> Iterator[tuple[str, list[Asked]]]:
    """A provider's URL, and what it was asked. `answer` makes status and body of the number of the request, from 0."""
    asked: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body | {"key": self.headers["Idempotency-Key"], "path": self.path})
            status, text = answer(len(asked) - 1)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


APPROVED = b'{"status": "approved"}'


def test_a3_8_what_a_provider_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with provider(lambda number: (200, APPROVED)) as (url, asked):
        monkeypatch.setattr(settings, "PROVIDER", url + "/")
        assert charging.charge("5-20260101-1", 5, 12_00, "BOLETO") == "approved"
        assert asked == [
            {
                "invoice_number": "5-20260101-1",
                "customer_id": 5,
                "cents": 12_00,
                "payment_type": "BOLETO",
                "key": "5-20260101-1",
                "path": "/charge",
            }
        ]


@pytest.mark.parametrize(
    ("status", "body", "answer", "times"),
    [
        (200, b'{"status": "rejected"}', "rejected", 1),
        (200, b'{"status": "APPROVED"}', "unreachable", 3),
        (200, b'{"status": ["approved"]}', "unreachable", 3),
        (200, b'"approved"', "unreachable", 3),
        (200, b"", "unreachable", 3),
        (200, b"\xff\xfe", "unreachable", 3),
        (402, APPROVED, "unreachable", 3),
        (503, b"", "unreachable", 3),
    ],
)
def test_a3_8_what_is_no_answer_is_asked_three_times(
    status: int, body: bytes, answer: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider(lambda number: (status, body)) as (url, asked):
        monkeypatch.setattr(settings, "PROVIDER", url)
        assert charging.charge("1-20260101-1", 1, 1, "BOLETO") == answer
        assert len(asked) == times
        assert {each["key"] for each in asked} == {"1-20260101-1"}


def test_a3_8_a_second_attempt_may_be_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    with provider(lambda number: (200, APPROVED) if number else (503, b"")) as (url, asked):
        monkeypatch.setattr(settings, "PROVIDER", url)
        assert charging.charge("1-20260101-1", 1, 1, "BOLETO") == "approved"
        assert len(asked) == 2


def test_a3_8_nobody_there_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    with provider(lambda number: (200, APPROVED)) as (url, _):
        monkeypatch.setattr(settings, "PROVIDER", url)
    assert charging.charge("1-20260101-1", 1, 1, "BOLETO") == "unreachable"


async def test_psp_each_invoice_is_charged_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def charge(invoice_number: str, customer_id: int, cents: int, payment_type: str) -> str:
        asked.append((invoice_number, cents))
        return "rejected" if invoice_number.endswith("-2") else "approved"

    monkeypatch.setattr(settings, "PROVIDER", "http://nobody")
    monkeypatch.setattr(charging, "charge", charge)
    async with marketplace(pieces=1000, n_slots=16) as cluster:
        waiting = []
        for customer in (1, 2, 3):
            for number in range(3):
                await fill(cluster, customer, item(1, 1, 1 + number), item(2, 1))
                waiting.append(cluster.submit("cart", customer, "checkout", request(customer)))
                # A price that changes at the same time must not change what is asked.
                waiting.append(cluster.submit("product", (1, 1), "set_price", 10_00 + number, "v0"))
        for each in waiting:
            assert (await each).error is None
        await cluster.advance(timedelta(0))
        rows = [row for customer in (1, 2, 3) for row in cluster.rows(orders, customer)]
        assert sorted(asked) == sorted((row.invoice_number, row.total_invoice) for row in rows)
        assert len(asked) == 9
        assert {row.order_id: row.status for row in rows} == {
            1: "READY_FOR_SHIPMENT",
            2: "PAYMENT_FAILED",
            3: "READY_FOR_SHIPMENT",
        }


async def test_psp_after_a_crash_the_invoice_is_asked_again_under_the_same_number(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    charged: dict[str, int] = {}

    def charge(invoice_number: str, customer_id: int, cents: int, payment_type: str) -> str:
        assert charged.setdefault(invoice_number, cents) == cents
        return "approved"

    monkeypatch.setattr(settings, "PROVIDER", "http://nobody")
    monkeypatch.setattr(charging, "charge", charge)
    async with marketplace(data_dir=tmp_path) as cluster:
        await fill(cluster, 1, item())
        await cluster.call("cart", 1, "checkout", request(1))
        await cluster.crash_and_recover()
        await buy(cluster, 1, item())
        assert len(charged) == len(cluster.rows(orders, 1)) == 2
        assert [row.value for row in cluster.rows(payments, 1)] == list(charged.values())
