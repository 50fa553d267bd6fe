"""What a movie workload is made with: the values, their defaults, and what is refused. Never draws or sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.deathstar.movie.parts import TEXT_CHARS_MAX
from benchmarks.driver.zipf import EXPONENT_MAX
from styx.errors import ConfigurationError

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
    """The options of a workload; raises `ConfigurationError` for what cannot be.

    `mix` is one of `MIXES`. `zipf` is the exponent of the movies' popularity, 0 for uniform; users are uniform always.
    Texts have `text_chars` characters. `unknown_title` and `long_text` are the shares of the composed reviews that are
    of no movie, and that have too long a text; these abort.
    """

    users: int = 1_000
    movies: int = 1_000
    mix: str = COMPOSE
    zipf: float = 0.0
    text_chars: int = 256
    unknown_title: float = 0.0
    long_text: float = 0.0

    def __post_init__(self) -> None:
        _require(self.users >= 1, f"somebody has to write: there must be at least 1 user, got {self.users}")
        _require(self.movies >= 1, f"there must be at least 1 movie to write of, got {self.movies}")
        _require(self.mix in MIXES, f"the mix is one of {', '.join(MIXES)}; got {self.mix}")
        # Written so that a NaN is refused.
        _require(0 <= self.zipf <= EXPONENT_MAX, f"the Zipf exponent is from 0 to {EXPONENT_MAX}, got {self.zipf}")
        _require(
            1 <= self.text_chars <= TEXT_CHARS_MAX,
            f"a text has from 1 to {TEXT_CHARS_MAX} characters, got {self.text_chars}",
        )
        for name in ("unknown_title", "long_text"):
            share = getattr(self, name)
            _require(
                0 <= share <= 1,
                f"the share --{name.replace('_', '-')} is from 0 to 1, such as 0.01 for 1 %; got {share}",
            )


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ConfigurationError(message)
