"""The workload, and how it is sent and recorded: over faults, by idempotency key, and what cannot be."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, Literal

import pytest

from proof.judge.app import app, entity_of, neighbours
from proof.judge.claimed_order import ids_of, problems
from proof.judge.operation import CARRIED, UNIQUE_ID, Done, Operation
from proof.judge.record import UnexpectedReply, record
from proof.judge.recorded import Recorded
from proof.judge.workload import MODELS, Function, Model, Transaction, Workload
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
        return Transaction(0, "star", [["r", [0], None]], [], fails=False, function="read")


class Fixed(Workload):
    """Given transactions, in turn."""

    def __init__(self, transactions: list[Transaction]) -> None:
        kinds = {kind for each in transactions for kind, _, _ in each.operations}
        super().__init__("list-append" if "append" in kinds else "rw-register", 1, 0)
        self._given = iter(transactions)

    def draw(self) -> Transaction:
        return next(self._given)


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
    values = [value for t in drawn for _, _, value in t.operations + t.last if value not in (None, UNIQUE_ID)]
    written = [value[0] if isinstance(value, list) else value for value in values]
    assert len(set(written)) == len(written) > 50
    assert all(value % CARRIED == 0 for value in written)


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
    assert done == [[1, 7], [1, 8], [1, [7, 8]], [5, 9], [5, 10], [6, 11]]
    assert states == [[7, 8], None, None, [9, 10], [11]]


def test_the_engines_own_reads_are_transactions_like_any_other() -> None:
    async def run() -> list[Recorded]:
        async with embedded(app) as client:
            absent = await record([client], OneEngineRead("list-append", 1, 0), processes=1, transactions=1)
            await client.call(*entity_of(0), "apply", "append", 7)
            present = await record([client], OneEngineRead("list-append", 1, 0), processes=1, transactions=1)
            return [absent, present]

    assert [done.ops[1].value for done in asyncio.run(run())] == [[["r", 0, None]], [["r", 0, [7]]]]


def test_a_workload_mixes_all_kinds_of_transactions() -> None:
    workload = Workload("rw-register", 8, 1)
    drawn = [workload.draw() for _ in range(1_000)]
    shares = Counter(transaction.function for transaction in drawn)
    assert shares.keys() == {"transact", "look", "near", "read"}
    assert min(shares.values()) > 50
    operations = [operation for transaction in drawn for operation in transaction.operations + transaction.last]
    assert {kind for kind, _, _ in operations} == {"r", "w", "next", "last"}
    assert sum(value == UNIQUE_ID for _, _, value in operations) > 100
    assert sum(isinstance(value, list) for _, _, value in operations) > 100


def test_what_is_local_stays_on_its_slot_on_any_number_of_slots_but_for_a_few_that_stray() -> None:
    workload = Workload("list-append", 8, 1)
    local = [each for each in (workload.draw() for _ in range(1_000)) if each.function == "near"]

    def stays(transaction: Transaction, n_slots: int) -> bool:
        numbers = {n for _, candidates, _ in transaction.operations + transaction.last for n in candidates}
        return len({slot_of(n, n_slots) for n in {transaction.root, *numbers}}) == 1

    strays = [each for each in local if not stays(each, 64)]
    assert 0.02 < len(strays) / len(local) < 0.2
    assert all(stays(each, n_slots) for n_slots in (4, 8, 1_000) for each in local if each not in strays)
    assert sum(len(neighbours(each.root, range(each.root, each.root + 8))) > 1 for each in local) > len(local) / 3


def slot_of(n: int, n_slots: int) -> int:
    name, key = entity_of(n)
    return app.operators[name].partition_of(key, n_slots) % n_slots


@pytest.mark.parametrize("shape", ["star", "chain"])
def test_numbers_travel_as_arguments_and_as_keys_and_ids_are_written(shape: Literal["star", "chain"]) -> None:
    async def run() -> tuple[Recorded, list[Any]]:
        async with embedded(app) as client:
            operations: list[Operation] = [
                ["next", [1], None],
                ["next", [1], None],
                ["append", [3, 4, 5], [7_000]],
                ["last", [1], None],
                ["append", [6], "id"],
            ]
            last: list[Operation] = [["append", [9], [8_000]], ["append", [9], "id"]]
            workload = Fixed([Transaction(0, shape, operations, last, fails=False)])
            done = await record([client], workload, processes=1, transactions=1)
            return done, [client.entity(*entity_of(n)) for n in (1, 3, 4, 5, 6, 9)]

    done, states = asyncio.run(run())
    first, second = states[4][0], states[5][1]
    assert states == [None, None, None, [7_002], [first], [8_002, second]]
    assert len({first, second} & ids_of(done)) == 2
    assert done.ops[0].value == [["r", "1/sequence", None]] * 3
    assert done.ops[1].value == [
        ["r", "1/sequence", None],
        ["append", "1/sequence", 1],
        ["r", "1/sequence", [1]],
        ["append", "1/sequence", 2],
        ["append", 5, 7_002],
        ["r", "1/sequence", [1, 2]],
        ["append", 6, first],
        ["append", 9, 8_002],
        ["append", 9, second],
    ]
    assert (done.ops[1].error, problems(done)) == (None, [])


def test_registers_have_sequences_too_and_each_kind_of_transaction_its_phase() -> None:
    async def run() -> Recorded:
        async with embedded(app) as client:
            takes: list[Operation] = [["next", [1], None], ["next", [1], None]]
            reads: list[Operation] = [["last", [1], None], ["r", [2], None], ["last", [2], None]]
            drawn: list[Transaction] = [
                Transaction(1, "star", takes, [], fails=False),
                Transaction(1, "chain", takes, [], fails=False, function="near"),
                Transaction(1, "chain", reads, [], fails=False, function="look"),
            ]
            return await record([client], Fixed(drawn), processes=1, transactions=3)

    done = asyncio.run(run())
    assert [op.value for op in done.ops if op.type == "ok"] == [
        [["r", "1/sequence", None], ["w", "1/sequence", 1], ["r", "1/sequence", 1], ["w", "1/sequence", 2]],
        [["r", "1/sequence", 2], ["w", "1/sequence", 3], ["r", "1/sequence", 3], ["w", "1/sequence", 4]],
        [["r", "1/sequence", 4], ["r", 2, None], ["r", "2/sequence", None]],
    ]
    assert done.commits_by_phase() == [1, 1, 0, 1]
    assert problems(done) == []


@pytest.mark.parametrize(
    ("function", "operations", "done", "phase", "wrong"),
    [
        ("transact", [["r", [0], None], ["w", [1], [3_000]]], [[0, None], [1, 3_001]], 1, "it wrote 3001 to 1"),
        ("transact", [["next", [0], None], ["r", [1, 2], None]], [[0, 1], [1, None]], 1, "it was on entity 1, but 2"),
        ("transact", [["w", [1], 3_000]], [], 2, "it did 0 of 1 operations"),
        ("transact", [["w", [1], 3_000]], [[1, 3_000]], 3, "the function transact committed in phase 3"),
        ("look", [["r", [1], None]], [[1, None]], 1, "the function look committed in phase 1"),
        ("near", [["r", [1], None]], [[1, None]], 0, "the function near committed in phase 0"),
    ],
)
def test_a_reply_that_contradicts_itself_is_a_problem(
    function: Function, operations: list[Operation], done: list[Done], phase: int, wrong: str
) -> None:
    client = Scripted(lambda key: Reply(done, None, 1, 1, phase, ""))
    workload = Fixed([Transaction(0, "star", operations, [], fails=False, function=function)])
    recorded = asyncio.run(record([client], workload, processes=1, transactions=1))
    (problem,) = problems(recorded)
    assert problem.startswith("the reply at 1 contradicts itself: ")
    assert wrong in problem


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
