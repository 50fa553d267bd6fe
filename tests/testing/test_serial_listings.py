"""A part of a listing in the serial reference: a slot's entries in order, and only for reads outside the log."""

from __future__ import annotations

from typing import Any

import msgspec

from proof.chaos_app import app, number
from styx.messages import Request
from styx.model.function_spec import LIST_FUNCTION
from styx.protocol.reads import READ_PHASE
from styx.testing.serial import Place, SerialReference

SLOTS = 2
KEYS = range(40)
encode = msgspec.msgpack.encode


def reference() -> SerialReference:
    made = SerialReference(app, n_slots=SLOTS)
    for key in KEYS:
        made.state["number", key] = encode({"number": key})
    return made


def part(slot: int, after: str | None, first: int) -> Request:
    return Request("read", "number*", slot, LIST_FUNCTION, encode(("", "", after, first, 2**20, True)))


def listed(made: SerialReference, slot: int, after: str | None = None, first: int = 100) -> tuple[list[int], bool]:
    outcome = made.run(1, 0, part(slot, after, first), Place(7, READ_PHASE))
    assert outcome.result is not None, outcome.error
    entries, more = msgspec.msgpack.decode(msgspec.msgpack.decode(outcome.result))
    assert [value["number"] for _, value in entries] == [key for key, _ in entries]
    return [key for key, _ in entries], more


def test_a_slot_gives_its_entries_in_order() -> None:
    made = reference()
    parts: list[Any] = [listed(made, slot) for slot in range(SLOTS)]
    for slot, (keys, more) in enumerate(parts):
        assert keys == [key for key in KEYS if number.slot_of(key, SLOTS) == slot]
        assert not more
    assert sorted(parts[0][0] + parts[1][0]) == [*KEYS]
    keys, _ = parts[0]
    assert listed(made, 0, str(keys[3]), first=2) == (keys[4:6], True)
    assert listed(made, 0, str(keys[-2])) == (keys[-1:], False)


def test_a_transaction_lists_nothing() -> None:
    outcome = reference().run(1, 0, part(0, None, 5), Place(7, 0))
    assert outcome.error is not None
    assert "by reads outside the log alone" in outcome.error[2]
