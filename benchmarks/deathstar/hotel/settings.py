"""What a hotel workload is made with: the values, their defaults, and what is refused. Never draws or sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.driver.zipf import EXPONENT_MAX
from styx.errors import ConfigurationError

SEARCH: Final = "search"
RECOMMEND: Final = "recommend"
LOGIN: Final = "login"
RESERVE: Final = "reserve"
KINDS: Final = (SEARCH, RECOMMEND, LOGIN, RESERVE)

STANDARD: Final = "standard"
RESERVE_HEAVY: Final = "reserve-heavy"
MIXES: Final[dict[str, dict[str, float]]] = {
    STANDARD: {SEARCH: 0.6, RECOMMEND: 0.39, LOGIN: 0.005, RESERVE: 0.005},
    RESERVE_HEAVY: {SEARCH: 0.2, RECOMMEND: 0.15, LOGIN: 0.05, RESERVE: 0.6},
    **{kind: {kind: 1.0} for kind in KINDS},
}
"""The shares of each kind of request: DeathStarBench's, one in which many reservations find nothing left, and each kind
by itself.
"""
CAPACITY: Final = 200
"""Rooms of a hotel and seats of a flight."""
ROOMS_WHEN_HEAVY: Final = 10
"""Of a hotel, for the mix `reserve-heavy`."""
SEATS_WHEN_HEAVY: Final = 6
"""Of a flight, for the mix `reserve-heavy`."""


@dataclass(frozen=True)
class Settings:
    """The options of a workload; raises `ConfigurationError` for what cannot be.

    Each of `hotels` has `rooms` rooms, and each of `flights` has `seats` seats every day; None for what goes with the
    mix. A city has `hotels_per_city` hotels. Requests are about `places` places in the cities. `zipf` is the exponent
    of the popularity of hotels and flights, 0 for uniform. `wrong_password` is the share of logins and reservations
    that come with one. The audit reads what the run has touched, and `audit_sample` more entities of each kind.
    """

    mix: str = STANDARD
    hotels: int = 100
    hotels_per_city: int = 10
    rooms: int | None = None
    flights: int = 50
    seats: int | None = None
    users: int = 500
    places: int = 1_000
    zipf: float = 0.0
    wrong_password: float = 0.05
    audit_sample: int = 1_000

    def __post_init__(self) -> None:
        _require(self.mix in MIXES, f"the mix is one of {', '.join(MIXES)}; got {self.mix!r}")
        for name in ("hotels", "hotels_per_city", "rooms", "flights", "seats", "users", "places"):
            number = getattr(self, name)
            _require(number is None or number >= 1, f"--{name.replace('_', '-')} is 1 or more, got {number}")
        # Written so that a NaN is refused.
        _require(0 <= self.zipf <= EXPONENT_MAX, f"the Zipf exponent is from 0 to {EXPONENT_MAX}, got {self.zipf}")
        _require(
            0 <= self.wrong_password <= 1,
            f"the share --wrong-password is from 0 to 1, such as 0.05 for 5 %; got {self.wrong_password}",
        )
        _require(self.audit_sample >= 0, f"the audit's sample is 0 entities or more, got {self.audit_sample}")

    @property
    def cities(self) -> int:
        """As many as it takes; the last hotels of some are missing if the numbers do not fit."""
        return -(-self.hotels // self.hotels_per_city)

    @property
    def capacity(self) -> tuple[int, int]:
        """Rooms of each hotel, and seats of each flight."""
        heavy = self.mix == RESERVE_HEAVY
        rooms, seats = (ROOMS_WHEN_HEAVY, SEATS_WHEN_HEAVY) if heavy else (CAPACITY, CAPACITY)
        return rooms if self.rooms is None else self.rooms, seats if self.seats is None else self.seats


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ConfigurationError(message)
