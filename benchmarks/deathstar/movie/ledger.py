"""The reviews that must exist after a run, by the witnesses of all clients, and the differences from those found.

A review that a client was told of is stored as it was asked for, and stands once in its movie's list, once in its
user's, and nowhere else; lists are in the serial order. A review that no reply named may exist if a request without an
answer asked for exactly that review; then it must be complete as well. Every movie's rating is that of its reviews.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from benchmarks.deathstar.movie.found import Found
from benchmarks.deathstar.movie.storage import ReviewKey
from benchmarks.deathstar.movie.told import Place, Wanted, Written
from benchmarks.driver.reading import Unread

SHOWN_MAX: Final = 20
"""Faults that are described; further ones are counted."""


class Ledger:
    """The sum of the reports of all witnesses. Without any, a review that is found is taken for one that was told.

    `told` are the reviews that clients know of. `counts` are of requests: answered ones by kind, `unknown` reviews, and
    `not committed` of all kinds.
    """

    def __init__(self, reports: Iterable[Mapping[str, Any]]) -> None:
        self.told: dict[ReviewKey, Written] = {}
        self.counts: Counter[str] = Counter()
        self.witnessed = False
        self._places: dict[ReviewKey, Place] = {}
        self._unknown: Counter[Wanted] = Counter()
        self._noted: list[str] = []
        for report in reports:
            self.witnessed = True
            self._add(report)

    def _add(self, report: Mapping[str, Any]) -> None:
        for review_id, place, *wanted, timestamp in report["composed"]:
            review = Written(Wanted(*wanted), timestamp)
            key = (review.wanted.movie, review_id)
            if key in self.told:
                self._noted.append(f"two requests were told that they composed the review {key}")
            self.told[key] = review
            self._places[key] = tuple(place)
        self._unknown.update(Wanted(*wanted) for wanted in report["unknown"])
        self._noted += report["violations"]
        more = report["counts"].get("violations", 0) - len(report["violations"])
        if more > 0:
            self._noted.append(f"and {more} replies more of a client that no serial order can give")
        self.counts.update(report["counts"])

    @property
    def uncertain_users(self) -> list[int]:
        """The users whose requests had no answer."""
        return sorted({wanted.user for wanted in self._unknown})

    def violations(self, found: Found) -> list[str]:
        """The violations in the state found."""
        expected, surplus = self._expected(found)
        faults = [
            *found.unread,
            *surplus,
            *_wrongly_stored(expected, found.stored),
            *_wrongly_listed(expected, found.by_movie, "movie"),
            *_wrongly_listed(expected, found.by_user, "user"),
            *self._out_of_order(found.by_movie, "movie"),
            *self._out_of_order(found.by_user, "user"),
            *_wrongly_rated(expected, found.ratings),
        ]
        if len(faults) > SHOWN_MAX:
            faults[SHOWN_MAX:] = [f"and {len(faults) - SHOWN_MAX} more faults in the state"]
        return [*self._noted, *faults]

    def _expected(self, found: Found) -> tuple[dict[ReviewKey, Written], list[str]]:
        """The reviews that there have to be, and what is wrong with the others that are there."""
        expected, faults = {**self.told}, []
        unexplained = self._unknown.copy()
        for key in sorted(found.stored.keys() - expected.keys()):
            review = found.stored[key]
            if isinstance(review, Unread):
                faults.append(f"the review {key}, of which nobody was told, is in a list: {review}")
            elif self.witnessed and not unexplained[review.wanted]:
                faults.append(f"the review {key} is there, and nobody was told: {review}")
            else:
                unexplained[review.wanted] -= 1
                expected[key] = review
        return expected, faults

    def _out_of_order(self, lists: Mapping[int, list[ReviewKey]], owner: str) -> list[str]:
        """Lists have their reviews in the order in which they were written: the serial order."""
        faults = []
        for number, reviews in lists.items():
            known = [key for key in dict.fromkeys(reviews) if key in self._places]
            faults += [
                f"in the list of {owner} {number} the review {later} stands behind the later one {key}"
                for key, later in pairwise(known)
                if self._places[later] < self._places[key]
            ]
        return faults


def _wrongly_stored(expected: Mapping[ReviewKey, Written], stored: Mapping[ReviewKey, Written | Unread]) -> list[str]:
    return [
        f"the review {key} is {review} rather than {expected[key]}"
        for key in expected
        if (review := stored[key]) != expected[key]
    ]


def _wrongly_listed(
    expected: Mapping[ReviewKey, Written], lists: Mapping[int, list[ReviewKey]], owner: str
) -> list[str]:
    """The misplaced reviews in the lists of all users or of all movies, by `owner`."""
    places: dict[ReviewKey, list[int]] = {key: [] for key in expected}
    for number, reviews in lists.items():
        for key in reviews:
            places.setdefault(key, []).append(number)
    return [
        f"the review {key} stands in the lists of {owner}s {places[key]} rather than in that of {owner} {own}"
        for key, review in expected.items()
        if places[key] != [own := getattr(review.wanted, owner)]
    ]


def _wrongly_rated(expected: Mapping[ReviewKey, Written], ratings: Mapping[int, tuple[int, int] | Unread]) -> list[str]:
    counts: Counter[int] = Counter()
    totals: Counter[int] = Counter()
    for review in expected.values():
        counts[review.wanted.movie] += 1
        totals[review.wanted.movie] += review.wanted.stars
    return [
        f"the rating of the movie {movie} is {rating} rather than {(counts[movie], totals[movie])}, count and sum"
        for movie, rating in ratings.items()
        if rating != (counts[movie], totals[movie])
    ]
