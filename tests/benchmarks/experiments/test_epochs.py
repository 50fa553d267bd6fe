"""How often epochs begin and what is in them, from what workers counted."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.driver.result import Result
from benchmarks.experiments.targets.epochs import epochs_per_second, in_conflict, transactions_per_epoch
from tests.benchmarks.driver.made import result


def counted(workers: int, **counters: float) -> Result:
    """In 10 s with 1,000 transactions a second."""
    made = result(rate=1000)
    role = msgspec.structs.replace(made.roles["worker"], processes=workers)
    return msgspec.structs.replace(made, roles={"worker": role}, counters={"worker": counters})


def test_epochs_are_each_workers() -> None:
    made = counted(2, **{"styx_epochs_total{kind=parallel}": 150, "styx_epochs_total{kind=sequential}": 50})
    assert epochs_per_second(made) == 10
    assert transactions_per_epoch(made) == 100


def test_of_several_clusters_each_has_its_share() -> None:
    assert transactions_per_epoch(counted(8, styx_epochs_total=200), clusters=4) == 100


def test_the_share_in_conflict() -> None:
    assert in_conflict(counted(2, styx_lock_phase_transactions_total=500)) == pytest.approx(0.05)


def test_without_epochs_there_is_nothing_in_them() -> None:
    assert transactions_per_epoch(counted(2)) == 0
