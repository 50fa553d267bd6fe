"""The services `page` and `movie_info`: what people look at, a movie with its rating and its latest reviews, and a
user's latest reviews.

A page is one transaction, so the rating it shows is that of the same reviews as it lists.
"""

from __future__ import annotations

import msgspec

from benchmarks.deathstar.movie.lists import HEAD, LATEST, movie_reviews, newest, user_reviews
from benchmarks.deathstar.movie.parts import movie_id, movie_number, user, user_number
from benchmarks.deathstar.movie.ratings import Rating, all_ratings, rating
from benchmarks.deathstar.movie.storage import Review
from styx import Context, Operator


class MovieInfo(msgspec.Struct):
    """The facts about a movie, without ratings and reviews."""

    title: str
    year: int
    plot: str


class MoviePage(msgspec.Struct):
    """A movie, what it was rated, and its latest reviews, newest first."""

    info: MovieInfo
    rating: Rating
    reviews: list[Review]


page = Operator("page")
"""By title or username: what is shown of a movie or a user. Keeps nothing."""
movie_info = Operator("movie_info", key_type=int, state_type=MovieInfo)
"""By the movie's number."""


@page.register
async def read_movie(ctx: Context) -> MoviePage:
    """The page of the movie of this title; raises `UnknownMovie`."""
    number = await ctx.call(movie_id, movie_number, ctx.key)
    shown: MoviePage = await ctx.call(movie_info, movie_page, number)
    return shown


@page.register
async def read_user(ctx: Context) -> list[Review]:
    """The latest reviews of the user of this name, newest first; raises `UnknownUser`."""
    number = await ctx.call(user, user_number, ctx.key)
    written: list[Review] = await ctx.call(user_reviews, newest, (number, HEAD), (LATEST,))
    return written


@movie_info.register
async def movie_page(ctx: Context) -> MoviePage:
    """This movie's page, of what is all on the movie's slot."""
    return MoviePage(
        info=await ctx.get(),
        rating=await ctx.call(rating, all_ratings, ctx.key),
        reviews=await ctx.call(movie_reviews, newest, (ctx.key, HEAD), (LATEST,)),
    )
