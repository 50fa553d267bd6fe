"""Entries of an agenda: their keys, ids and pauses, and what may be given."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from styx.errors import ConfigurationError, UnsupportedValue
from styx.model.agenda import (
    AgendaEntry,
    Retry,
    checked_delay,
    checked_name,
    decode_entry,
    due_of,
    encode_entry,
    entry_key,
    giver_of,
    pause_us,
)

ENTRY = AgendaEntry(7, "id", 3, "mail", "send", ["a", 1], b"\x90", 5, 1_000)


def test_an_entry_comes_back() -> None:
    assert decode_entry(encode_entry(ENTRY)) == ENTRY
    assert due_of(encode_entry(ENTRY)) == (7, "id")


@pytest.mark.parametrize("entity", ["a", 7, ("a", 7)])
def test_a_key_names_its_giver(entity: Any) -> None:
    assert giver_of(entry_key(entity, "@t")) == (entity, "@t")


def test_pauses_double_up_to_an_hour() -> None:
    entry = AgendaEntry(7, "id", 3, "mail", "send", "a", b"\x90", 1_000, 1_000_000)
    pauses = [pause_us(replace(entry, attempt=attempt)) for attempt in (1, 2, 3, 900)]
    assert pauses == [1_000_000, 2_000_000, 4_000_000, 3_600_000_000]
    at_once = replace(entry, first_pause_us=0)
    pauses = [pause_us(replace(at_once, attempt=attempt)) for attempt in (1, 2, 900)]
    assert pauses == [1, 1, 1], "no two attempts are at one time, which their request ids have"


@pytest.mark.parametrize("wrong", [5, 1.5, "1s", None, timedelta(seconds=-1), timedelta(days=36_501)])
def test_a_delay_is_a_timedelta(wrong: Any) -> None:
    with pytest.raises(UnsupportedValue, match=r"ctx\.after takes a timedelta from 0 to 36500 days"):
        checked_delay(wrong)


@pytest.mark.parametrize("wrong", ["", 7, "a\n", "x" * 129, None])
def test_a_name_is_a_short_text(wrong: Any) -> None:
    with pytest.raises(UnsupportedValue, match="text of 1 to 128 printable characters"):
        checked_name(wrong)


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"attempts": 1_001}, {"attempts": True}, {"first": 1}])
def test_a_retry_has_limits(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"Retry\("):
        Retry(**wrong)
