"""The settings of a hotel workload: values, defaults and checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.driver.settings import require, require_shares, setting, share
from benchmarks.driver.zipf import EXPONENT_MAX

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
"""The rooms of a hotel in the mix `reserve-heavy`."""
SEATS_WHEN_HEAVY: Final = 6
"""The seats of a flight in the mix `reserve-heavy`."""


@dataclass(frozen=True)
class Settings:
    """The options of a workload; raises `ConfigurationError` for what cannot be. `rooms` and `seats` None are what goes
    with the mix.
    """

    mix: str = setting(
        STANDARD,
        f"the shares of the kinds of request: DeathStarBench's ({STANDARD}), 60 %% reservations many of which fail "
        f"({RESERVE_HEAVY}), or one kind alone (default {STANDARD})",
        choices=MIXES,
    )
    hotels: int = setting(100, "number of hotels (default %(default)s)")
    hotels_per_city: int = setting(10, "of them within 8 km of a city's middle (default %(default)s)")
    rooms: int | None = setting(
        None, f"of each hotel (default {CAPACITY}, or {ROOMS_WHEN_HEAVY} with --mix {RESERVE_HEAVY})"
    )
    flights: int = setting(50, "number of flights, each of which goes every day (default %(default)s)")
    seats: int | None = setting(
        None, f"of each flight on a day (default {CAPACITY}, or {SEATS_WHEN_HEAVY} with --mix {RESERVE_HEAVY})"
    )
    users: int = setting(500, "number of users (default %(default)s)")
    places: int = setting(1_000, "in the cities, that searches and recommendations are about (default %(default)s)")
    audit_sample: int = setting(
        1_000, "entities of each kind that the audit reads beside those that requests have named (default %(default)s)"
    )
    zipf: float = setting(
        0.0,
        "the popularity of hotels and flights with those who reserve, 0 for uniform, up to "
        f"{EXPONENT_MAX} (default %(default)s)",
        metavar="EXPONENT",
    )
    wrong_password: float = share(
        0.05, "of the logins and reservations: those with a wrong password (default %(default)s)"
    )

    def __post_init__(self) -> None:
        require(self.mix in MIXES, f"the mix is one of {', '.join(MIXES)}; got {self.mix!r}")
        for name in ("hotels", "hotels_per_city", "rooms", "flights", "seats", "users", "places"):
            number = getattr(self, name)
            require(number is None or number >= 1, f"--{name.replace('_', '-')} is 1 or more, got {number}")
        require(0 <= self.zipf <= EXPONENT_MAX, f"the Zipf exponent is from 0 to {EXPONENT_MAX}, got {self.zipf}")
        require_shares(self, "0.05 for 5 %", "wrong_password")
        require(self.audit_sample >= 0, f"the audit's sample is 0 entities or more, got {self.audit_sample}")

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
