"""The source of one client's requests: it draws kind, place, user and nights.

Dates are drawn as in DeathStarBench: a search is for any nights of the season, a reservation for one to five of them.
Requests are made in blocks, so that `next` costs one look into a list most of the time.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from benchmarks.deathstar.hotel.data import ARRIVAL_DAYS, FIRST_DAY, WRONG_PASSWORD, DataSet, user_name, user_password
from benchmarks.deathstar.hotel.services.geography import Cell, Place, cell_of
from benchmarks.deathstar.hotel.services.recommendation import recommendation
from benchmarks.deathstar.hotel.services.search import search
from benchmarks.deathstar.hotel.services.user import user
from benchmarks.deathstar.hotel.settings import LOGIN, MIXES, RECOMMEND, RESERVE, SEARCH, Settings
from benchmarks.deathstar.hotel.witness import Witness
from benchmarks.driver.block_generator import BlockGenerator
from benchmarks.driver.mixture import Mixture
from benchmarks.driver.share import Share
from benchmarks.driver.workload import Planned
from benchmarks.driver.zipf import zipf_ranks

BLOCK: Final = 100
"""Requests that are made at once: a block takes less than a millisecond, for no request is sent meanwhile."""
NIGHTS_RESERVED_MAX: Final = 5
CRITERIA: Final = ("distance", "rating", "price")
DAYS: Final = [(FIRST_DAY + timedelta(days=number)).isoformat() for number in range(ARRIVAL_DAYS + NIGHTS_RESERVED_MAX)]


class HotelGenerator(BlockGenerator):
    """A `Generator` of all four kinds of request; `data` must be that of the settings."""

    def __init__(self, settings: Settings, data: DataSet, rng: random.Random) -> None:
        super().__init__(Witness(data))
        self._uniform = rng.random
        self._kinds = Mixture(MIXES[settings.mix], rng)
        self._wrong = Share(settings.wrong_password, rng)
        self._wrong_block: list[bool] = []
        self._places: list[tuple[Place, Cell]] = [(place, cell_of(place)) for place in data.places]
        self._users = settings.users
        self._hotel = zipf_ranks(settings.hotels, settings.zipf, rng)
        self._flight = zipf_ranks(settings.flights, settings.zipf, rng)
        self._make: dict[str, Callable[[], Planned]] = {
            SEARCH: self._search,
            RECOMMEND: self._recommend,
            LOGIN: self._login,
            RESERVE: self._reserve,
        }

    def next_block(self) -> list[Planned]:
        """See `BlockGenerator.next_block`."""
        return [self._make[kind]() for kind in self._kinds.next_block(BLOCK)]

    def _below(self, bound: int) -> int:
        return int(self._uniform() * bound)

    def _search(self) -> Planned:
        place, cell = self._places[self._below(len(self._places))]
        arrival = self._below(ARRIVAL_DAYS)
        departure = arrival + 1 + self._below(ARRIVAL_DAYS - arrival)
        return Planned(SEARCH, search, cell, "nearby", (place, DAYS[arrival], DAYS[departure]))

    def _recommend(self) -> Planned:
        place, cell = self._places[self._below(len(self._places))]
        return Planned(RECOMMEND, recommendation, cell, "recommend", (place, CRITERIA[self._below(len(CRITERIA))]))

    def _login(self) -> Planned:
        name, password = self._credentials()
        return Planned(LOGIN, user, name, "login", (password,))

    def _reserve(self) -> Planned:
        name, password = self._credentials()
        arrival = self._below(ARRIVAL_DAYS)
        departure = arrival + 1 + self._below(NIGHTS_RESERVED_MAX)
        arguments = (password, self._hotel(), DAYS[arrival], DAYS[departure], 1 + self._flight())
        return Planned(RESERVE, user, name, "reserve", arguments)

    def _credentials(self) -> tuple[str, str]:
        if not self._wrong_block:
            self._wrong_block = self._wrong.next_block(BLOCK)
        number = self._below(self._users)
        return user_name(number), WRONG_PASSWORD if self._wrong_block.pop() else user_password(number)
