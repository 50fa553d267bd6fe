"""The whole command on a cluster of real processes, with orders and payments between warehouses on two workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.driver.command import OK, main
from benchmarks.driver.result import Result, read
from benchmarks.driver.target import Outcome
from benchmarks.tpcc.options import add_options, make_workload

pytestmark = pytest.mark.slow


def test_every_request_is_answered_once_and_the_audit_passes(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    words = "--on cluster --workers 2 --slots 4 --clients 2 --rate 60 --duration 3 --warm-up 1"
    scale = "--warehouses 4 --items 50 --customers 30 --remote-item 0.1 --remote-customer 0.5 --rollback 0.1"
    assert main("tpcc", add_options, make_workload, ["run", *words.split(), *scale.split(), "--out", str(out)]) == OK
    result = read(out)
    assert isinstance(result, Result)
    assert sum(result.outcomes.values()) == 180
    assert result.outcomes[Outcome.ABORTED] > 0
    assert result.duplicated == 0
    assert result.peer["messages"] > 0
    assert result.audit is not None
    assert result.audit.violations == []
