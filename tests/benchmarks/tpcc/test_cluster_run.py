"""The whole command on a cluster of real processes, with orders and payments between warehouses on two workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.driver.command import OK, main
from benchmarks.driver.result import Result, read
from benchmarks.driver.target import Outcome
from benchmarks.tpcc.options import add_options, make_workload

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("death", ["", "--kill-worker 1 --replace-after 1"], ids=["undisturbed", "worker killed"])
def test_every_request_is_answered_once_and_the_audit_passes(death: str, tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    words = "run --on cluster --workers 2 --slots 4 --clients 2 --rate 60 --duration 4 --warm-up 1 --quiet"
    scale = "--warehouses 4 --items 50 --customers 30 --remote-item 0.1 --remote-customer 0.5 --rollback 0.1"
    command = f"{words} {scale} {death} --out {out}".split()
    # The audit holds, no reply was missed, and none came twice.
    assert main("tpcc", add_options, make_workload, command) == OK
    result = read(out)
    assert isinstance(result, Result)
    assert set(result.outcomes) == {Outcome.COMMITTED, Outcome.ABORTED}
    assert sum(result.outcomes.values()) == 240
    assert set(result.errors) == {"aborted:ItemNotFound"}
    assert result.duplicated == 0
    assert death or result.peer["messages"] > 0
    assert (result.death is not None) == bool(death)
    assert result.audit is not None
    assert result.audit.violations == []
