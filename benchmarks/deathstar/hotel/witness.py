"""One client's witness. It compares searches, recommendations and logins with the right answers, and keeps the replies
to reservations.

A taken room or seat stays taken, so a hotel or flight that a reply called full must stay full. The witness keeps this
too, for the audit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import msgspec

from benchmarks.deathstar.hotel.data import WRONG_PASSWORD, DataSet
from benchmarks.deathstar.hotel.expected import Expected
from benchmarks.deathstar.hotel.seen import Booked, Seen, Stay
from benchmarks.deathstar.hotel.services.flight import NoSeat
from benchmarks.deathstar.hotel.services.hotel import NoRoom
from benchmarks.deathstar.hotel.services.user import WrongPassword
from benchmarks.deathstar.hotel.settings import LOGIN, RECOMMEND, RESERVE, SEARCH
from benchmarks.driver.workload import Planned
from styx.messages import Reply, ReplyError

VIOLATIONS_KEPT_MAX: Final = 20
"""Violations that a witness describes; further ones are counted."""


class Witness:
    """Takes one outcome after the other; `report` is a `Seen` as plain data."""

    def __init__(self, data: DataSet) -> None:
        self._expected = Expected(data)
        self._seen = Seen()
        self._no_room: dict[Stay, int] = {}
        self._offered: dict[Stay, int] = {}
        self._counts: Counter[str] = Counter()
        self._check: dict[str, Callable[[Planned, Reply], bool]] = {
            SEARCH: self._search,
            RECOMMEND: self._recommend,
            LOGIN: self._login,
            RESERVE: self._reserve,
        }

    def answered(self, planned: Planned, reply: Reply) -> None:
        """Takes a reply, committed or not."""
        if planned.kind == RESERVE:
            self._tried(planned)
        if reply.error is not None:
            self._not_committed(planned, reply.error, reply.epoch)
            return
        self._counts[planned.kind] += 1
        if not self._check[planned.kind](planned, reply):
            self._violated(f"{_text(planned)} answered {reply.result!r}")

    def unknown(self, planned: Planned) -> None:
        """Takes a request without a reply."""
        if planned.kind == RESERVE:
            self._tried(planned)
            if planned.arguments[0] != WRONG_PASSWORD:
                self._seen.unanswered.append(_wanted(planned))

    def report(self) -> dict[str, Any]:
        """The whole witness."""
        self._seen.counts = dict(self._counts)
        self._seen.no_room, self._seen.offered = [*self._no_room.items()], [*self._offered.items()]
        report: dict[str, Any] = msgspec.to_builtins(self._seen)
        return report

    def _tried(self, planned: Planned) -> None:
        seen, wanted = self._seen, _wanted(planned)
        seen.users.add(wanted.user)
        seen.hotels.add(wanted.hotel)
        seen.flights.add(wanted.seat)

    def _search(self, planned: Planned, reply: Reply) -> bool:
        """The nearest hotels in order, each as it must be; those that are missing have no room."""
        place, in_date, out_date = planned.arguments
        if not isinstance(reply.result, list):
            return False
        left = [*reply.result]
        for expected in self._expected.offers(place, in_date, out_date):
            stay = Stay(expected["hotel"], in_date, out_date)
            if left and left[0] == expected:
                del left[0]
                self._offered[stay] = max(reply.epoch, self._offered.get(stay, reply.epoch))
            else:
                self._full(stay, reply.epoch)
        return not left

    def _full(self, stay: Stay, epoch: int) -> None:
        self._no_room[stay] = min(epoch, self._no_room.get(stay, epoch))

    def _recommend(self, planned: Planned, reply: Reply) -> bool:
        return bool(reply.result == self._expected.best(*planned.arguments))

    def _login(self, planned: Planned, reply: Reply) -> bool:
        return reply.result is (planned.arguments[0] != WRONG_PASSWORD)

    def _reserve(self, planned: Planned, reply: Reply) -> bool:
        name = reply.result
        if planned.arguments[0] == WRONG_PASSWORD or not isinstance(name, str) or name in self._seen.made:
            return False
        self._seen.made[name] = _wanted(planned)
        self._seen.places[name] = reply.epoch, reply.phase, reply.tid
        return True

    def _not_committed(self, planned: Planned, error: ReplyError, epoch: int) -> None:
        self._counts["not committed"] += 1
        if error.code == "aborted" and not self._may_abort(planned, error.type, epoch):
            self._violated(f"{_text(planned)} was aborted by {error.type}: {error.message}")

    def _may_abort(self, planned: Planned, reason: str, epoch: int) -> bool:
        """Whether the reason can be right; what nothing is left of is for the audit to see."""
        if planned.kind != RESERVE:
            return False
        if planned.arguments[0] == WRONG_PASSWORD:
            return reason == WrongPassword.__name__
        if reason == NoRoom.__name__:
            self._full(_wanted(planned).stay, epoch)
        elif reason == NoSeat.__name__:
            self._seen.no_seat.add(_wanted(planned).seat)
        else:
            return False
        return True

    def _violated(self, text: str) -> None:
        self._counts["violations"] += 1
        if len(self._seen.violations) < VIOLATIONS_KEPT_MAX:
            self._seen.violations.append(text)


def _wanted(planned: Planned) -> Booked:
    return Booked(planned.key, *planned.arguments[1:])


def _text(planned: Planned) -> str:
    return f"{planned.function}{planned.arguments} of {planned.operator.name} {planned.key}"
