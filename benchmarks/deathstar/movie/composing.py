"""The service `compose_review`: a review's parts come together, it is stored, listed and rated, all of it or nothing.

`compose` waits for the parts, because the review is made of them. It does not wait for the writes, which go to four
services at once. If any service raises, the transaction ends and has no effect.
"""

from __future__ import annotations

import msgspec

from benchmarks.deathstar.movie.lists import HEAD, add, movie_reviews, user_reviews
from benchmarks.deathstar.movie.parts import (
    checked,
    movie_id,
    movie_number,
    new_id,
    text,
    unique_id,
    user,
    user_number,
)
from benchmarks.deathstar.movie.ratings import rate, rating
from benchmarks.deathstar.movie.storage import Review, review_storage, store
from styx import Context, Operator

compose_review = Operator("compose_review")
"""By username: the user who writes. Keeps nothing."""


class Composed(msgspec.Struct):
    """The key of a new review, and the time at which it was written, in milliseconds since 1970."""

    review_id: str
    movie_id: int
    timestamp: int


@compose_review.register
async def compose(ctx: Context, title: str, stars: int, written: str) -> Composed:
    """A review by this user of the movie `title`, with `stars` from 0 to 10 and the text `written`.

    Raises `UnknownUser`, `UnknownMovie`, `EmptyText`, `TextTooLong` and `InvalidRating`.
    """
    review = Review(
        review_id=await ctx.call(unique_id, new_id, ctx.key),
        user_id=await ctx.call(user, user_number, ctx.key),
        movie_id=await ctx.call(movie_id, movie_number, title),
        text=await ctx.call(text, checked, ctx.key, (written,)),
        rating=stars,
        timestamp=round(ctx.now().timestamp() * 1000),
    )
    key = (review.movie_id, review.review_id)
    ctx.call_async(rating, rate, review.movie_id, (stars,))
    ctx.call_async(review_storage, store, key, (review,))
    ctx.call_async(user_reviews, add, (review.user_id, HEAD), (key,))
    ctx.call_async(movie_reviews, add, (review.movie_id, HEAD), (key,))
    return Composed(review.review_id, review.movie_id, review.timestamp)
