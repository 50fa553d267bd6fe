"""The app: all services of the movie review. `styx dev benchmarks.deathstar.movie.app:app` serves it over HTTP."""

from __future__ import annotations

from benchmarks.deathstar.movie.composing import compose_review
from benchmarks.deathstar.movie.lists import movie_reviews, user_reviews
from benchmarks.deathstar.movie.pages import movie_info, page
from benchmarks.deathstar.movie.parts import movie_id, text, unique_id, user
from benchmarks.deathstar.movie.ratings import rating
from benchmarks.deathstar.movie.storage import review_storage
from styx import App

app = App(
    "movie",
    [
        compose_review,
        unique_id,
        user,
        movie_id,
        text,
        rating,
        review_storage,
        user_reviews,
        movie_reviews,
        movie_info,
        page,
    ],
)
