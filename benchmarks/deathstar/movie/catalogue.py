"""The data set: users, and movies with a title, a year and a plot, each made of its number alone.

So the clients, the loading and the audit agree on names without a table, and number 0 is the most popular movie.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from benchmarks.deathstar.movie.lists import HEAD, Page, movie_reviews, user_reviews
from benchmarks.deathstar.movie.pages import MovieInfo, movie_info
from benchmarks.deathstar.movie.parts import movie_id, user
from benchmarks.deathstar.movie.ratings import Rating, rating
from benchmarks.driver.workload import Loading

QUALITIES: Final = ("Silent", "Crimson", "Last", "Golden", "Broken", "Hidden", "Electric", "Endless", "Paper", "Lonely")
SUBJECTS: Final = (
    "River",
    "Garden",
    "Empire",
    "Stranger",
    "Station",
    "Promise",
    "Lantern",
    "Harbour",
    "Mirror",
    "Rival",
)
FIRST_YEAR: Final = 1920
YEARS: Final = 105


def username(number: int) -> str:
    """The name of the user of this number, from 0."""
    return f"username_{number}"


def title(number: int) -> str:
    """The title of the movie of this number, from 0; no two movies have the same. What comes late is a sequel."""
    sequel, rest = divmod(number, len(QUALITIES) * len(SUBJECTS))
    subject, quality = divmod(rest, len(QUALITIES))
    name = f"The {QUALITIES[quality]} {SUBJECTS[subject]}"
    return f"{name} {sequel + 1}" if sequel else name


def unknown_title(number: int) -> str:
    """The title of no movie, for any number of movies."""
    return f"{title(number)}: Never Released"


def info(number: int) -> MovieInfo:
    """The facts about the movie of this number."""
    hero, quest = SUBJECTS[number % len(SUBJECTS)], SUBJECTS[(number * 7 + 3) % len(SUBJECTS)]
    plot = f"A {hero.lower()} is not what it seems, and somebody has to bring the {quest.lower()} back in time."
    return MovieInfo(title(number), FIRST_YEAR + number * 37 % YEARS, plot)


def catalogue(users: int, movies: int) -> Iterable[Loading]:
    """All there is at the start: names and what they stand for.

    No review, no rating: lists and ratings are empty ones rather than none, so that those of an earlier run go.
    """
    yield Loading(user, users, ((username(number), number) for number in range(users)))
    yield Loading(movie_id, movies, ((title(number), number) for number in range(movies)))
    yield Loading(movie_info, movies, ((number, info(number)) for number in range(movies)))
    yield Loading(rating, movies, ((number, Rating()) for number in range(movies)))
    yield Loading(movie_reviews, movies, (((number, HEAD), Page([])) for number in range(movies)))
    yield Loading(user_reviews, users, (((number, HEAD), Page([])) for number in range(users)))
