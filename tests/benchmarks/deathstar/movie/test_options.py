"""The command line says what the workload is."""

from __future__ import annotations

import argparse

from benchmarks.deathstar.movie.options import add_options, make_workload
from benchmarks.deathstar.movie.settings import Settings
from benchmarks.deathstar.movie.workload import Movie
from styx.cli.app_target import load_app


def made_of(*arguments: str) -> Movie:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return make_workload(parser.parse_args(arguments))


def test_without_options_it_is_that_of_the_paper() -> None:
    workload = made_of()
    assert workload.settings == vars(Settings())
    assert (workload.settings["users"], workload.settings["movies"], workload.settings["mix"]) == (
        1000,
        1000,
        "compose",
    )
    assert load_app(workload.app_target) is workload.app


def test_every_option_arrives() -> None:
    text = "--users 5 --movies 6 --mix mixed --zipf 0.9 --text-chars 99 --unknown-title 0.1 --long-text 0.2"
    assert made_of(*text.split()).settings == vars(Settings(5, 6, "mixed", 0.9, 99, 0.1, 0.2))


def test_the_help_says_what_is_mixed() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser)
    assert "mixed, which is 20% compose, 60% read-movie, 20% read-user" in " ".join(parser.format_help().split())
