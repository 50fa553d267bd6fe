"""A worker of a cluster is killed under load: no room, seat or reservation is lost, halved or taken twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.deathstar.hotel.options import add_options, make_workload
from benchmarks.driver.command import OK, main
from benchmarks.driver.result import Result, read
from benchmarks.driver.target import Outcome

pytestmark = pytest.mark.slow


def test_a_killed_worker_leaves_every_reservation_whole_and_every_request_answered_once(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    words = "run --on cluster --workers 2 --slots 4 --mix reserve-heavy --hotels 20 --rooms 3 --flights 5 --seats 2 "
    words += "--users 30 --places 50 --rate 100 --warm-up 0.5 --duration 4 --kill-worker 1 --replace-after 1 --quiet "
    # The audit holds, no reply was missed, and none came twice.
    assert main("deathstar.hotel", add_options, make_workload, [*words.split(), "--out", str(out)]) == OK
    result = read(out)
    assert isinstance(result, Result)
    assert result.death is not None
    assert set(result.outcomes) == {Outcome.COMMITTED, Outcome.ABORTED}
    assert sum(result.outcomes.values()) == 400
    assert result.duplicated == 0
    assert result.audit is not None
    assert result.audit.violations == []
