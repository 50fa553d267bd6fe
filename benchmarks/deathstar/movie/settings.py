"""The settings of a movie workload: values, defaults and checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.deathstar.movie.parts import TEXT_CHARS_MAX
from benchmarks.driver.settings import require, require_shares, setting, share
from benchmarks.driver.zipf import EXPONENT_MAX

COMPOSE: Final = "compose"
READ_MOVIE: Final = "read-movie"
READ_USER: Final = "read-user"

MIXES: Final[Mapping[str, Mapping[str, float]]] = {
    COMPOSE: {COMPOSE: 1.0},
    READ_MOVIE: {READ_MOVIE: 1.0},
    READ_USER: {READ_USER: 1.0},
    "mixed": {COMPOSE: 0.2, READ_MOVIE: 0.6, READ_USER: 0.2},
}
"""The share of each kind of request in each mix."""


@dataclass(frozen=True)
class Settings:
    """The options of a workload; raises `ConfigurationError` for what cannot be."""

    users: int = setting(1_000, "number of users (default %(default)s)")
    movies: int = setting(1_000, "number of movies (default %(default)s)")
    mix: str = setting(
        COMPOSE,
        "which requests: of one kind only, or mixed, which is "
        + ", ".join(f"{each:.0%} {kind}".replace("%", "%%") for kind, each in MIXES["mixed"].items())
        + " (default %(default)s)",
        choices=MIXES,
    )
    zipf: float = setting(
        0.0,
        f"the movies' popularity, 0 for uniform, up to {EXPONENT_MAX} (default %(default)s); users are uniform",
        metavar="EXPONENT",
    )
    text_chars: int = setting(256, "length of a review's text (default %(default)s)")
    unknown_title: float = share(0.0, "of the reviews: those of no movie, which abort (default %(default)s)")
    long_text: float = share(0.0, "of the reviews: those with too long a text, which abort (default %(default)s)")

    def __post_init__(self) -> None:
        require(self.users >= 1, f"somebody has to write: there must be at least 1 user, got {self.users}")
        require(self.movies >= 1, f"there must be at least 1 movie to write of, got {self.movies}")
        require(self.mix in MIXES, f"the mix is one of {', '.join(MIXES)}; got {self.mix}")
        require(0 <= self.zipf <= EXPONENT_MAX, f"the Zipf exponent is from 0 to {EXPONENT_MAX}, got {self.zipf}")
        require(
            1 <= self.text_chars <= TEXT_CHARS_MAX,
            f"a text has from 1 to {TEXT_CHARS_MAX} characters, got {self.text_chars}",
        )
        require_shares(self, "0.01 for 1 %", "unknown_title", "long_text")
