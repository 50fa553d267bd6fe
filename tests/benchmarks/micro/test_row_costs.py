"""The pairs of what rows cost: each is timed, and its two do the same work."""

from __future__ import annotations

import sys

import pytest

from benchmarks.micro import row_costs
from benchmarks.micro.row_costs import PAIRS, measure
from benchmarks.micro.rows import ROWS


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_is_timed_in_turns(name: str) -> None:
    costs = measure(PAIRS[name]._replace(transactions=2), 2)
    assert len(costs.row) == len(costs.by_hand) == len(costs.ratios) == 2
    assert min(costs.ratios) > 0


@pytest.mark.parametrize("name", PAIRS)
def test_the_two_of_a_pair_do_the_same(name: str) -> None:
    row, by_hand = ROWS[PAIRS[name].row], ROWS[PAIRS[name].by_hand]
    arguments = [[(sent.key, sent.arguments) for sent in each.requests(3)] for each in (row, by_hand)]
    assert arguments[0] == arguments[1]


@pytest.mark.parametrize(("words", "told"), [(["sort"], "there is no pair 'sort'"), (["--runs", "0"], "1 or more")])
def test_a_wrong_word_is_refused(
    words: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["row_costs", *words])
    with pytest.raises(SystemExit):
        row_costs.main()
    assert told in capsys.readouterr().err
