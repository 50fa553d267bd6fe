"""Checks that pages show the latest reviews, newest first, as far as one client knows them.

A client knows the place in the serial order of each review that it was told of, and that of each page that it reads.
Others write meanwhile, so of the reviews that a page shows some are unknown to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from benchmarks.deathstar.movie.lists import LATEST
from benchmarks.deathstar.movie.told import Place, Wanted


class Latest:
    """The reviews that a client was told of, and the latest one of each movie and of each user."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._of_movie: dict[int, tuple[Place, str]] = {}
        self._of_user: dict[int, tuple[Place, str]] = {}

    def composed(self, review_id: str, place: Place, wanted: Wanted) -> None:
        """Takes a review that the client was told of."""
        self._places[review_id] = place
        for latest, owner in ((self._of_movie, wanted.movie), (self._of_user, wanted.user)):
            latest[owner] = max((place, review_id), latest.get(owner, (place, review_id)))

    def fault_of_movie(self, movie: int, reviews: Sequence[Mapping[str, Any]], place: Place) -> str:
        """The fault in the reviews of a page read at this place; empty if there is none."""
        return self._fault_of(reviews, place, self._of_movie.get(movie))

    def fault_of_user(self, user: int, reviews: Sequence[Mapping[str, Any]], place: Place) -> str:
        """See `fault_of_movie`."""
        return self._fault_of(reviews, place, self._of_user.get(user))

    def _fault_of(self, reviews: Sequence[Mapping[str, Any]], place: Place, latest: tuple[Place, str] | None) -> str:
        shown = [review["review_id"] for review in reviews]
        known = [self._places[review_id] for review_id in shown if review_id in self._places]
        if any(newer < older for newer, older in pairwise([place, *known])):
            return f"shows, not newest first or of a later time, {shown}"
        if latest is None or latest[1] in shown or latest[0] > place:
            return ""
        if known or len(shown) < LATEST:
            return f"shows {shown} and not the later review {latest[1]}"
        return ""
