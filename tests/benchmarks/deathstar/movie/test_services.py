"""The app: a review is there as a whole or not at all, lists go on over pages, and pages show what was written."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import styx
from benchmarks.deathstar.movie.app import app
from benchmarks.deathstar.movie.catalogue import catalogue, title, username
from benchmarks.deathstar.movie.lists import HEAD, LATEST, PAGE, movie_reviews
from benchmarks.deathstar.movie.pages import movie_info
from benchmarks.deathstar.movie.parts import TEXT_CHARS_MAX
from benchmarks.deathstar.movie.ratings import rating
from benchmarks.deathstar.movie.storage import review_storage
from styx.client.embedded import EmbeddedClient
from tests.benchmarks.deathstar.counted import counting

USER, TITLE = username(2), title(1)


def on(tried: Callable[[EmbeddedClient], Awaitable[None]]) -> None:
    """Runs `tried` on an engine with 3 users and 3 movies."""

    async def run() -> None:
        async with styx.embedded(app) as client:
            for loading in catalogue(users=3, movies=3):
                await client.load(loading.operator, loading.pairs)
            await tried(client)

    asyncio.run(run())


async def compose(client: EmbeddedClient, stars: int = 7, text: str = "well made", user: str = USER) -> dict[str, Any]:
    composed: dict[str, Any] = await client.call("compose_review", user, "compose", TITLE, stars, text)
    return composed


def test_a_review_is_stored_listed_and_rated() -> None:
    async def tried(client: EmbeddedClient) -> None:
        composed = await compose(client, 7, "  well made\n")
        review = {"user_id": 2, "text": "well made", "rating": 7, **composed}
        assert await client.call("review_storage", (1, composed["review_id"]), "read") == review
        shown = await client.call("page", TITLE, "read_movie")
        assert shown["info"]["title"] == TITLE
        assert (shown["rating"], shown["reviews"]) == ({"count": 1, "total": 7}, [review])
        assert await client.call("page", USER, "read_user") == [review]
        assert await client.call("page", username(0), "read_user") == []

    on(tried)


def test_every_review_has_an_id_of_its_own() -> None:
    async def tried(client: EmbeddedClient) -> None:
        composed = await asyncio.gather(*(compose(client) for _ in range(20)))
        assert len({review["review_id"] for review in composed}) == 20

    on(tried)


@pytest.mark.parametrize(
    ("user", "arguments", "aborted_by"),
    [
        ("nobody", (TITLE, 7, "well made"), "UnknownUser"),
        (USER, ("The Unwritten", 7, "well made"), "UnknownMovie"),
        (USER, (TITLE, 7, " \n"), "EmptyText"),
        (USER, (TITLE, 7, "x" * (TEXT_CHARS_MAX + 1)), "TextTooLong"),
        (USER, (TITLE, 11, "well made"), "InvalidRating"),
        (USER, (TITLE, -1, "well made"), "InvalidRating"),
    ],
)
def test_what_is_no_review_leaves_nothing(user: str, arguments: tuple[Any, ...], aborted_by: str) -> None:
    async def tried(client: EmbeddedClient) -> None:
        with pytest.raises(styx.TransactionAborted) as aborted:
            await client.call("compose_review", user, "compose", *arguments)
        assert aborted.value.type == aborted_by
        shown = await client.call("page", TITLE, "read_movie")
        assert (shown["rating"], shown["reviews"]) == ({"count": 0, "total": 0}, [])
        assert await client.call("page", USER, "read_user") == []

    on(tried)


def test_what_is_not_there_cannot_be_looked_at() -> None:
    async def tried(client: EmbeddedClient) -> None:
        for operator, key, function, aborted_by in (
            ("page", "The Unwritten", "read_movie", "UnknownMovie"),
            ("page", "nobody", "read_user", "UnknownUser"),
            ("review_storage", (1, "none"), "read", "UnknownReview"),
        ):
            with pytest.raises(styx.TransactionAborted) as aborted:
                await client.call(operator, key, function)
            assert aborted.value.type == aborted_by

    on(tried)


def test_a_list_goes_on_over_pages_in_the_order_of_writing() -> None:
    n_reviews = 2 * PAGE + LATEST + 3

    async def tried(client: EmbeddedClient) -> None:
        ids = [(await compose(client))["review_id"] for _ in range(n_reviews)]
        for lists, owner in (("movie_reviews", 1), ("user_reviews", 2)):
            head = await client.call(lists, (owner, HEAD), "listed")
            assert head["older"] == 2
            pages = [await client.call(lists, (owner, number), "listed") for number in (1, 2)] + [head]
            assert [len(page["reviews"]) for page in pages] == [PAGE, PAGE, LATEST + 3]
            assert [page["older"] for page in pages] == [0, 1, 2]
            assert [review_id for page in pages for _, review_id in page["reviews"]] == ids
        shown = await client.call("page", TITLE, "read_movie")
        assert [review["review_id"] for review in shown["reviews"]] == ids[: -LATEST - 1 : -1]

    on(tried)


def test_the_latest_reviews_are_in_the_head_however_many_there_are() -> None:
    async def tried(client: EmbeddedClient) -> None:
        for n_reviews in range(1, PAGE + LATEST + 2):
            await compose(client)
            assert len(await client.call("page", USER, "read_user")) == min(n_reviews, LATEST)

    on(tried)


@pytest.mark.parametrize("n_slots", [4, 7, 16])
def test_what_belongs_to_a_movie_is_on_its_slot(n_slots: int) -> None:
    for movie in range(20):
        slots = {
            movie_info.slot_of(movie, n_slots),
            rating.slot_of(movie, n_slots),
            movie_reviews.slot_of((movie, 5), n_slots),
            review_storage.slot_of((movie, "id"), n_slots),
        }
        assert len(slots) == 1


def test_calls_of_each_kind_of_request() -> None:
    async def tried(client: EmbeddedClient) -> None:
        await compose(client)
        assert set(calls.values()) == {1}
        assert calls.total() == 9
        for _ in range(PAGE + LATEST - 2):
            await compose(client)
        calls.clear()
        await compose(client)
        assert calls.total() == 9 + 2
        assert calls["movie_reviews.keep"] == calls["user_reviews.keep"] == 1
        for root, key, n_calls in (("read_movie", TITLE, 5 + LATEST), ("read_user", USER, 3 + LATEST)):
            calls.clear()
            await client.call("page", key, root)
            assert calls.total() == n_calls
            assert calls["review_storage.read"] == LATEST

    with counting(app) as calls:
        on(tried)
