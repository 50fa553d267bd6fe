"""The history checker accepts what a serial engine gives and explains what a broken one gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec
import pytest

from proof.chaos_app import app as chaos
from proof.random_requests import CONTENDED, random_request
from styx import App, Context, Operator
from styx.messages import ReplyRecord, Request
from styx.model.execution import Outcome
from styx.testing import HistoryReport, SerializabilityViolation, SerialReference, check_history, state_hash
from styx.testing.serial import State

counter = Operator("counter")


@counter.register
async def add(ctx: Context, amount: int) -> int:
    value: int = await ctx.get(0) + amount
    if value < 0:
        raise ValueError(f"only {value - amount}")
    await ctx.put(value)
    return value


@counter.register
async def double(ctx: Context) -> int:
    value: int = await ctx.get(0) * 2
    await ctx.put(value)
    return value


@counter.register(read_only=True)
async def look(ctx: Context) -> int:
    return int(await ctx.get(0))


@counter.register
async def outside(ctx: Context) -> Any:
    return await ctx.call_external(print, "an effect")


app = App("counters", [counter])

Replies = list[ReplyRecord]


class Script:
    """Requests on counters, and the replies a correct engine gives to them in this order."""

    def __init__(self) -> None:
        self.requests: dict[str, tuple[Request, int]] = {}
        self.replies: Replies = []
        self.reference = SerialReference(app)

    def add(self, key: str, amount: int, *, epoch: int = 1, phase: int = 1, idempotency: str = "") -> ReplyRecord:
        return self.call(key, "add", amount, epoch=epoch, phase=phase, idempotency=idempotency)

    def call(
        self, key: str, function: str, *args: int, epoch: int = 1, phase: int = 1, idempotency: str = ""
    ) -> ReplyRecord:
        tid = len(self.requests) + 1
        request = Request(f"r{tid}", "counter", key, function, msgspec.msgpack.encode(args), idempotency)
        self.requests[request.request_id] = (request, tid * 1000)
        outcome = self.reference.run(tid, tid * 1000, request)
        record = ReplyRecord(f"r{tid}", tid, tid, epoch, phase, outcome.result or b"", outcome.error)
        self.replies.append(record)
        return record

    def repeat(self, first: ReplyRecord, idempotency: str) -> ReplyRecord:
        sequence = len(self.requests) + 1
        request = msgspec.structs.replace(
            self.requests[first.request_id][0], request_id=f"r{sequence}", idempotency_key=idempotency
        )
        self.requests[request.request_id] = (request, sequence * 1000)
        record = msgspec.structs.replace(first, request_id=f"r{sequence}", sequence=sequence)
        self.replies.append(record)
        return record

    def change(self, record: ReplyRecord, **fields: Any) -> None:
        self.replies[self.replies.index(record)] = msgspec.structs.replace(record, **fields)

    def check(self, **options: Any) -> HistoryReport:
        return check_history(app, self.requests, self.replies, self.reference.state, **options)

    def violation(self, **options: Any) -> str:
        with pytest.raises(SerializabilityViolation) as raised:
            self.check(**options)
        return str(raised.value)


@pytest.fixture
def script() -> Script:
    return Script()


def result(value: int) -> bytes:
    return msgspec.msgpack.encode(value)


def test_a_correct_history_is_counted(script: Script) -> None:
    script.add("a", 1)
    script.add("a", -5)
    script.call("a", "misspelt")
    report = script.check(complete=True)
    assert (report.committed, report.aborted, report.rejected, report.transactions) == (1, 1, 1, 3)
    assert report.state == script.reference.state
    assert report.state_hash == state_hash(script.reference.state)


def test_the_order_of_the_records_does_not_matter_their_places_do(script: Script) -> None:
    script.add("a", 1)
    script.call("a", "double", epoch=2)
    script.add("a", 3, epoch=2, phase=2)
    script.replies.reverse()
    script.check(complete=True)


def test_within_an_epoch_the_phase_comes_before_the_tid(script: Script) -> None:
    first = script.add("a", 1)
    second = script.call("a", "double", phase=2)
    script.change(first, tid=2, sequence=2)
    script.change(second, tid=1, sequence=1)
    script.check()


def test_a_read_only_function_has_phase_0(script: Script) -> None:
    script.call("a", "look", phase=0)
    script.add("a", 1, phase=1)
    assert script.check().committed == 2
    script.change(script.replies[0], phase=1)
    assert "a read-only function has another phase than 0" in script.violation()


def test_nothing_else_commits_in_phase_0(script: Script) -> None:
    script.add("a", -1, phase=0)
    script.call("a", "misspelt", phase=0)
    assert script.check().committed == 0
    script.add("a", 1, phase=0)
    assert "a function that may write has committed in phase 0" in script.violation()


def test_a_lower_tid_that_was_carried_stands_where_its_place_says(script: Script) -> None:
    script.add("a", 1)
    second = script.call("a", "double")
    script.change(second, tid=9, sequence=9)
    script.check()
    script.change(script.replies[1], epoch=0)
    assert "expected result 0" in script.violation()


def test_a_lost_update_is_found_and_explained(script: Script) -> None:
    script.add("a", 1)
    script.add("b", 5)
    script.change(script.add("a", 2), result=result(2))
    message = script.violation()
    assert "request  r3 counter['a'].add([2])" in message
    assert "epoch 1 phase 1 tid 3" in message
    assert "expected result 3" in message
    assert "got      result 2" in message
    assert "tid 1: r1 counter['a'].add([1])" in message, "the earlier transaction on the key is listed"
    assert "r2" not in message, "and those on other keys are not"


def test_a_lost_update_without_a_reply_that_shows_it_is_found_in_the_state(script: Script) -> None:
    script.add("a", 1)
    script.add("a", 2)
    script.reference.state["counter", "a"] = result(2)
    message = script.violation()
    assert "counter['a']: expected 3, got 2" in message
    assert "r2 counter['a'].add([2])" in message


def test_a_phantom_write_is_found(script: Script) -> None:
    script.add("a", 1)
    script.reference.state["counter", "ghost"] = result(7)
    assert "counter['ghost']: expected nothing, got 7" in script.violation()


def test_a_missing_write_and_undecodable_state_are_shown(script: Script) -> None:
    script.add("a", 1)
    del script.reference.state["counter", "a"]
    assert "counter['a']: expected 1, got nothing" in script.violation()
    script.reference.state["counter", "a"] = b"\xc1"
    assert "got undecodable" in script.violation()


def test_a_swapped_order_is_found(script: Script) -> None:
    first, second = script.add("a", 1), script.call("a", "double")
    script.change(first, tid=2, sequence=2)
    script.change(second, tid=1, sequence=1)
    assert "expected result 0" in script.violation()


@pytest.mark.parametrize(
    "wrong",
    [
        {"error": ("aborted", "ValueError", "only 0"), "result": b""},
        {"result": b""},
    ],
)
def test_an_abort_for_a_commit_is_found(script: Script, wrong: dict[str, Any]) -> None:
    script.change(script.add("a", 1), **wrong)
    assert "expected result 1" in script.violation()


@pytest.mark.parametrize(
    "error",
    [
        None,
        ("aborted", "ValueError", "only 9"),
        ("aborted", "KeyError", "only 1"),
        ("unavailable", "ValueError", "only 1"),
    ],
)
def test_a_wrong_error_is_found(script: Script, error: Any) -> None:
    script.add("a", 1)
    script.change(script.add("a", -5), error=error, result=b"\xc0")
    assert "expected aborted: ValueError: only 1" in script.violation()


def test_a_duplicate_reply_is_found(script: Script) -> None:
    script.replies.append(script.add("a", 1))
    assert "given twice" in script.violation()


@pytest.mark.parametrize("other", [{"request_id": "r2"}, {"sequence": 2, "tid": 2}, {"result": result(9)}])
def test_a_contradictory_reply_is_found(script: Script, other: dict[str, Any]) -> None:
    first = script.add("a", 1)
    script.requests["r2"] = script.requests["r1"]
    script.replies.append(msgspec.structs.replace(first, **other))
    assert "contradicted" in script.violation()


def test_a_reply_to_no_request_is_found(script: Script) -> None:
    script.change(script.add("a", 1), request_id="r77")
    assert "no known request: r77" in script.violation()


def test_requests_without_a_reply_are_found_if_the_history_is_complete(script: Script) -> None:
    script.add("a", 1)
    script.replies.pop()
    script.reference.state.clear()
    assert script.check().unanswered == 1
    assert "1 of 1 requests have no reply:\n  r1 counter['a']" in script.violation(complete=True)


# Idempotent requests -------------------------------------------------------------------------------------------


def test_a_repetition_runs_nothing(script: Script) -> None:
    first = script.add("a", 1, idempotency="key")
    script.add("a", 1)
    script.repeat(first, "key")
    report = script.check(complete=True)
    assert (report.transactions, report.repetitions) == (2, 1)


def test_a_repetition_that_differs_is_found(script: Script) -> None:
    first = script.add("a", 1, idempotency="key")
    script.change(script.repeat(first, "key"), result=result(2))
    assert "differs from the first reply" in script.violation()


@pytest.mark.parametrize(("first_key", "second_key"), [("key", "another"), ("", "")])
def test_a_repetition_of_another_request_is_found(script: Script, first_key: str, second_key: str) -> None:
    script.repeat(script.add("a", 1, idempotency=first_key), second_key)
    assert "another idempotency key" in script.violation()


def test_a_repetition_of_nothing_is_found(script: Script) -> None:
    first = script.add("a", 1, idempotency="key")
    script.repeat(first, "key")
    script.replies.remove(first)
    assert "no known reply" in script.violation()


def test_an_idempotent_request_that_ran_twice_is_found(script: Script) -> None:
    script.add("a", 1, idempotency="key")
    script.add("b", 1, idempotency="key")
    script.check()
    script.add("a", 1, idempotency="key")
    message = script.violation()
    assert "ran twice" in message
    assert "r1" in message
    assert "r3" in message


# External functions ---------------------------------------------------------------------------------------------


def outside_reply(script: Script, outcome: Outcome) -> None:
    script.requests["e"] = (Request("e", "counter", "a", "outside", b"\x90"), 0)
    script.replies.append(ReplyRecord("e", 1, 1, 1, 1, outcome.result or b"", outcome.error))


def test_an_abort_by_an_outside_function_is_counted_as_unverified(script: Script) -> None:
    outside_reply(script, Outcome(None, ("aborted", "OSError", "unreachable")))
    assert script.check().unverified == 1


def test_a_commit_needs_the_outside_functions_result(script: Script) -> None:
    outside_reply(script, Outcome(b"\x07", None))
    with pytest.raises(LookupError, match="externals holds no result for print") as missing:
        script.check()
    key: bytes = missing.value.key  # type: ignore[attr-defined]
    assert script.check(externals={key: b"\x07"}).committed == 1
    assert "expected result 8" in script.violation(externals={key: b"\x08"})


# The hash ------------------------------------------------------------------------------------------------------


def test_the_state_hash_depends_on_content_and_not_on_order() -> None:
    state: State = {("a", "k"): b"1", ("a", 1): b"2", ("b", (1, "x")): b"3"}
    assert state_hash(state) == state_hash(dict(reversed(state.items())))
    assert len(state_hash({})) == 32
    changed: list[State] = [
        {},
        {**state, ("a", "k"): b"2"},
        {**state, ("c", "k"): b"1"},
        {("a", "1"): b"2", ("a", "k"): b"1", ("b", (1, "x")): b"3"},
    ]
    assert len({state_hash(s) for s in [state, *changed]}) == len(changed) + 1


def test_bytes_cannot_move_from_one_field_to_the_next_unseen() -> None:
    two: State = {("a", "k"): b"1", ("b", "k"): b"2"}
    one: State = {("a", "k"): b"1" + msgspec.msgpack.encode(("b", "k")) + b"2"}
    assert state_hash(one) != state_hash(two)


# Random histories ----------------------------------------------------------------------------------------------


def random_history(seed: int) -> tuple[dict[str, tuple[Request, int]], Replies, State]:
    rng = Random(seed)
    reference = SerialReference(chaos)
    requests: dict[str, tuple[Request, int]] = {}
    replies: Replies = []
    for tid in range(1, 41):
        request = random_request(rng, CONTENDED)
        requests[request.request_id] = (request, tid)
        outcome = reference.run(tid, tid, request)
        replies.append(ReplyRecord(request.request_id, tid, tid, 1, 1, outcome.result or b"", outcome.error))
    return requests, replies, dict(reference.state)


def lose_an_update(rng: Random, replies: Replies, state: State) -> None:
    entity = rng.choice(sorted(state, key=repr))
    state[entity] = state[entity] + b"\x00"


def swap_two(rng: Random, replies: Replies, state: State) -> None:
    position = max(i for i, reply in enumerate(replies) if reply.error is None)
    replies[position] = msgspec.structs.replace(replies[position], epoch=0)


BREAKAGES: Mapping[str, Callable[[Random, Replies, State], None]] = {"state": lose_an_update, "order": swap_two}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("breakage", sorted(BREAKAGES))
def test_random_histories_pass_and_broken_ones_do_not(seed: int, breakage: str) -> None:
    requests, replies, state = random_history(seed)
    check_history(chaos, requests, replies, state, complete=True)
    BREAKAGES[breakage](Random(seed), replies, state)
    with pytest.raises(SerializabilityViolation):
        check_history(chaos, requests, replies, state, complete=True)
