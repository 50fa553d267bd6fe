"""The whole command on an embedded engine: loads, runs, audits, writes a result."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from benchmarks.driver.command import FAILED, OK, main
from benchmarks.driver.result import Result, SearchResult, read
from benchmarks.driver.target import Outcome
from tests.benchmarks.driver.counting import add_options, make_workload

SHORT = ["--duration", "0.5", "--warm-up", "0.1", "--quiet"]


def command(*words: str) -> int:
    return main("counting", add_options, make_workload, words)


def test_a_run_counts_every_request_and_passes_its_audit(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    assert command("run", "--rate", "400", *SHORT, "--out", str(out)) == OK
    result = read(out)
    assert isinstance(result, Result)
    assert result.outcomes == {Outcome.COMMITTED: 180, Outcome.ABORTED: 20}
    assert result.calls == pytest.approx(1, abs=0.2)
    assert result.errors == {"aborted:Refused": 24}
    assert result.answered.count == 200
    assert result.audit is not None
    assert result.audit.violations == []
    assert result.duplicated is None
    assert result.roles["engine and client"].cpu_s > 0
    assert result.settings == {"forget": 0}


def test_an_engine_in_memory_writes_no_files_and_epochs_are_as_small_as_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_directory(**_: str) -> None:
        raise AssertionError("a directory was made")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", no_directory)
    out = tmp_path / "result.json"
    small = ["--in-memory", "--epoch-transactions", "3", "--concurrency", "40"]
    assert command("run", *small, *SHORT, "--out", str(out)) == OK
    result = read(out)
    assert isinstance(result, Result)
    counted = result.counters["engine and client"]
    answered = sum(value for name, value in counted.items() if name.startswith("styx_transactions_total"))
    assert 1 < answered / counted["styx_epochs_total"] <= 3
    assert (result.deployment["in memory"], result.deployment["epoch transactions"]) == (True, 3)


def test_an_audit_that_fails_fails_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("run", "--rate", "100", *SHORT, "--forget", "1") == FAILED
    assert "VIOLATION" in capsys.readouterr().out


def test_a_search_has_the_results_of_its_steps(tmp_path: Path) -> None:
    out = tmp_path / "search.json"
    words = ["--first-rate", "4", "--bound", "0.000001", "--duration", "0.3", "--warm-up", "0", "--quiet"]
    assert command("search", *words, "--out", str(out)) == OK
    result = read(out)
    assert isinstance(result, SearchResult)
    # No reply comes within a microsecond.
    assert result.rate == 0
    # Each fails twice before it counts, and a machine that is busy with other tests may repeat it.
    assert [*dict.fromkeys(step.rate for step in result.steps)] == [4, 2, 1]
    assert sum(not step.repeated for step in result.steps) == 6
    assert all(step.reasons for step in result.steps)
    assert result.audit is not None


def test_a_sweep_has_a_whole_window_at_each_rate(tmp_path: Path) -> None:
    out = tmp_path / "sweep.json"
    words = ["--first-rate", "20", "--factor", "4", "--finer", "1", "--bound", "0.000001", "--duration", "0.3"]
    assert command("sweep", *words, "--warm-up", "0", "--quiet", "--out", str(out)) == OK
    result = read(out)
    assert isinstance(result, SearchResult)
    # No reply comes within a microsecond, and no step is given up for that.
    steps = [step for step in result.steps if not step.repeated]
    assert [step.rate for step in steps] == [20, 5, 1.25]
    assert [step.result.sent for step in steps] == [6, 2, 1]
    assert all(not step.result.gave_up for step in result.steps)
    assert result.audit is not None


def test_data_that_stays_can_be_loaded_run_on_and_audited_apart(tmp_path: Path) -> None:
    place = ["--data-dir", str(tmp_path / "data")]
    witness = str(tmp_path / "witness")
    assert command("load", *place) == OK
    assert command("run", *place, *SHORT, "--rate", "100", "--loaded", "--no-audit", "--witness", witness) == OK
    assert command("audit", *place, "--witness", witness) == OK
    assert command("audit", *place) == FAILED
