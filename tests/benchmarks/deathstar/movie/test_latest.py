"""Pages that do not show the latest reviews newest first are found, as far as one client can know."""

from __future__ import annotations

import pytest

from benchmarks.deathstar.movie.latest import Latest
from benchmarks.deathstar.movie.lists import LATEST
from benchmarks.deathstar.movie.told import Wanted

PAGE_READ = (9, 0, 0)
OTHERS = [f"other {number}" for number in range(LATEST)]


def known() -> Latest:
    """Reviews `a`, `b` and `c`, in this order; `late` is after the page was read."""
    latest = Latest()
    for review_id, place in (("b", (1, 1, 0)), ("a", (1, 0, 7)), ("late", (10, 0, 0)), ("c", (2, 0, 0))):
        if review_id != "late":
            latest.composed(review_id, place, Wanted(3, 4, 5, 0))
    latest.composed("late", (10, 0, 0), Wanted(1, 2, 5, 0))
    return latest


@pytest.mark.parametrize(
    ("shown", "fault"),
    [
        (["c", "b", "a"], ""),
        (["other", "c", "another", "b"], ""),
        (OTHERS, ""),
        ([*OTHERS[1:], "c"], ""),
        (["b", "c", "a"], "not newest first"),
        (["late", "c"], "of a later time"),
        (["b", "a"], "not the later review c"),
        ([*OTHERS[1:], "a"], "not the later review c"),
        (OTHERS[1:], "not the later review c"),
        ([], "not the later review c"),
    ],
)
def test_a_page_is_held_against_what_is_known(shown: list[str], fault: str) -> None:
    reviews = [{"review_id": review_id} for review_id in shown]
    for found in (known().fault_of_movie(4, reviews, PAGE_READ), known().fault_of_user(3, reviews, PAGE_READ)):
        assert fault in found
        assert bool(found) == bool(fault)


def test_what_was_written_after_the_page_was_read_is_not_missed() -> None:
    assert known().fault_of_movie(2, [], PAGE_READ) == ""
    assert known().fault_of_user(1, [], PAGE_READ) == ""
    assert known().fault_of_movie(0, [], PAGE_READ) == ""
