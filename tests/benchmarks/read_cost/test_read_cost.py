"""The figures by hand, and the command in miniature on a real cluster."""

from __future__ import annotations

import pytest

from benchmarks.read_cost.__main__ import main
from benchmarks.read_cost.figures import Turn, cost_of

QUIET, BUSY = Turn(False, 1_000.0, 0.0, 0.5), Turn(True, 900.0, 10_000.0, 0.75)


def test_a_read_costs_what_is_beyond_the_transactions() -> None:
    cost = cost_of([QUIET, BUSY, BUSY, QUIET], workers=2)
    assert cost.rate == pytest.approx(0.9)
    assert cost.transaction_us == pytest.approx(500)
    assert cost.read_us == pytest.approx(30), "0.75 - 900 * 500 µs, by 10,000"
    assert cost.left == pytest.approx(0.85), "10,000 * 30 µs of 2 processors"


def test_a_pair_has_one_turn_of_each_kind() -> None:
    with pytest.raises(AssertionError, match="a pair has one of each"):
        cost_of([QUIET, QUIET], workers=2)


@pytest.mark.slow
def test_in_miniature(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--reads 100 --writes 50 --pairs 1 --window 3 --keys 200 --workers 1 --slots 4"
    assert main(words.split()) == 0
    _, without, with_them, told = capsys.readouterr().out.splitlines()
    assert "       0 reads/s" in without
    assert "reads p50" in with_them
    assert ", 0 refused" in with_them
    assert "µs of the workers' processor time and a read" in told
