"""One client's witness: the reviews in its replies, and the requests without a reply.

It never looks at the state. A reply that no serial order of transactions could give is noted as a violation at once:
in a movie's page the list and the rating have to be those of the same reviews.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import msgspec

from benchmarks.deathstar.movie.catalogue import info, title, username
from benchmarks.deathstar.movie.latest import Latest
from benchmarks.deathstar.movie.lists import LATEST
from benchmarks.deathstar.movie.parts import TEXT_CHARS_MAX, TextTooLong, UnknownMovie
from benchmarks.deathstar.movie.ratings import RATING_MAX
from benchmarks.deathstar.movie.settings import COMPOSE, READ_MOVIE, READ_USER, Settings
from benchmarks.deathstar.movie.told import Wanted, place_of, text_mark
from benchmarks.driver.workload import Planned
from styx.messages import Reply, ReplyError

VIOLATIONS_KEPT_MAX: Final = 20
"""Violations that a witness describes; further ones are counted."""


class Witness:
    """Takes one outcome after the other; `report` is plain data for `Ledger`."""

    def __init__(self, settings: Settings) -> None:
        self._users = {username(number): number for number in range(settings.users)}
        self._movies = {title(number): number for number in range(settings.movies)}
        self._latest = Latest()
        self._composed: list[tuple[Any, ...]] = []
        self._unknown: list[Wanted] = []
        self._counts: Counter[str] = Counter()
        self._violations: list[str] = []
        self._take: dict[str, Callable[[Planned, Reply], str]] = {
            COMPOSE: self._take_composed,
            READ_MOVIE: self._take_movie,
            READ_USER: self._take_user,
        }

    def answered(self, planned: Planned, reply: Reply) -> None:
        """Takes a reply, committed or not."""
        if reply.error is not None:
            self._not_committed(planned, reply.error)
            return
        self._counts[planned.kind] += 1
        fault = self._take[planned.kind](planned, reply)
        if fault:
            self._violated(planned, fault)

    def unknown(self, planned: Planned) -> None:
        """Takes a request without a reply."""
        if planned.kind == COMPOSE:
            self._counts["unknown"] += 1
            if not self._aborts_of(planned):
                self._unknown.append(self._wanted(planned))

    def report(self) -> dict[str, Any]:
        """The whole witness. A review is its id, its place in the serial order, the request, and the time in
        the reply.
        """
        return {
            "composed": self._composed,
            "unknown": self._unknown,
            "counts": dict(self._counts),
            "violations": self._violations,
        }

    def _wanted(self, planned: Planned) -> Wanted:
        name, stars, written = planned.arguments
        return Wanted(self._users[planned.key], self._movies[name], stars, text_mark(written))

    def _aborts_of(self, planned: Planned) -> set[str]:
        """The errors that this request may end with, and one of which it has to."""
        if planned.kind != COMPOSE:
            return set()
        name, _, written = planned.arguments
        may = set()
        if name not in self._movies:
            may.add(UnknownMovie.__name__)
        if len(written) > TEXT_CHARS_MAX:
            may.add(TextTooLong.__name__)
        return may

    def _not_committed(self, planned: Planned, error: ReplyError) -> None:
        self._counts["not committed"] += 1
        if error.code == "aborted" and error.type not in self._aborts_of(planned):
            self._violated(planned, f"was aborted by {error.type}: {error.message}")

    def _take_composed(self, planned: Planned, reply: Reply) -> str:
        if self._aborts_of(planned):
            return f"committed rather than to abort with {' or '.join(sorted(self._aborts_of(planned)))}"
        wanted = self._wanted(planned)
        match reply.result:
            case {"review_id": str(review_id), "movie_id": wanted.movie, "timestamp": int(timestamp)}:
                place = place_of(reply)
                self._composed.append((review_id, place, *wanted, timestamp))
                self._latest.composed(review_id, place, wanted)
                return ""
        return f"gave {reply.result!r}"

    def _take_movie(self, planned: Planned, reply: Reply) -> str:
        match reply.result:
            case {
                "info": shown,
                "rating": {"count": int(count), "total": int(total)},
                "reviews": list(reviews),
            }:
                movie = self._movies[planned.key]
                fault = _fault_of(reviews, "movie_id", movie)
                if not fault and shown != msgspec.to_builtins(info(movie)):
                    fault = f"tells of it {shown}"
                if not fault and len(reviews) != min(count, LATEST):
                    fault = f"shows {len(reviews)} reviews of {count}"
                if not fault and count == len(reviews) and total != sum(review["rating"] for review in reviews):
                    fault = f"shows the rating {total} of all of its {count} reviews, which have another sum"
                return fault or self._latest.fault_of_movie(movie, reviews, place_of(reply))
        return f"gave {reply.result!r}"

    def _take_user(self, planned: Planned, reply: Reply) -> str:
        result, user = reply.result, self._users[planned.key]
        if type(result) is not list or len(result) > LATEST:
            return f"gave {result!r}"
        return _fault_of(result, "user_id", user) or self._latest.fault_of_user(user, result, place_of(reply))

    def _violated(self, planned: Planned, text: str) -> None:
        self._counts["violations"] += 1
        if len(self._violations) < VIOLATIONS_KEPT_MAX:
            what = f" of {planned.arguments[0]}" if planned.kind == COMPOSE else ""
            self._violations.append(f"{planned.kind} by {planned.key}{what} {text}")


def _fault_of(reviews: list[Any], owner: str, number: int) -> str:
    """The fault in a list of whole reviews that all belong to one user or movie; empty if there is none."""
    for review in reviews:
        match review:
            case {"review_id": str(), "text": str(), "rating": int(stars), "timestamp": int()} if (
                0 <= stars <= RATING_MAX and review.get(owner) == number
            ):
                continue
        return f"shows {review!r}"
    if len({review["review_id"] for review in reviews}) < len(reviews):
        return "shows a review twice"
    return ""
