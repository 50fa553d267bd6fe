"""The whole command on a cluster of real processes: Kafka, MinIO, a coordinator, workers, client processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.driver.command import OK, main
from benchmarks.driver.result import Result, read
from benchmarks.driver.target import Outcome
from tests.benchmarks.driver.counting import add_options, make_workload

pytestmark = pytest.mark.slow


def test_a_run_accounts_every_role_and_finds_no_reply_twice(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    words = ["--on", "cluster", "--workers", "2", "--slots", "4", "--clients", "2", "--rate", "100"]
    words += ["--duration", "10", "--warm-up", "1", "--out", str(out)]
    assert main("counting", add_options, make_workload, ["run", *words]) == OK
    result = read(out)
    assert isinstance(result, Result)
    assert sum(result.outcomes.values()) == 1000
    assert result.outcomes[Outcome.ABORTED] > 0
    assert set(result.roles) == {"client", "worker", "coordinator", "broker", "store"}
    assert (result.roles["client"].processes, result.roles["worker"].processes) == (2, 2)
    assert all(result.cpu_us[role] > 0 for role in ("client", "worker", "broker"))
    # Replies that were read, not only looked for: `None` would mean that there were fewer than clients were given.
    assert result.duplicated == 0
    assert result.counters["worker"]["styx_transactions_total{outcome=committed}"] > 0
    assert "messages" in result.peer
    assert result.calls == pytest.approx(1, abs=0.2)
    assert result.audit is not None
    assert result.audit.violations == []


def test_clients_may_go_through_a_gateway(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    words = ["--on", "cluster", "--gateway", "--workers", "1", "--slots", "2", "--rate", "50"]
    assert main("counting", add_options, make_workload, ["run", *words, "--duration", "1", "--out", str(out)]) == OK
    result = read(out)
    assert isinstance(result, Result)
    assert sum(result.outcomes.values()) == 50
    assert "gateway" in result.roles
