"""Stays: the nights between the day on which a guest comes and the day on which the guest leaves."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

NIGHTS_MAX: Final = 30
"""The most nights of one stay."""


class BadStay(Exception):
    """The guest would leave before the first night is over, or stay for too long."""


def nights_of(in_date: date, out_date: date) -> list[date]:
    """Each night of the stay, as the day on which it begins; raises `BadStay`."""
    nights = (out_date - in_date).days
    if not 1 <= nights <= NIGHTS_MAX:
        raise BadStay(f"from {in_date} to {out_date} it is {nights} nights; a stay has from 1 to {NIGHTS_MAX}")
    return [in_date + timedelta(days=number) for number in range(nights)]
