"""The command on a cluster of real processes, one of which dies: each transfer is answered once, no money is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.driver.command import OK, main
from benchmarks.driver.result import Result, read
from benchmarks.driver.worker_death import KILLED, REPLACED
from benchmarks.ycsbt.options import add_options, make_workload

pytestmark = pytest.mark.slow


def test_a_worker_dies_and_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "result.json"
    words = "run --on cluster --workers 2 --slots 4 --keys 200 --rate 200 --warm-up 1 --duration 8 --quiet"
    kill = ["--kill-worker", "1.5", "--replace-after", "1.5", "--out", str(out)]
    assert main("ycsbt", add_options, make_workload, [*words.split(), *kill]) == OK
    result = read(out)
    assert isinstance(result, Result)
    assert sum(result.outcomes.values()) == 1600
    assert (result.missed, result.duplicated) == (0, 0)
    assert {KILLED, REPLACED} <= {mark.what for mark in result.marks}
    assert result.death is not None
    assert result.death.pause_s is not None, "replies came again"
    assert result.audit is not None
    assert result.audit.violations == []
    assert re.search(r"killed \d+\.\d s after the window.s start: no reply for", capsys.readouterr().out)
