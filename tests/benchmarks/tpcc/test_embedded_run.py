"""The command from end to end, on an engine in this process: it loads, runs, audits, and its exit status tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.driver.command import main
from benchmarks.driver.result import Result, read
from benchmarks.driver.target import Outcome
from benchmarks.tpcc.mixes import MIXES
from benchmarks.tpcc.options import add_options, make_workload

pytestmark = pytest.mark.slow

SMALL = "--warehouses 2 --items 40 --customers 30"
BRIEF = "--rate 100 --warm-up 0.1 --duration 1 --quiet"


def run(command: str) -> int:
    return main("tpcc", add_options, make_workload, command.split())


def test_a_run_answers_all_five_transactions_and_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out, witness = (tmp_path / name for name in ("data", "result.json", "witness"))
    options = f"{SMALL} --rollback 0.1 --remote-item 0.1 --data-dir {data}"
    assert run(f"run {BRIEF} {options} --out {out} --witness {witness}") == 0
    result = read(out)
    assert isinstance(result, Result)
    assert set(result.latency) == set(MIXES["standard"])
    assert set(result.outcomes) == {Outcome.COMMITTED, Outcome.ABORTED}
    assert set(result.errors) == {"aborted:ItemNotFound"}
    capsys.readouterr()
    assert run(f"audit {options} --witness {witness}") == 0


def test_what_is_loaded_is_taken_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"load {SMALL} --data-dir {tmp_path}") == 0
    assert "loaded 80 stock" in capsys.readouterr().err
    assert run(f"run {BRIEF} {SMALL} --data-dir {tmp_path} --loaded") == 0
    assert "loaded" not in capsys.readouterr().err


def test_what_cannot_be_is_refused_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run --full --items 5") == 2
    assert "leave --items and --customers out" in capsys.readouterr().err


def test_stock_that_is_not_taken_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"run {BRIEF} {SMALL} --lose warehouse.sell/stock=0.5") == 1
    shown = capsys.readouterr().out
    assert "LOST         on purpose, what warehouse.sell/stock wrote" in shown
    assert "stock" in " ".join(line for line in shown.splitlines() if line.startswith("VIOLATION"))
