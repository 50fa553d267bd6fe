"""The soak command runs every seed once, over several processes, and says what they did."""

from __future__ import annotations

import pytest

from proof.soak import describe, main, run_seeds


@pytest.mark.slow
def test_processes_share_the_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--first", "3", "--seeds", "21", "--jobs", "2"]) == 0
    told = capsys.readouterr().out
    assert describe(run_seeds(range(3, 24))) in told
