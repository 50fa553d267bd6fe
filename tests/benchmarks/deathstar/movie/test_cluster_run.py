"""On a cluster of real processes, a worker of which is killed under load: no review is lost, halved or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.deathstar.movie.options import add_options, make_workload
from benchmarks.driver.command import OK, main
from benchmarks.driver.result import Result, read
from benchmarks.driver.target import Outcome

pytestmark = pytest.mark.slow


def test_a_killed_worker_leaves_every_review_whole_and_every_request_answered_once(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    words = "run --on cluster --workers 2 --slots 4 --users 20 --movies 5 --unknown-title 0.05 --rate 100 "
    words += f"--warm-up 0.5 --duration 3 --kill-worker 0.5 --replace-after 1 --quiet --out {out}"
    # The audit holds, no reply was missed, and none came twice.
    assert main("deathstar.movie", add_options, make_workload, words.split()) == OK
    result = read(out)
    assert isinstance(result, Result)
    assert result.death is not None
    assert set(result.outcomes) == {Outcome.COMMITTED, Outcome.ABORTED}
    assert sum(result.outcomes.values()) == 300
    assert result.duplicated == 0
    assert result.audit is not None
    assert result.audit.violations == []
