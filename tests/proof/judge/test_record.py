"""The workload, and how it is sent and recorded: over faults, by idempotency key, and what cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest

from proof.judge.app import app, entity_of
from proof.judge.record import UnexpectedReply, record
from proof.judge.recorded import Recorded
from proof.judge.workload import MODELS, Model, Transaction, Workload
from styx.client.base import Client, OperatorLike
from styx.client.embedded import embedded
from styx.client.load import LoadTarget
from styx.messages import Reply, ReplyError


class Scripted(Client):
    """Answers each request as it is told: with a reply, or by raising."""

    def __init__(self, answer: Callable[[str], Reply]) -> None:
        self.keys: list[str] = []
        self._answer = answer

    def submit(self, *request: Any, timeout: float = 0, idempotency_key: str | None = None) -> Awaitable[Reply]:
        self.keys.append(idempotency_key or "")

        async def answer() -> Reply:
            return self._answer(idempotency_key or "")

        return answer()

    def load_target(self, operator: OperatorLike, replace: bool, timeout: float) -> LoadTarget:
        raise NotImplementedError

    async def close(self) -> None:
        pass


class OneRead(Workload):
    """Transactions that read entity 0."""

    def draw(self) -> Transaction:
        return Transaction(0, "star", [["r", [0], None]], [], fails=False)


class OneEngineRead(Workload):
    """The engine's own reads of entity 0."""

    def draw(self) -> Transaction:
        return Transaction(0, "read", [["r", [0], None]], [], fails=False)


def recorded(answer: Callable[[str], Reply], transactions: int = 1) -> tuple[Recorded, list[str]]:
    client = Scripted(answer)
    done = asyncio.run(record([client], OneRead("rw-register", 1, 0), processes=1, transactions=transactions))
    return done, client.keys


def reply(error: ReplyError | None = None) -> Reply:
    return Reply([[0, None]], error, 1, 1, 1, "")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proof.judge.record.RETRY_SECONDS", 0)


@pytest.mark.parametrize("model", MODELS)
def test_a_seed_gives_the_same_transactions(model: Model) -> None:
    one, two, other = Workload(model, 5, 1), Workload(model, 5, 1), Workload(model, 5, 2)
    drawn = [one.draw() for _ in range(100)]
    assert drawn == [two.draw() for _ in range(100)]
    assert drawn != [other.draw() for _ in range(100)]
    values = [value for t in drawn for kind, _, value in t.operations + t.last if kind != "r"]
    assert len(set(values)) == len(values) > 50


def test_entities_are_of_all_operators_and_no_two_are_the_same() -> None:
    entities = [entity_of(n) for n in range(30)]
    assert len(set(entities)) == 30
    assert {operator for operator, _ in entities} == {"text", "number", "pair"}


@pytest.mark.parametrize("shape", ["star", "chain"])
def test_a_transaction_does_its_operations_in_order_and_goes_where_its_reads_say(shape: str) -> None:
    async def run() -> list[Any]:
        async with embedded(app) as client:
            operator, key = entity_of(0)
            operations = [["append", [1], 7], ["append", [1], 8], ["r", [1], None], ["append", [3, 4, 5], 9]]
            last = [["append", [3, 4, 5], 10], ["append", [6], 11]]
            done = await client.call(operator, key, "transact", shape, operations, last, False)
            states = [client.entity(*entity_of(n)) for n in (1, 3, 4, 5, 6)]
            failed = await client.request(operator, key, "transact", shape, operations, last, True)
            assert failed.error is not None
            assert failed.error.type == "Refused"
            assert states == [client.entity(*entity_of(n)) for n in (1, 3, 4, 5, 6)]
            return [done, states]

    done, states = asyncio.run(run())
    assert done == [[1, None], [1, None], [1, [7, 8]], [5, None], [5, None], [6, None]]
    assert states == [[7, 8], None, None, [9, 10], [11]]


def test_the_engines_own_reads_are_transactions_like_any_other() -> None:
    async def run() -> list[Recorded]:
        async with embedded(app) as client:
            absent = await record([client], OneEngineRead("list-append", 1, 0), processes=1, transactions=1)
            await client.call(*entity_of(0), "apply", "append", 7)
            present = await record([client], OneEngineRead("list-append", 1, 0), processes=1, transactions=1)
            return [absent, present]

    assert [done.ops[1].value for done in asyncio.run(run())] == [[["r", 0, None]], [["r", 0, [7]]]]


def test_a_tenth_of_a_workload_are_the_engines_own_reads() -> None:
    drawn = [Workload("rw-register", 5, seed).draw() for seed in range(400)]
    assert 20 < sum(transaction.shape == "read" for transaction in drawn) < 80


@pytest.mark.parametrize("fault", [TimeoutError("late"), ConnectionError("gone")])
def test_a_lost_reply_is_asked_for_again_with_the_same_key(fault: Exception) -> None:
    attempts = count()

    def answer(key: str) -> Reply:
        if next(attempts) < 3:
            raise fault
        return reply()

    done, keys = recorded(answer)
    assert [op.type for op in done.ops] == ["invoke", "ok"]
    assert len(keys) == 4
    assert len(set(keys)) == 1


def test_a_rejection_for_load_is_tried_again() -> None:
    answers = iter([reply(ReplyError("RequestRejected", "full", "overloaded")), reply()])
    done, _ = recorded(lambda key: next(answers))
    assert [op.type for op in done.ops] == ["invoke", "ok"]


def test_what_stays_without_an_answer_is_not_known_and_its_process_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("proof.judge.record.RESOLVE_SECONDS_MAX", 0.01)
    lost: set[str] = set()

    def answer(key: str) -> Reply:
        if not lost or key in lost:
            lost.add(key)
            raise TimeoutError("late")
        return reply()

    done, keys = recorded(answer, transactions=2)
    assert [(op.type, op.process, op.error) for op in done.ops] == [
        ("invoke", 0, None),
        ("info", 0, "TimeoutError: late"),
        ("invoke", 1, None),
        ("ok", 1, None),
    ]
    assert len(set(keys)) == 2


def test_a_reply_that_no_transaction_can_have_ends_the_recording() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        recorded(lambda key: reply(ReplyError("KeyError", "x", "aborted")))
    assert caught.group_contains(UnexpectedReply, match="ended with ReplyError\\(type='KeyError'")
