"""The record of a run: what is packed comes back, each request as it was, however many there are."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec import ValidationError

from benchmarks.marketplace.answers import CheckoutOutcome, CheckoutResult
from benchmarks.marketplace.record import CHUNK, Asked, Ended, Kind, MarkSeen, Mirrored, Place, Record
from benchmarks.marketplace.values import CartItem


def asked(number: int, **given: object) -> Asked:
    values: dict[str, object] = {
        "client": 0,
        "number": number,
        "kind": Kind.ADD,
        "session": "run-0-1",
        "key": 7,
        "function": "add_item",
        "arguments": [CartItem(1, 2, "tea", 5_00, 1_00, 3, 0, "v0")],
        "sent_us": number,
        "ended_us": number + 10,
        "ended": Ended.COMMITTED,
        "place": Place(3, 0, number),
    }
    return Asked(**values | given)  # type: ignore[arg-type]


def test_all_come_back_in_their_order() -> None:
    record = Record.of(map(asked, range(2 * CHUNK + 5)), [MarkSeen("run-0-1", "SUCCESS", 9)])
    assert len(record) == 2 * CHUNK + 5
    assert [each.number for each in record] == [*range(2 * CHUNK + 5)]
    assert [each.place for each in record][:2] == [Place(3, 0, 0), Place(3, 0, 1)]
    assert [each.number for each in record][-1] == 2 * CHUNK + 4, "it can be read again"
    assert record.marks[0].seen_us == 9


def test_nothing_is_a_record_too() -> None:
    assert [*Record()] == [*Record.of([])] == []
    assert len(Record()) == 0


def test_arguments_and_results_are_values_again() -> None:
    (found,) = Record.of([asked(1)])
    assert found.argument_as(0, CartItem) == CartItem(1, 2, "tea", 5_00, 1_00, 3, 0, "v0")
    (found,) = Record.of([asked(1, result={"outcome": "ACCEPTED", "order_id": 4, "refused": [], "repeated": True})])
    assert found.result_as(CheckoutResult) == CheckoutResult(CheckoutOutcome.ACCEPTED, 4, [], True)
    with pytest.raises(ValidationError):
        found.result_as(CartItem)


def test_a_key_of_two_parts_and_a_time_are_plain_data() -> None:
    (found,) = Record.of([asked(1, key=(3, 4), result=[datetime(2026, 1, 1, tzinfo=UTC)], place=None)])
    assert found.key == [3, 4]
    assert found.result == [datetime(2026, 1, 1, tzinfo=UTC)]
    assert found.place is None


def test_hundreds_of_thousands_of_requests_fit_in_a_few_megabytes() -> None:
    packed = Record.of(map(asked, range(20_000)))._chunks
    assert sum(map(len, packed)) < 20_000 * 40


def test_a_mirrored_product_is_certain_unless_it_is_said() -> None:
    assert Mirrored(1, 2, 5_00, "v0", True).certain
