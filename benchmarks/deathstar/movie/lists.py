"""The services `user_reviews` and `movie_reviews`: lists of reviews, in pages.

A list grows without limit, an entity may not, and each addition reads and writes a whole entity. So new reviews go to
page 0, the list's head. When the head is full, its older part becomes a new page, which is never written again. Page 1
is the oldest. So the latest reviews, which are read most, are in one page.
"""

from __future__ import annotations

from typing import Final

import msgspec

from benchmarks.deathstar.movie.storage import Review, ReviewKey, read, review_storage
from styx import Context, Operator

HEAD: Final = 0
"""The number of the page with the latest reviews."""
LATEST: Final = 10
"""The least number of latest reviews in the head, if the list has as many."""
PAGE: Final = 50
"""Reviews of every page but the head."""

PageKey = tuple[int, int]
"""The number of the user or movie whose list it is, and that of the page."""


class Page(msgspec.Struct):
    """A part of a list, oldest first; `older` is the number of the page before it, 0 if there is none."""

    reviews: list[ReviewKey]
    older: int = 0


def owner_of(key: PageKey) -> int:
    """The partition key: all pages of a list are on the slot of its user or movie."""
    return key[0]


user_reviews = Operator("user_reviews", key_type=tuple[int, int], state_type=Page, partition_key=owner_of)
"""By the user's number and the page's: which reviews the user has written."""
movie_reviews = Operator("movie_reviews", key_type=tuple[int, int], state_type=Page, partition_key=owner_of)
"""By the movie's number and the page's: which reviews the movie has got."""


@user_reviews.register
@movie_reviews.register
async def add(ctx: Context, review: ReviewKey) -> None:
    """Puts a review at the end of the list whose head this is."""
    head: Page = await ctx.get(Page([]))
    head.reviews.append(review)
    if len(head.reviews) == LATEST + PAGE:
        full = Page(head.reviews[:PAGE], head.older)
        head = Page(head.reviews[PAGE:], head.older + 1)
        owner, _ = ctx.key
        ctx.call_async(ctx.operator, keep, (owner, head.older), (full,))
    await ctx.put(head)


@user_reviews.register
@movie_reviews.register
async def keep(ctx: Context, full: Page) -> None:
    """Makes this page what was too much for the head."""
    await ctx.put(full)


@user_reviews.register
@movie_reviews.register
async def listed(ctx: Context) -> Page:
    """The reviews on this page, and the number of the next page."""
    page: Page = await ctx.get(Page([]))
    return page


@user_reviews.register
@movie_reviews.register
async def newest(ctx: Context, count: int) -> list[Review]:
    """The newest reviews of this page, `count` or as many as it has, newest first."""
    page: Page = await ctx.get(Page([]))
    return [await ctx.call(review_storage, read, key) for key in reversed(page.reviews[-count:])]
