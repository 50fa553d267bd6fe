"""The reviews in the state, read by ordinary requests after a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from benchmarks.deathstar.movie.lists import HEAD, LATEST, PAGE, PageKey, listed, movie_reviews, newest, user_reviews
from benchmarks.deathstar.movie.ratings import all_ratings, rating
from benchmarks.deathstar.movie.settings import Settings
from benchmarks.deathstar.movie.storage import ReviewKey, read, review_storage
from benchmarks.deathstar.movie.told import Wanted, Written, text_mark
from benchmarks.driver.reading import Unread, read_each
from styx.client.base import Client
from styx.model.operator import Operator


class Found(NamedTuple):
    """The state. `stored` has what was asked for and is not there as `Unread`, and so have `ratings`.

    `ratings` are count and sum by movie. `by_movie` and `by_user` are the lists by their owners, and `unread` says
    which pages of them could not be read, or do not lead to the page before.
    """

    stored: dict[ReviewKey, Written | Unread]
    by_movie: dict[int, list[ReviewKey]]
    by_user: dict[int, list[ReviewKey]]
    ratings: dict[int, tuple[int, int] | Unread]
    unread: list[str]


async def find(client: Client, settings: Settings, told: Iterable[ReviewKey]) -> Found:
    """Everything that any list names, the reviews `told`, and all ratings."""
    unread: list[str] = []
    movie_pages = await _pages(client, movie_reviews, settings.movies, unread)
    user_pages = await _pages(client, user_reviews, settings.users, unread)
    by_movie, by_user = _lists(movie_pages), _lists(user_pages)
    wanted = {key for reviews in (*by_movie.values(), *by_user.values(), told) for key in reviews}
    stored = await _stored_of(client, movie_pages)
    stored |= await _stored(client, sorted(wanted - stored.keys()))
    ratings = await read_each(client, rating, range(settings.movies), all_ratings)
    return Found(stored, by_movie, by_user, {movie: _rating(answer) for movie, answer in ratings.items()}, unread)


async def _pages(client: Client, lists: Operator, owners: int, unread: list[str]) -> dict[PageKey, list[ReviewKey]]:
    """All pages of all lists, the oldest of each list first."""
    heads = await read_each(client, lists, [(owner, HEAD) for owner in range(owners)], listed)
    older = [
        (owner, number)
        for (owner, _), head in heads.items()
        if not isinstance(head, Unread)
        for number in range(1, head["older"] + 1)
    ]
    pages = await read_each(client, lists, older, listed) | heads
    unread += [
        f"{lists.name} {(owner, number)} goes on at page {page['older']} rather than {number - 1}"
        for (owner, number), page in pages.items()
        if number != HEAD and not isinstance(page, Unread) and page["older"] != number - 1
    ]
    unread += [f"{lists.name} {key}: {page}" for key, page in pages.items() if isinstance(page, Unread)]
    return {
        key: [(movie, review_id) for movie, review_id in page["reviews"]]
        for key, page in pages.items()
        if not isinstance(page, Unread)
    }


def _lists(pages: Mapping[PageKey, list[ReviewKey]]) -> dict[int, list[ReviewKey]]:
    lists: dict[int, list[ReviewKey]] = {}
    for (owner, _), reviews in pages.items():
        lists.setdefault(owner, []).extend(reviews)
    return lists


async def _stored_of(client: Client, pages: Mapping[PageKey, list[ReviewKey]]) -> dict[ReviewKey, Written | Unread]:
    """The reviews of these pages of movies, a page at once; of a page with a review that is not stored, none."""
    answers = await read_each(client, movie_reviews, pages, newest, LATEST + PAGE)
    return {
        key: _own(key, review)
        for page, answer in answers.items()
        if not isinstance(answer, Unread)
        for key, review in zip(reversed(pages[page]), answer, strict=True)
    }


async def _stored(client: Client, keys: list[ReviewKey]) -> dict[ReviewKey, Written | Unread]:
    answers = await read_each(client, review_storage, keys, read)
    return {key: answer if isinstance(answer, Unread) else _own(key, answer) for key, answer in answers.items()}


def _own(key: ReviewKey, review: dict[str, Any]) -> Written | Unread:
    stands_for = (review["movie_id"], review["review_id"])
    if stands_for != key:
        return Unread(f"another one, {stands_for}")
    wanted = Wanted(review["user_id"], review["movie_id"], review["rating"], text_mark(review["text"]))
    return Written(wanted, review["timestamp"])


def _rating(answer: Any) -> tuple[int, int] | Unread:
    return answer if isinstance(answer, Unread) else (answer["count"], answer["total"])
