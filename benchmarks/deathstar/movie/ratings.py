"""The service `rating`: how many ratings each movie has got and their sum, so that an average costs one read.

It never looks at the reviews.
"""

from __future__ import annotations

from typing import Final

import msgspec

from styx import Context, Operator

RATING_MAX: Final = 10
"""The best rating; 0 is the worst."""


class Rating(msgspec.Struct):
    """All ratings that a movie has got: how many, and their sum."""

    count: int = 0
    total: int = 0


rating = Operator("rating", key_type=int, state_type=Rating)
"""By the movie's number."""


class InvalidRating(Exception):
    """A rating is from 0 to `RATING_MAX`."""


@rating.register
async def rate(ctx: Context, stars: int) -> None:
    """Adds a rating to this movie's; raises `InvalidRating`."""
    if not 0 <= stars <= RATING_MAX:
        raise InvalidRating(f"a rating is from 0 to {RATING_MAX}, not {stars}")
    ratings: Rating = await ctx.get(Rating())
    ratings.count += 1
    ratings.total += stars
    await ctx.put(ratings)


@rating.register
async def all_ratings(ctx: Context) -> Rating:
    """This movie's ratings so far."""
    ratings: Rating = await ctx.get(Rating())
    return ratings
