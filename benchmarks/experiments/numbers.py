"""Options with numbers, shared by several experiments: their declarations and checks."""

from __future__ import annotations

import argparse
from typing import Final

from benchmarks.driver.plan import RATE_MAX
from styx.errors import ConfigurationError

NUMBERS_MAX: Final = 16
"""In one option: each of them costs steps."""
WORKERS_MAX: Final = 64
SECONDS_MAX: Final = 3600.0


def numbers_of(option: str, text: str, least: float, most: float) -> list[float]:
    """In ascending order, each once; raises `ConfigurationError`."""
    try:
        numbers = sorted({float(word) for word in text.split(",")})
    except ValueError:
        raise ConfigurationError(f"{option} {text}: these are numbers with commas in between, like 1,2") from None
    if len(numbers) > NUMBERS_MAX:
        raise ConfigurationError(f"{option}: {NUMBERS_MAX} numbers at most, got {len(numbers)}")
    for number in numbers:
        if not least <= number <= most:
            raise ConfigurationError(f"{option}: each is a number from {least:g} to {most:g}, got {number:g}")
    return numbers


def workers_of(text: str) -> list[int]:
    """Of `--workers`; raises `ConfigurationError`."""
    numbers = numbers_of("--workers", text, 1, WORKERS_MAX)
    if not all(number.is_integer() for number in numbers):
        raise ConfigurationError(f"--workers {text}: these are whole numbers")
    return [int(number) for number in numbers]


def add_rate_option(parser: argparse.ArgumentParser, otherwise: str) -> None:
    """`otherwise` says what 0 means."""
    parser.add_argument(
        "--rate", type=float, default=0.0, metavar="N", help=f"requests a second; 0 (default): {otherwise}"
    )


def rate_of(options: argparse.Namespace) -> float:
    """Of `--rate`, 0 if it was not given; raises `ConfigurationError`."""
    rate: float = options.rate
    if not 0 <= rate <= RATE_MAX:
        raise ConfigurationError(f"--rate is a number from 0 to {RATE_MAX:g}, got {rate:g}")
    return rate


def seconds_of(option: str, seconds: float, least: float) -> float:
    """A time that `option` gives; raises `ConfigurationError`."""
    if not least <= seconds <= SECONDS_MAX:
        raise ConfigurationError(f"{option} is a number of seconds from {least:g} to {SECONDS_MAX:g}, got {seconds:g}")
    return seconds


def workers_shown(workers: int) -> str:
    """As series and rows are called."""
    return f"{workers} worker{'s' * (workers > 1)}"
