"""Tumbling windows: where they begin, which column they fit, and what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from styx import ConfigurationError, Operator, Tumbling
from styx.errors import BadQuery, UnsupportedValue
from tests.relational.memory import Memory, done

NAIVE = Annotated[datetime, msgspec.Meta(tz=False)]
NOON = datetime(2026, 3, 4, 12, 34, 56, 789, tzinfo=UTC)
MINUTES = Tumbling("at", timedelta(minutes=10))
WEEKS = Tumbling("day", timedelta(days=7))


class Event(msgspec.Struct):
    id: int
    at: datetime | None = NOON
    local: NAIVE = datetime(2026, 3, 4, 12, 34)  # noqa: DTZ001 - the column has no time zone
    day: date = date(2026, 3, 4)
    name: str = ""


def events() -> tuple[Operator, Any]:
    operator = Operator("feed", key_type=int)
    return operator, operator.table("events", Event, key="id")


def test_a_window_begins_at_a_multiple_of_its_width() -> None:
    assert MINUTES.start(NOON) == datetime(2026, 3, 4, 12, 30, tzinfo=UTC)
    assert MINUTES.start(datetime(1969, 12, 31, 23, 59, tzinfo=UTC)) == datetime(1969, 12, 31, 23, 50, tzinfo=UTC)
    start = MINUTES.start(NOON)
    assert MINUTES.start(start) == start
    assert MINUTES.start(start - timedelta(microseconds=1)) == start - MINUTES.width


def test_weeks_begin_on_mondays_and_days_at_midnight_in_utc() -> None:
    assert WEEKS.start(date(2026, 3, 4)) == date(2026, 3, 2)
    assert Tumbling("at", timedelta(days=7)).start(NOON) == datetime(2026, 3, 2, tzinfo=UTC)
    assert Tumbling("at", timedelta(days=1)).start(NOON) == datetime(2026, 3, 4, tzinfo=UTC)


def test_an_origin_moves_the_windows() -> None:
    fiscal = Tumbling("day", timedelta(days=7), date(2026, 1, 1))
    assert fiscal.start(date(2026, 1, 8)) == date(2026, 1, 8)
    assert fiscal.start(date(2025, 12, 31)) == date(2025, 12, 25)
    here = timezone(timedelta(hours=5))
    days = Tumbling("at", timedelta(days=1), datetime(2026, 1, 1, tzinfo=here))
    assert days.start(NOON) == datetime(2026, 3, 4, tzinfo=here)


def test_a_day_has_24_hours_wherever_clocks_are_set_back() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    hours = Tumbling("at", timedelta(hours=24), datetime(2026, 10, 24, tzinfo=berlin))
    assert hours.start(datetime(2026, 10, 25, 23, 30, tzinfo=berlin)) == datetime(2026, 10, 25, 22, tzinfo=UTC)


def test_a_view_groups_by_windows() -> None:
    operator, table = events()
    view = table.view("by", group_by=("name", MINUTES, Tumbling("local", timedelta(hours=1)), WEEKS))
    memory = Memory(operator)
    rows = memory.context(operator).rows(table)
    for id in range(3):
        done(rows.insert(Event(id, NOON + timedelta(minutes=3 * id))))
    done(rows.insert(Event(9, None)))
    groups = done(memory.context(operator).rows(view).select(name=""))
    assert [msgspec.structs.astuple(group)[1:] for group in groups] == [
        (datetime(2026, 3, 4, 12, 30, tzinfo=UTC), datetime(2026, 3, 4, 12), date(2026, 3, 2), 2),  # noqa: DTZ001
        (datetime(2026, 3, 4, 12, 40, tzinfo=UTC), datetime(2026, 3, 4, 12), date(2026, 3, 2), 1),  # noqa: DTZ001
    ]


def test_a_row_that_comes_late_counts_where_its_time_says() -> None:
    operator, table = events()
    view = table.view("by", group_by=MINUTES)
    memory = Memory(operator)
    rows, groups = memory.context(operator).rows(table), memory.context(operator).rows(view)
    done(rows.insert(Event(1)))
    done(rows.insert(Event(2, NOON - timedelta(days=400))))
    assert [group.count for group in done(groups.select())] == [1, 1]
    done(rows.update(2, at=NOON))
    assert [group.count for group in done(groups.select())] == [2]
    done(rows.update(2, at=NOON + timedelta(seconds=1)))
    assert done(groups.get(MINUTES.start(NOON))).count == 2


def test_a_group_is_asked_for_by_the_start_of_its_window() -> None:
    operator, table = events()
    view = table.view("by", group_by=MINUTES)
    groups = Memory(operator).context(operator).rows(view)
    assert done(groups.get(MINUTES.start(NOON))).count == 0
    with pytest.raises(
        BadQuery, match=r"view 'by' .*12:34:56.* is not the start of a window of Tumbling\('at'.*start\("
    ):
        groups.get(NOON)


def test_the_first_window_begins_in_the_year_1() -> None:
    operator, table = events()
    table.view("by", group_by=WEEKS)
    rows = Memory(operator).context(operator).rows(table)
    done(rows.insert(Event(1, day=date(1, 1, 1))))  # a Monday
    early = Tumbling("day", timedelta(days=7), date(2026, 1, 1))
    with pytest.raises(BadQuery, match="begins before the year 1"):
        early.start(date(1, 1, 1))
    with pytest.raises(BadQuery, match="begins before the year 1"):
        Tumbling("at", timedelta(days=7), datetime(2026, 1, 1, tzinfo=UTC)).start(datetime(1, 1, 1, tzinfo=UTC))
    operator, table = events()
    table.view("by", group_by=early)
    with pytest.raises(
        UnsupportedValue, match="view 'by' of table feed/events: column 'day': its window begins before"
    ):
        done(Memory(operator).context(operator).rows(table).insert(Event(1, day=date(1, 1, 1))))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Tumbling(7, timedelta(1)), "takes the name of a column, got 7"),  # type: ignore[arg-type]
        (lambda: Tumbling("at", timedelta(0)), "a timedelta of more than 0, got"),
        (lambda: Tumbling("at", -timedelta(1)), "a timedelta of more than 0"),
        (lambda: Tumbling("at", 60), "a timedelta of more than 0, got 60"),  # type: ignore[arg-type]
        (lambda: Tumbling("at", timedelta(1), "2026"), "origin= is a date or datetime"),  # type: ignore[arg-type]
        (lambda: events()[1].view("v", group_by=Tumbling("name", timedelta(1))), "'name' is of str, and windows are"),
        (lambda: events()[1].view("v", group_by=Tumbling("gone", timedelta(1))), "has no column 'gone'"),
        (lambda: events()[1].view("v", group_by=Tumbling("day", timedelta(hours=36))), "the width is whole days"),
        (lambda: events()[1].view("v", group_by=Tumbling("day", timedelta(1), NOON)), "so origin= is a date"),
        (
            lambda: events()[1].view("v", group_by=Tumbling("local", timedelta(1), NOON)),
            "column 'local' has no time zone, but origin=",
        ),
        (
            lambda: events()[1].view("v", group_by=Tumbling("at", timedelta(1), NOON.replace(tzinfo=None))),
            "column 'at' has a time zone, and origin= has none",
        ),
        (lambda: events()[1].view("v", group_by=("at", MINUTES)), "group_by= has the column 'at' twice"),
        (lambda: events()[1].view("v", sum=MINUTES), "sum=: the row type has no column Tumbling"),
    ],
)
def test_what_is_wrong_is_said(make: Any, why: str) -> None:
    with pytest.raises(ConfigurationError) as told:
        make()
    assert why in str(told.value)


@pytest.mark.parametrize(
    ("windows", "at", "why"),
    [
        (MINUTES, "noon", "takes a datetime or a date, got 'noon'"),
        (MINUTES, date(2026, 1, 1), "windows of no whole days"),
        (Tumbling("at", timedelta(1), NOON), NOON.replace(tzinfo=None), "both a time zone, or neither"),
    ],
)
def test_what_has_no_window_is_refused(windows: Tumbling, at: Any, why: str) -> None:
    with pytest.raises(BadQuery, match=why):
        windows.start(at)


def test_it_says_what_it_is() -> None:
    assert repr(MINUTES) == "Tumbling('at', datetime.timedelta(seconds=600))"
    assert str(MINUTES) == "at by 0:10:00"
    assert str(Tumbling("day", timedelta(7), date(2026, 1, 1))) == "day by 7 days, 0:00:00 from 2026-01-01"
    assert "datetime.date(2026, 1, 1)" in repr(Tumbling("day", timedelta(7), date(2026, 1, 1)))
