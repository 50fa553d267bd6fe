"""From records to transactions: what runs, what is refused with which code, and what repeats an earlier request."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from styx.messages import ReplyRecord, Request, encode_request
from styx.model.limits import Limits
from styx.protocol.manifest import PendingTransaction
from styx.state.slot_state import SlotState
from styx.values.codec import encode_strict
from styx.worker.admission import Admission, idempotency_id
from styx.worker.events import ReportPoison
from styx.worker.reply_memory import ReplyMemory
from styx.worker.root import RootTransaction
from tests.protocol.scripted_app import app

GOOD = Request("r1", "entity", "a0", "run", encode_strict(["get"]))
ONCE = replace(GOOD, idempotency_key="k")


class Door:
    """The admission of slot 0 of 2."""

    def __init__(self, **limits: int) -> None:
        self.admission = Admission(app, Limits(**limits), 2)
        self.memory = ReplyMemory(SlotState(), 10, 10**9)
        self.tids = iter(range(1, 100))

    def admit(self, request: Request | bytes) -> RootTransaction | ReportPoison | None:
        payload = request if isinstance(request, bytes) else encode_request(request)
        return self.admission.admit(0, next(self.tids), (7, 123, payload), self.memory)

    def root(self, request: Request) -> RootTransaction:
        admitted = self.admit(request)
        assert isinstance(admitted, RootTransaction)
        return admitted


def test_a_request_becomes_a_transaction() -> None:
    root = Door().root(GOOD)
    assert (root.tid, root.slot, root.offset, root.timestamp_us) == (1, 0, 7, 123)
    assert (root.request_id, root.reply_to, root.payload) == (GOOD.request_id, GOOD.reply_to, encode_request(GOOD))
    assert (root.function, root.key, root.params) == (app.resolve(GOOD.operator, GOOD.function), GOOD.key, GOOD.params)
    assert not root.done
    assert root.idempotency is None


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\xc1",
        b"text",
        encode_request(GOOD)[:-1],
        encode_request(GOOD) + b"\0",
        encode_strict(["r1", "entity", None, "run", b""]),  # a null key
        encode_strict([1, 2, 3, 4, 5]),
        encode_strict({"request_id": "r1"}),
        encode_strict(["r1", "entity", "a0", "run"]),
        b"\x96\xa2r1\xa6entity" + b"\x91" * 5_000,  # nested without end
    ],
)
def test_garbage_is_reported_and_skipped(garbage: bytes) -> None:
    admitted = Door().admit(garbage)
    assert isinstance(admitted, ReportPoison)
    assert (admitted.slot, admitted.offset) == (0, 7)
    assert admitted.reason.startswith("not a request: ")


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"operator": "entiti"}, "unknown_operator", "has no operator 'entiti'; it has: entity"),
        ({"function": "walk"}, "unknown_function", "has no function 'walk'; it has: hot, look, near, run"),
        ({"key": 5}, "bad_arguments", "has keys of type str, got 5"),
        ({"key": "a1"}, "bad_arguments", "stands in partition 0 .* belongs to partition 1"),
        ({"key": "no digit"}, "bad_arguments", "partition_key of operator 'entity' failed"),
        ({"params": bytes(300)}, "too_large", "params of entity.run has 300 bytes; the limit is 200"),
        (
            {"request_id": "r" * 200, "idempotency_key": "k" * 200},
            "too_large",
            "the request has .* bytes; the limit is 350",
        ),
    ],
)
def test_a_request_that_cannot_run_is_a_reply_and_nothing_else(change: dict[str, Any], code: str, words: str) -> None:
    root = Door(value_bytes_max=200, request_bytes_max=350).root(replace(GOOD, **change))
    assert root.done
    assert root.failure is not None
    assert root.failure.code == code
    assert re.search(words, root.failure.message), root.failure.message


# Repetitions ---------------------------------------------------------------------------------------------------


def test_a_repetition_of_an_unfinished_request_waits_for_its_reply() -> None:
    door = Door()
    first = door.root(ONCE)
    assert door.admit(replace(ONCE, request_id="again")) is None
    assert first.repeats == [("again", 2, 0)]


def test_a_repetition_of_a_finished_request_is_done_at_once() -> None:
    door = Door()
    first = door.root(ONCE)
    reply = ReplyRecord("r1", 1, 1, 0, 1, b"\x05")
    door.memory.remember(idempotency_id(ONCE), reply, reply.epoch)
    door.admission.ended(first)
    again = door.root(replace(ONCE, request_id="again"))
    assert again.done
    assert again.remembered == reply
    assert again.request_id == "again"


def test_a_forgotten_request_runs_again() -> None:
    door = Door()
    door.admission.ended(door.root(ONCE))
    assert not door.root(ONCE).done


def test_nothing_is_waited_for_once_all_have_ended() -> None:
    door = Door()
    roots = [door.root(replace(GOOD, idempotency_key=f"{n}")) for n in range(5)]
    assert len(door.admission.waiting) == 5
    for root in roots:
        door.admission.ended(root)
    assert door.admission.waiting == {}


def test_without_a_key_nothing_repeats() -> None:
    door = Door()
    assert door.root(GOOD) is not door.root(GOOD)


@pytest.mark.parametrize("change", [{"key": "b0"}, {"idempotency_key": "other"}])
def test_a_key_belongs_to_one_entity(change: dict[str, str]) -> None:
    door = Door()
    door.root(ONCE)
    assert door.admit(replace(ONCE, **change)) is not None


def test_a_refused_request_does_not_take_the_key() -> None:
    door = Door()
    door.root(replace(ONCE, function="walk"))
    assert not door.root(ONCE).done


def test_a_transaction_from_a_snapshot_is_waited_for_again() -> None:
    door = Door()
    root = door.admission.readmit(0, PendingTransaction(1, 7, 123, encode_request(ONCE), False, False, None, []))
    assert door.admit(replace(ONCE, request_id="again")) is None
    assert root.repeats == [("again", 1, 0)]
    door.admission.ended(root)
    assert door.admission.waiting == {}
