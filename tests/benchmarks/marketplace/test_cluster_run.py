"""The command on a cluster of real processes, one of which dies, with two clients that keep one mirror, and a provider
that declines: each request is answered once, each order is paid or not, no change of a product is lost.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.driver.result import Result, read
from benchmarks.driver.worker_death import KILLED, REPLACED
from tests.benchmarks.marketplace.test_embedded_run import run

pytestmark = pytest.mark.slow


def test_a_worker_dies_and_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    status, shown = run(
        "run --on cluster --workers 2 --slots 4 --clients 2 --size 0.01 --rate 10 --warm-up 1 --duration 8 --quiet",
        "--mix b --seller-zipf 0 --product-zipf 0 --provider own --declined 10 --resent 0.3",
        f"--kill-worker 1.5 --replace-after 1.5 --out {out}",
    )
    assert status == 0, shown
    result = read(out)
    assert isinstance(result, Result)
    assert sum(result.outcomes.values()) == 80
    assert (result.missed, result.duplicated) == (0, 0)
    assert {KILLED, REPLACED} <= {mark.what for mark in result.marks}
    assert result.audit is not None
    assert result.audit.violations == []
    assert "criteria on" in shown
