"""Numbers of options: what is taken and what is refused."""

from __future__ import annotations

import pytest

from benchmarks.experiments.numbers import NUMBERS_MAX, numbers_of, workers_of, workers_shown
from styx.errors import ConfigurationError


def test_they_are_sorted_and_each_is_there_once() -> None:
    assert numbers_of("--shares", "1, 0.5,0,1", 0, 1) == [0, 0.5, 1]
    assert workers_of("8,2") == [2, 8]


@pytest.mark.parametrize("text", ["", "1,", "a", "2", "-1", "nan", ",".join(["0"] * 2) + ",x"])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--shares"):
        numbers_of("--shares", text, 0, 1)


def test_not_too_many() -> None:
    with pytest.raises(ConfigurationError, match="at most"):
        numbers_of("--shares", ",".join(str(number) for number in range(NUMBERS_MAX + 1)), 0, 100)


def test_half_a_worker() -> None:
    with pytest.raises(ConfigurationError, match="whole numbers"):
        workers_of("1.5")


def test_names() -> None:
    assert (workers_shown(1), workers_shown(2)) == ("1 worker", "2 workers")
