"""The group `postgres` measures each of its rows, and the table names the durability of those by pgbench."""

from __future__ import annotations

from benchmarks.experiments.targets.declared import TARGETS
from benchmarks.experiments.targets.postgres import EXPONENTS, PGBENCH


def test_each_row_is_measured_and_says_what_an_answer_means() -> None:
    rows = {target.name: target for target in TARGETS if target.group == "postgres"}
    assert {*rows} == {*EXPONENTS, *PGBENCH}
    assert "fsync before each answer" in rows["pgbench-on"].what
    assert "answered before fsync" in rows["pgbench-off"].what
    assert all(rows[name].bound is None for name in PGBENCH)
