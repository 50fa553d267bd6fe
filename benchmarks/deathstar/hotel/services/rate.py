"""The prices of the nights. An entity is the rate plan of one hotel."""

from __future__ import annotations

from datetime import date

import msgspec

from benchmarks.deathstar.hotel.services.stay import nights_of
from styx import Context, Operator


class NoRatePlan(Exception):
    """This hotel has no rate plan."""


class RatePlan(msgspec.Struct):
    """In cents, for the nights that begin on a Monday, a Tuesday, and so on."""

    nightly: list[int]

    def price(self, in_date: date, out_date: date) -> int:
        """The price of all nights; raises `BadStay`."""
        return sum(self.nightly[night.weekday()] for night in nights_of(in_date, out_date))


rate = Operator("rate", key_type=int, state_type=RatePlan)


@rate.register
async def price(ctx: Context, in_date: date, out_date: date) -> int:
    """The price of one room for the stay, in cents."""
    plan: RatePlan | None = await ctx.get()
    if plan is None:
        raise NoRatePlan(f"hotel {ctx.key} has no rate plan")
    return plan.price(in_date, out_date)
