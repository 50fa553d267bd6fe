"""The requests are of the kinds, the popularity and the shares that were asked for."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from benchmarks.deathstar.movie.catalogue import info, title, username
from benchmarks.deathstar.movie.parts import TEXT_CHARS_MAX
from benchmarks.deathstar.movie.settings import Settings
from benchmarks.deathstar.movie.workload import Movie
from benchmarks.driver.workload import Planned
from styx import ConfigurationError

COUNT = 2_000


def planned(client: int = 0, clients: int = 1, seed: int = 1, **options: Any) -> list[Planned]:
    generator = Movie(Settings(**options)).generator(client, clients, seed)
    return [generator.next() for _ in range(COUNT)]


def test_without_options_all_requests_compose() -> None:
    users, movies = {username(n) for n in range(1000)}, {title(n) for n in range(1000)}
    for request in planned():
        name, stars, text = request.arguments
        assert (request.kind, request.operator.name, request.function) == ("compose", "compose_review", "compose")
        assert request.key in users
        assert name in movies
        assert 0 <= stars <= 10
        assert len(text) == 256


@pytest.mark.parametrize("kind", ["compose", "read-movie", "read-user"])
def test_a_kind_can_be_alone(kind: str) -> None:
    assert {request.kind for request in planned(mix=kind)} == {kind}


def test_the_mixture_is_exact() -> None:
    kinds = Counter(request.kind for request in planned(mix="mixed"))
    assert kinds == {"compose": COUNT // 5, "read-movie": COUNT * 3 // 5, "read-user": COUNT // 5}


@pytest.mark.parametrize("mix", ["compose", "mixed"])
def test_shares_of_bad_requests_are_exact_and_drawn_apart(mix: str) -> None:
    reviews = [request for request in planned(mix=mix, unknown_title=0.1, long_text=0.2) if request.kind == "compose"]
    movies = {title(n) for n in range(1000)}
    of_no_movie = {at for at, request in enumerate(reviews) if request.arguments[0] not in movies}
    too_long = {at for at, request in enumerate(reviews) if len(request.arguments[2]) > TEXT_CHARS_MAX}
    assert len(of_no_movie) == len(reviews) // 10
    assert len(too_long) == len(reviews) // 5
    assert 0 < len(of_no_movie & too_long) < len(of_no_movie)


def test_popular_movies_are_written_of_and_looked_at_more() -> None:
    for mix in ("compose", "read-movie"):
        movies = Counter(
            request.arguments[0] if mix == "compose" else request.key for request in planned(mix=mix, zipf=0.99)
        )
        assert movies.most_common(1)[0][0] == title(0)
        assert movies[title(0)] > 5 * movies.total() / 1000


def test_the_same_client_draws_the_same_and_another_one_does_not() -> None:
    same, again = ([request[2:] for request in planned(mix="mixed")] for _ in range(2))
    assert same == again
    for other in (planned(client=1, clients=2, mix="mixed"), planned(seed=2, mix="mixed")):
        assert [request[2:] for request in other] != same


def test_names_are_names_of_one_only() -> None:
    assert len({title(number) for number in range(5_000)}) == 5_000
    assert info(7).title == title(7)
    loadings = {loading.operator.name: loading for loading in Movie(Settings(users=7, movies=5)).initial()}
    assert {name: loading.size for name, loading in loadings.items()} == {
        "user": 7,
        "movie_id": 5,
        "movie_info": 5,
        "rating": 5,
        "movie_reviews": 5,
        "user_reviews": 7,
    }
    for loading in loadings.values():
        assert len({key for key, _ in loading.pairs}) == loading.size


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"users": 0}, "at least 1 user"),
        ({"movies": 0}, "at least 1 movie"),
        ({"mix": "all"}, "compose, read-movie, read-user, mixed"),
        ({"zipf": 1.0}, "from 0 to 0.999"),
        ({"zipf": float("nan")}, "from 0 to 0.999"),
        ({"text_chars": 0}, "from 1 to 2000"),
        ({"text_chars": 2001}, "from 1 to 2000"),
        ({"unknown_title": 1.5}, "--unknown-title is from 0 to 1"),
        ({"long_text": -1}, "--long-text is from 0 to 1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Settings(**options)
