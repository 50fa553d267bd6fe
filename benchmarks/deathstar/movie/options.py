"""The options of the movie workload on the command line, and the workload that they make."""

from __future__ import annotations

import argparse

from benchmarks.deathstar.movie.settings import Settings
from benchmarks.deathstar.movie.workload import Movie
from benchmarks.driver.settings import add_options_of, options_of, settings_from


def add_options(parser: argparse.ArgumentParser) -> None:
    """The workload's own options, beside those of the driver."""
    group = parser.add_argument_group("movie", "Reviews of movies by users. A SHARE is from 0 to 1.")
    add_options_of(group, options_of(Settings))


def make_workload(options: argparse.Namespace) -> Movie:
    """The workload of parsed options; raises `ConfigurationError`."""
    return Movie(settings_from(Settings, options))
