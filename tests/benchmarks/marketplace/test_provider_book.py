"""The payment provider decides about an invoice once, also after it was killed, and does what is demanded of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.marketplace.charging import rejected
from benchmarks.marketplace.provider.book import Behaviour, Book, Question, Told
from benchmarks.marketplace.provider.server import KEY, make_server

NUMBERS = [f"{customer}-20260101-1" for customer in range(1, 401)]


def question(number: str = "7-20260101-1", cents: int = 5_00) -> Question:
    return Question(number, 7, cents, "BOLETO")


def test_a_number_is_one_charge_however_often_it_is_asked() -> None:
    book = Book(None)
    assert [book.ask(question()) for _ in range(3)] == [Told.APPROVED] * 3
    (charge,) = book.charges()
    assert (charge.cents, charge.approved, charge.asked, charge.differing) == (5_00, True, 3, 0)


def test_another_sum_for_the_same_number_is_noted_and_not_charged() -> None:
    book = Book(None)
    book.ask(question())
    book.ask(question(cents=6_00))
    (charge,) = book.charges()
    assert (charge.cents, charge.asked, charge.differing) == (5_00, 2, 1)


def test_whom_it_rejects_is_decided_by_number_and_seed() -> None:
    book = Book(None, seed=3, behaviour=Behaviour(rejected=20))
    told = [book.ask(question(number)) for number in NUMBERS]
    assert [each is Told.REJECTED for each in told] == [rejected(number, 20, 3) for number in NUMBERS]
    assert 40 < told.count(Told.REJECTED) < 120


def test_a_decision_stays_when_the_behaviour_changes() -> None:
    book = Book(None)
    book.ask(question())
    book.behaviour = Behaviour(rejected=100)
    assert book.ask(question()) is Told.APPROVED
    assert book.ask(question("8-20260101-1")) is Told.REJECTED


def test_whom_it_never_answers_is_no_charge() -> None:
    book = Book(None, behaviour=Behaviour(unreachable=20))
    told = {number: [book.ask(question(number)) for _ in range(2)] for number in NUMBERS}
    assert all(first == second for first, second in told.values())
    answered = {charge.invoice_number for charge in book.charges()}
    assert answered == {number for number, (first, _) in told.items() if first is Told.APPROVED}
    assert 280 < len(answered) < 360


def test_while_it_is_down_nobody_is_answered_and_that_is_counted() -> None:
    book = Book(None)
    book.ask(question())
    book.behaviour = Behaviour(down=True)
    assert book.ask(question()) is Told.UNREACHABLE
    assert book.ask(question("8-20260101-1")) is Told.UNREACHABLE
    book.behaviour = Behaviour()
    assert book.ask(question("8-20260101-1")) is Told.APPROVED
    assert [(each.asked, each.refused) for each in book.charges()] == [(1, 1), (1, 1)]


def test_it_goes_on_with_its_file_even_if_that_was_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "book"
    with Book(file, behaviour=Behaviour(rejected=50)) as book:
        told = [book.ask(question(number)) for number in NUMBERS]
        before = [*book.charges()]
    with file.open("ab") as half:
        half.write(b'[{"invoice_number":"half')
    with Book(file) as again:
        assert [*again.charges()] == before
        assert [again.ask(question(number)) for number in NUMBERS] == told


class Asking:
    """Sends requests to a provider in this process."""

    def __init__(self) -> None:
        self._server = make_server(Book(None))

    def post(self, path: str, **request: Any) -> httpx.Response:
        return asyncio.run(self._sent("POST", path, **request))

    def get(self, path: str) -> httpx.Response:
        return asyncio.run(self._sent("GET", path))

    async def _sent(self, method: str, path: str, **request: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self._server)
        async with httpx.AsyncClient(transport=transport, base_url="http://provider") as client:
            return await client.request(method, path, **request)


@pytest.fixture
def client() -> Asking:
    return Asking()


def charge_of(client: Asking, number: str = "7-20260101-1", key: str | None = None) -> tuple[int, object]:
    body = {"invoice_number": number, "customer_id": 7, "cents": 5_00, "payment_type": "BOLETO"}
    answer = client.post("/charge", json=body, headers={KEY: number if key is None else key})
    return answer.status_code, answer.json() if answer.content else None


def test_a_charge_is_answered_and_stands_in_the_book(client: Asking) -> None:
    assert charge_of(client) == (200, {"status": "approved"})
    lines = client.get("/book").text.splitlines()
    assert len(lines) == 1
    assert '"approved":true' in lines[0]
    assert client.get("/healthz").status_code == 204


def test_the_behaviour_is_set_by_a_request(client: Asking) -> None:
    assert client.post("/behaviour", json={"rejected": 100}).status_code == 204
    assert charge_of(client) == (200, {"status": "rejected"})
    assert client.post("/behaviour", json={"down": True}).status_code == 204
    assert charge_of(client, "8-20260101-1") == (503, None)
    assert client.post("/behaviour", json={}).status_code == 204
    assert charge_of(client, "8-20260101-1") == (200, {"status": "approved"})


@pytest.mark.parametrize("behaviour", [{"rejected": 101}, {"reject": 1}, {"delay_ms": -1}])
def test_a_behaviour_that_cannot_be_is_refused(behaviour: dict[str, object], client: Asking) -> None:
    assert client.post("/behaviour", json=behaviour).status_code == 422


def test_a_question_under_another_key_is_refused(client: Asking) -> None:
    status, body = charge_of(client, key="another")
    assert status == 422
    assert "Idempotency-Key is the invoice number: got 'another'" in str(body)
    assert client.post("/charge", json={}, headers={KEY: "x"}).status_code == 422
