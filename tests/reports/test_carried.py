"""The warning of transactions that are carried again and again: what it says, how often, and what is counted."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from styx.reports import carried as carried_module
from styx.reports.carried import FUNCTIONS_MAX, FUNCTIONS_TOLD, OTHERS, TELL_SECONDS, CarriedReports, carried_text
from styx.reports.json_lines import FIELDS
from styx.worker.changed_call import ChangedCall
from styx.worker.notes import CarriedNote

CALLER = ("cart", "ada", "checkout")


def note(times: int = 3, key: Any = "ada", function: str = "checkout", callee: str | None = "place") -> CarriedNote:
    called = None if callee is None else ("order", 7, callee)
    return CarriedNote(5, 9, times, "cart", key, function, ChangedCall(CALLER, called))


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reports(clock: Clock, caplog: pytest.LogCaptureFixture) -> Iterator[CarriedReports]:
    with caplog.at_level(logging.WARNING, "styx.carried"):
        yield CarriedReports(clock)


def test_once_and_twice_are_usual(reports: CarriedReports, caplog: pytest.LogCaptureFixture) -> None:
    reports.take([note(1), note(2)], {("cart", "checkout", 2): 50})
    assert (caplog.records, reports.again) == ([], {})
    assert reports.worst == note(2)


def test_the_third_time_is_told_with_the_functions_the_keys_and_what_to_do(
    reports: CarriedReports, caplog: pytest.LogCaptureFixture
) -> None:
    reports.take([note(3)], {})
    [record] = caplog.records
    text = record.getMessage()
    assert text.startswith(
        "cart.checkout on 'ada' was carried 3 times (tid 5): cart.checkout on 'ada' calls order.place on 7, and "
        "another one or none when it is run again. Each time costs the transaction an epoch."
    )
    assert text.endswith('See "Numbers and ids" in docs/programming.md')
    for advice in ("ctx.unique_id()", "ctx.sequence()", "read_only=True", "local=True", "partition_key", "Split"):
        assert advice in text
    fields = getattr(record, FIELDS)
    assert (fields["operator"], fields["key"], fields["function"], fields["times"]) == ("cart", "ada", "checkout", 3)


def test_the_same_is_told_once_a_minute(
    reports: CarriedReports, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Keys may be others each time."""
    for number in range(1_000):
        reports.take([note(3, key=f"k{number}")], {})
    assert len(caplog.records) == 1
    reports.take([note(3, callee="cancel"), note(3, function="pay"), note(3, callee=None)], {})
    assert len(caplog.records) == 4
    clock.now_s += TELL_SECONDS
    reports.take([note(4)], {})
    assert "; 1,000 such since the last message. See " in caplog.records[-1].getMessage()
    assert sum("ctx.unique_id()" in record.getMessage() for record in caplog.records) == 1, "the advice comes once"
    assert reports.again == {"cart.checkout": 1_003, "cart.pay": 1}


def test_what_the_worker_left_out_is_counted(reports: CarriedReports) -> None:
    reports.take([note(3)], {("cart", "checkout", 3): 7, ("cart", "checkout", 2): 9})
    assert reports.again == {"cart.checkout": 8}


def test_functions_and_kinds_are_bounded(reports: CarriedReports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carried_module, "KINDS_MAX", 3)
    for number in range(FUNCTIONS_MAX + 5):
        reports.take([note(3, function=f"f{number:03}")], {})
    assert len(reports.again) == FUNCTIONS_MAX + 1
    assert reports.again[OTHERS] == 5
    assert len(reports._kinds) == 3
    assert reports.most() == {OTHERS: 5, **{f"cart.f{n:03}": 1 for n in range(FUNCTIONS_TOLD - 1)}}


def test_texts() -> None:
    assert "was carried once (tid 5)" in carried_text(note(1))
    assert "was carried 1,200 times" in carried_text(note(1_200))
    assert "the result or the calls of cart.checkout on 'ada' change" in carried_text(note(3, callee=None))
    assert "seen on another worker" in carried_text(note(3)._replace(changed=None))
    assert "\n" not in carried_text(note(3, key="two\nlines"))
