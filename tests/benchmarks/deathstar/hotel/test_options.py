"""The command line says what the workload is."""

from __future__ import annotations

import argparse

import pytest

from benchmarks.deathstar.hotel.app import app
from benchmarks.deathstar.hotel.options import add_options, make_workload
from benchmarks.deathstar.hotel.settings import Settings
from benchmarks.deathstar.hotel.workload import HotelSite
from styx import ConfigurationError
from styx.cli.app_target import load_app


def made_of(text: str = "") -> HotelSite:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return make_workload(parser.parse_args(text.split()))


def test_without_options_it_is_that_of_deathstarbench() -> None:
    workload = made_of()
    assert workload.settings == vars(Settings())
    assert load_app(workload.app_target) is app is workload.app


def test_every_option_arrives() -> None:
    text = (
        "--mix reserve --hotels 11 --hotels-per-city 3 --rooms 2 --flights 5 --seats 6 --users 7 --places 8 --zipf 0.5 "
        "--wrong-password 0.3 --audit-sample 9"
    )
    assert made_of(text).settings == vars(Settings("reserve", 11, 3, 2, 5, 6, 7, 8, 9, 0.5, 0.3))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="--users is 1 or more"):
        made_of("--users 0")
    with pytest.raises(SystemExit):
        made_of("--mix everything")
