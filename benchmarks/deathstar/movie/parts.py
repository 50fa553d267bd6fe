"""The services that give a review its parts: unique id, user, movie id and text. None of them writes anything.

Their results depend only on the request and on state that never changes. So a transaction that is run again, because
others wrote to the same movie, gets the same parts.
"""

from __future__ import annotations

from typing import Final

from styx import Context, Operator

TEXT_CHARS_MAX: Final = 2_000
"""The longest text of a review."""

unique_id = Operator("unique_id")
"""The key is the name of the user who needs an id. No state."""
user = Operator("user", state_type=int)
"""By username: the user's number."""
movie_id = Operator("movie_id", state_type=int)
"""By title: the movie's number."""
text = Operator("text")
"""The key is the name of the user who wrote the text. No state."""


class UnknownUser(Exception):
    """No user has this name."""


class UnknownMovie(Exception):
    """No movie has this title."""


class EmptyText(Exception):
    """The text has nothing but blanks."""


class TextTooLong(Exception):
    """The text has more than `TEXT_CHARS_MAX` characters."""


@unique_id.register
async def new_id(ctx: Context) -> str:
    """An id that nothing else has."""
    return str(ctx.uuid())


@user.register
async def user_number(ctx: Context) -> int:
    """The number of the user of this name; raises `UnknownUser`."""
    number: int | None = await ctx.get()
    if number is None:
        raise UnknownUser(f"there is no user {ctx.key}")
    return number


@movie_id.register
async def movie_number(ctx: Context) -> int:
    """The number of the movie of this title; raises `UnknownMovie`."""
    number: int | None = await ctx.get()
    if number is None:
        raise UnknownMovie(f"there is no movie {ctx.key}")
    return number


@text.register
async def checked(ctx: Context, written: str) -> str:
    """The text without blanks around it; raises `EmptyText` and `TextTooLong`."""
    stripped = written.strip()
    if not stripped:
        raise EmptyText("a review needs a text")
    if len(stripped) > TEXT_CHARS_MAX:
        raise TextTooLong(f"a review has at most {TEXT_CHARS_MAX} characters, this one has {len(stripped)}")
    return stripped
