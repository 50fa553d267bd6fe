"""The pairs of what reactions cost: each is timed, its two write the same; and one group at a rate, on an engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.micro import reaction_costs
from benchmarks.micro.reacting import ledger
from benchmarks.micro.reaction_costs import PAIRS, measure, one_group
from benchmarks.micro.rows import N_SLOTS, ROWS
from styx.state.table import NEWEST

HEARD = ["heard_at_once", "heard_later", "heard_in_order"]


def written(name: str, count: int) -> dict[Any, Any]:
    """What the ledger holds after so many requests of a row."""
    row = ROWS[name]
    engine = row.engine()
    assert row.answered(engine.run(row.routed(count))) == count
    tables = [engine.worker.slots[slot].state.table("ledger").at(NEWEST) for slot in range(N_SLOTS)]
    return {key: ledger.decode_state(data) for table in tables for key, data in table.items()}


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_is_timed_in_turns(name: str) -> None:
    costs = measure(PAIRS[name], 2, 3)
    assert len(costs.row) == len(costs.beside) == len(costs.ratios) == 2
    assert min(costs.ratios) > 0


@pytest.mark.parametrize("name", HEARD)
def test_who_hears_writes_what_who_is_called_writes(name: str) -> None:
    pair = PAIRS[name]
    assert written(pair.row, 30) == written(pair.beside, 30) == {key: [1, key] for key in range(30)}


def test_one_source_writes_once_for_each_event() -> None:
    assert written("heard_of_one", 30) == {0: [30, 29]}


def test_a_call_after_the_commit_writes_what_a_request_writes() -> None:
    assert written("give_later", 9) == {key: key for key in range(9)}
    assert written("two_requests", 18).keys() == set(range(9))


def test_one_group_at_a_rate(tmp_path: Path) -> None:
    told = one_group(500, 0.1, str(tmp_path))
    assert told.missing == 0
    assert min(told.handled, told.cpu, told.answered) > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sort"], "there is no pair 'sort'"),
        (["--runs", "0"], "--runs is 1 or more"),
        (["--group", "0"], "--group is 1 or more"),
    ],
)
def test_a_wrong_word_is_refused(
    words: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["reaction_costs", *words])
    with pytest.raises(SystemExit):
        reaction_costs.main()
    assert told in capsys.readouterr().err
