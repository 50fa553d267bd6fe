"""The service `review_storage`: every review as a whole, once."""

from __future__ import annotations

import msgspec

from styx import Context, Operator

ReviewKey = tuple[int, str]
"""A review's key: the number of its movie, and its own unique id."""


class Review(msgspec.Struct):
    """A whole review. `rating` is from 0 to 10, `timestamp` in milliseconds since 1970."""

    review_id: str
    user_id: int
    movie_id: int
    text: str
    rating: int
    timestamp: int


def movie_of(key: ReviewKey) -> int:
    """The partition key: a movie's reviews are on the slot of the movie, where its page reads them."""
    return key[0]


review_storage = Operator("review_storage", key_type=tuple[int, str], state_type=Review, partition_key=movie_of)
"""By the review's key."""


class UnknownReview(Exception):
    """There is no review of this key."""


@review_storage.register
async def store(ctx: Context, review: Review) -> None:
    """Keeps the review under this key."""
    await ctx.put(review)


@review_storage.register
async def read(ctx: Context) -> Review:
    """The review of this key; raises `UnknownReview`."""
    review: Review | None = await ctx.get()
    if review is None:
        raise UnknownReview(f"there is no review {ctx.key}")
    return review
