"""The soak command runs every seed once, over several processes, and says what they did."""

from __future__ import annotations

import pytest

from proof.soak import describe, main, run_kinds, run_seeds


@pytest.mark.slow
def test_processes_share_the_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--first", "3", "--seeds", "21", "--jobs", "2"]) == 0
    told = capsys.readouterr().out
    assert describe(run_seeds(range(3, 24))) in told


@pytest.mark.slow
def test_all_kinds_are_replayed_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--first", "3", "--seeds", "5", "--jobs", "1", "--kinds"]) == 0
    told = capsys.readouterr().out
    assert describe(run_kinds(range(3, 8))) in told
    assert "5 logs replayed on other numbers of workers" in told
