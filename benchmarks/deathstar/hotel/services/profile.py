"""The profiles of the hotels. An entity is one hotel's profile; requests only read it."""

from __future__ import annotations

import msgspec

from styx import Context, Operator


class NoProfile(Exception):
    """This hotel has no profile."""


class Profile(msgspec.Struct):
    """`rating` in tenths of a star, of guests."""

    name: str
    phone: str
    address: str
    description: str
    rating: int


profile = Operator("profile", key_type=int, state_type=Profile)


@profile.register
async def read(ctx: Context) -> Profile:
    """The whole profile."""
    found: Profile | None = await ctx.get()
    if found is None:
        raise NoProfile(f"hotel {ctx.key} has no profile")
    return found
