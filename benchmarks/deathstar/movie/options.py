"""The options of the movie workload on the command line, and the workload that they make. Decides nothing else."""

from __future__ import annotations

import argparse

from benchmarks.deathstar.movie.settings import MIXES, Settings
from benchmarks.deathstar.movie.workload import Movie
from benchmarks.driver.zipf import EXPONENT_MAX


def add_options(parser: argparse.ArgumentParser) -> None:
    """The workload's own options, beside those of the driver."""
    default = Settings()
    group = parser.add_argument_group("movie", "Reviews of movies by users. A SHARE is from 0 to 1.")
    add = group.add_argument
    add("--users", type=int, default=default.users, metavar="N", help="number of users (default %(default)s)")
    add("--movies", type=int, default=default.movies, metavar="N", help="number of movies (default %(default)s)")
    add(
        "--mix",
        choices=tuple(MIXES),
        default=default.mix,
        help="which requests: of one kind only, or mixed, which is "
        + ", ".join(f"{share:.0%} {kind}".replace("%", "%%") for kind, share in MIXES["mixed"].items())
        + " (default %(default)s)",
    )
    add(
        "--zipf",
        type=float,
        default=default.zipf,
        metavar="EXPONENT",
        help=f"the movies' popularity, 0 for uniform, up to {EXPONENT_MAX} (default %(default)s); users are uniform",
    )
    add(
        "--text-chars",
        type=int,
        default=default.text_chars,
        metavar="N",
        help="length of a review's text (default %(default)s)",
    )
    add(
        "--unknown-title",
        type=float,
        default=default.unknown_title,
        metavar="SHARE",
        help="of the reviews: those of no movie, which abort (default %(default)s)",
    )
    add(
        "--long-text",
        type=float,
        default=default.long_text,
        metavar="SHARE",
        help="of the reviews: those with too long a text, which abort (default %(default)s)",
    )


def make_workload(options: argparse.Namespace) -> Movie:
    """The workload of parsed options; raises `ConfigurationError`."""
    return Movie(
        Settings(
            users=options.users,
            movies=options.movies,
            mix=options.mix,
            zipf=options.zipf,
            text_chars=options.text_chars,
            unknown_title=options.unknown_title,
            long_text=options.long_text,
        )
    )
