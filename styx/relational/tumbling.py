"""Tumbling windows: a column's times cut into pieces of one width, by which a view can group rows.

A window is named by its start. It begins where it begins whatever the clock says, and a row counts where its column
says, whenever it comes: so there are no late rows. Pure; no window ever ends by itself.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from styx.errors import BadQuery, ConfigurationError
from styx.relational.columns import Column
from styx.values.codec import shown

_ORIGIN: Final = datetime(2000, 1, 3, tzinfo=UTC)
"""A Monday: so windows of a week begin on Mondays, and those of a day, an hour or a minute where these begin in UTC."""
_MICROSECOND: Final = timedelta(microseconds=1)
_DAY: Final = timedelta(days=1)


class Tumbling:
    """Windows of `width` over the times in the column `column`, for `group_by=` of a view.

    `column` is of datetime or date; with dates, `width` is a number of whole days. `origin` is the start of one of the
    windows; without it that is Monday, 3 January 2000, 0:00 (UTC, if the column has time zones). A datetime for a
    column with time zones has one, too. Raises `ConfigurationError`.
    """

    __slots__ = ("column", "origin", "width")

    def __init__(self, column: str, width: timedelta, origin: date | None = None) -> None:
        if not isinstance(column, str):
            raise ConfigurationError(f"Tumbling takes the name of a column, got {shown(column)}")
        if not isinstance(width, timedelta) or width <= timedelta(0):
            raise ConfigurationError(
                f"Tumbling({column!r}, …): the width is a timedelta of more than 0, got {shown(width)}"
            )
        if origin is not None and not isinstance(origin, date):
            raise ConfigurationError(f"Tumbling({column!r}, …): origin= is a date or datetime, got {shown(origin)}")
        self.column = column
        self.width = width
        self.origin = origin

    def __repr__(self) -> str:
        origin = "" if self.origin is None else f", {self.origin!r}"
        return f"Tumbling({self.column!r}, {self.width!r}{origin})"

    def __str__(self) -> str:
        """As the description of a view has it."""
        origin = "" if self.origin is None else f" from {self.origin.isoformat()}"
        return f"{self.column} by {self.width}{origin}"

    def start(self, at: Any) -> Any:
        """The start of the window of the time `at`: a date of a date, a datetime of a datetime, in UTC if it has a time
        zone. Raises `BadQuery` for what is no time, and for a time that has a zone where `origin` has none.
        """
        try:
            if isinstance(at, datetime):
                begin = self._begin(at.tzinfo is not None)
                if (begin.tzinfo is None) != (at.tzinfo is None):
                    raise BadQuery(f"{self!r}: {shown(at)} and origin= have both a time zone, or neither has one")
                return begin + (at - begin) // self.width * self.width
            if isinstance(at, date):
                days = self.width // _DAY
                if days * _DAY != self.width:
                    raise BadQuery(f"{self!r} has windows of no whole days, and {shown(at)} is a date")
                return at - timedelta((at - self._begin(False).date()).days % days)
        except OverflowError:
            raise BadQuery(f"{self!r}: the window of {shown(at)} begins before the year 1") from None
        raise BadQuery(f"{self!r}.start takes a datetime or a date, got {shown(at)}")

    def _begin(self, aware: bool) -> datetime:
        origin = self.origin
        if origin is None:
            return _ORIGIN if aware else _ORIGIN.replace(tzinfo=None)
        if isinstance(origin, datetime):  # in UTC a day has 24 hours
            return origin if origin.tzinfo is None else origin.astimezone(UTC)
        return datetime(origin.year, origin.month, origin.day, tzinfo=UTC if aware else None)


class Windows:
    """The windows of one declared column, as numbers: the comparables of its values."""

    __slots__ = ("_begin", "_column", "_least", "_width", "tumbling")

    def __init__(self, column: Column, tumbling: Tumbling) -> None:
        """Raises `ConfigurationError`, without the name of what is declared."""
        kind = column.kind
        if kind is None or kind.name not in ("datetime", "naive datetime", "date"):
            raise ConfigurationError(f"column {column.name!r} is of {column.type_name}, and windows are of times")
        self._column = column
        self.tumbling = tumbling
        begin = tumbling._begin(kind.name == "datetime")
        if kind.name == "date":
            if tumbling.width % _DAY:
                raise ConfigurationError(f"column {column.name!r} has dates, so the width is whole days: {tumbling!r}")
            if isinstance(tumbling.origin, datetime):
                raise ConfigurationError(f"column {column.name!r} has dates, so origin= is a date: {tumbling!r}")
            self._least: int = 1
            self._begin: int = begin.date().toordinal()
            self._width: int = tumbling.width // _DAY
            return
        if (begin.tzinfo is None) != (kind.name == "naive datetime"):
            has = "has a time zone, and origin= has none" if begin.tzinfo is None else "has no time zone, but origin="
            raise ConfigurationError(f"column {column.name!r} {has}: {tumbling!r}")
        self._least = kind.of(datetime.min.replace(tzinfo=begin.tzinfo))
        self._begin = kind.of(begin)
        self._width = tumbling.width // _MICROSECOND

    def start(self, part: Any) -> int:
        """The start of the window that a time is in, both as comparables; raises `BadQuery`."""
        start: int = part - (part - self._begin) % self._width
        if start < self._least:
            raise BadQuery(f"column {self._column.name!r}: its window begins before the year 1")
        return start

    def check(self, part: Any) -> None:
        """Raises `BadQuery` for a comparable that is the start of no window."""
        if (part - self._begin) % self._width:
            raise BadQuery(
                f"column {self._column.name!r}: {self._column.from_part(part)} is not the start of a window of "
                f"{self.tumbling!r}, whose start(…) gives that of any time"
            )
