"""The rows of the micro-benchmarks: each runs, its figures are printed, and a name that is none is refused."""

from __future__ import annotations

import sys

import pytest

from benchmarks.micro import __main__ as command
from benchmarks.micro.rows import DEFAULT_ROWS, ROWS
from benchmarks.micro.timing import time_row
from benchmarks.reference.transfers import encoded, transfers


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_the_same_each_time_and_runs(name: str) -> None:
    row = ROWS[name]
    assert row.routed(10) == row.routed(10)
    assert row.routed(20)[:10] == row.routed(10)
    seconds, _, given = time_row(row, 20)
    assert seconds > 0
    assert row.answered(given) == 20


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.keys])
def test_the_bare_loop_gets_the_requests_of_the_engine(name: str) -> None:
    row = ROWS[name]
    assert [data for _, data in row.routed(10)] == encoded(transfers(10, row.keys, seed=7))


def test_a_row_can_keep_versions() -> None:
    engine = ROWS["uniform_kept"].engine()
    engine.run(ROWS["uniform_kept"].routed(20))
    assert engine.worker.generation_data.versions.n_images > 20
    assert ROWS["uniform"].engine().worker.generation_data.versions.oldest is None


def test_rows_are_chosen_by_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["micro", "hot", "number_as_key", "--transactions", "20", "--runs", "1"]
    monkeypatch.setattr(sys, "argv", words)
    command.main()
    told = capsys.readouterr().out.splitlines()
    assert told[1].startswith("100 hot keys: bare loop ")
    assert told[2].startswith("a number travels, the key of a call: engine ")


def test_requests_can_arrive_a_few_at_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["micro", "number_as_key", "--transactions", "6", "--runs", "1", "--at-once"]
    monkeypatch.setattr(sys, "argv", [*words, "1"])
    command.main()
    assert "(6 epochs, 100% in phase 1)" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [*words, "0"])
    with pytest.raises(SystemExit):
        command.main()
    assert "it is 1 or more, got 0" in capsys.readouterr().err


def test_a_row_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["micro", "cold"])
    with pytest.raises(SystemExit):
        command.main()
    assert "there is no row 'cold'; there are uniform, hot" in capsys.readouterr().err
    assert set(DEFAULT_ROWS) <= ROWS.keys()
