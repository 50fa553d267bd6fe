"""The source of one client's requests: it draws users, movies, reviews and pages.

Movies are drawn by the Zipf distribution, the same ones to write of as to look at; users, ratings and texts uniformly.
Requests are made in blocks, so that `next` costs one look into a list most of the time.
"""

from __future__ import annotations

import random
import string
from typing import Final

from benchmarks.deathstar.movie.catalogue import title, unknown_title, username
from benchmarks.deathstar.movie.composing import compose, compose_review
from benchmarks.deathstar.movie.pages import page, read_movie, read_user
from benchmarks.deathstar.movie.parts import TEXT_CHARS_MAX
from benchmarks.deathstar.movie.ratings import RATING_MAX
from benchmarks.deathstar.movie.settings import COMPOSE, MIXES, READ_MOVIE, READ_USER, Settings
from benchmarks.deathstar.movie.witness import Witness
from benchmarks.driver.block_generator import BlockGenerator
from benchmarks.driver.mixture import Mixture
from benchmarks.driver.share import Share
from benchmarks.driver.workload import Planned
from benchmarks.driver.zipf import zipf_ranks

BLOCK: Final = 100
"""Requests that are made at once: a block takes less than a millisecond, for no request is sent meanwhile."""
SCRIPT_CHARS: Final = 65_536
"""Characters that all texts of a client are cut from, each from a place of its own."""


class MovieGenerator(BlockGenerator):
    """A `Generator` of reviews and of looks at pages."""

    def __init__(self, settings: Settings, rng: random.Random) -> None:
        super().__init__(Witness(settings))
        self._settings = settings
        self._rng = rng
        self._movie = zipf_ranks(settings.movies, settings.zipf, rng)
        self._kinds = Mixture(MIXES[settings.mix], rng)
        self._script = "".join(rng.choices(string.ascii_letters + string.digits, k=SCRIPT_CHARS + TEXT_CHARS_MAX + 1))
        self._unknown_titles = Share(settings.unknown_title, rng)
        self._long_texts = Share(settings.long_text, rng)

    def next_block(self) -> list[Planned]:
        """See `BlockGenerator.next_block`."""
        kinds = self._kinds.next_block(BLOCK)
        reviews = self._reviews(kinds.count(COMPOSE))
        reads = {READ_MOVIE: self._read_movie, READ_USER: self._read_user}
        return [reviews.pop() if kind == COMPOSE else reads[kind]() for kind in kinds]

    def _reviews(self, count: int) -> list[Planned]:
        unknown_titles, long_texts = self._unknown_titles.next_block(count), self._long_texts.next_block(count)
        return [self._compose(*refused) for refused in zip(unknown_titles, long_texts, strict=True)]

    def _compose(self, is_of_no_movie: bool, is_too_long: bool) -> Planned:
        movie, stars = self._movie(), int(self._rng.random() * (RATING_MAX + 1))
        name = unknown_title(movie) if is_of_no_movie else title(movie)
        n_chars = TEXT_CHARS_MAX + 1 if is_too_long else self._settings.text_chars
        begin = int(self._rng.random() * SCRIPT_CHARS)
        written = self._script[begin : begin + n_chars]
        return Planned(COMPOSE, compose_review, self._user(), compose.__name__, (name, stars, written))

    def _read_movie(self) -> Planned:
        return Planned(READ_MOVIE, page, title(self._movie()), read_movie.__name__, ())

    def _read_user(self) -> Planned:
        return Planned(READ_USER, page, self._user(), read_user.__name__, ())

    def _user(self) -> str:
        return username(int(self._rng.random() * self._settings.users))
