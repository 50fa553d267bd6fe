"""How many processes share the tests of one run, and in which order they take them (`pytest -n logical --dist
worksteal`).

There are two processes more than processors: tests on real servers wait much of their time. pytest-xdist deals the
list out in equal parts, and who has done his takes half of what another one has left, from the end. So the first
process goes through the tests on real servers; meanwhile the others compute, first what is quick, then what takes long,
and come to tests on servers last. Of each kind the longest come first, so that the last ones are short, and no process
ends alone. Which tests run, and what one of them does, is never decided here.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Final

import pytest

SERVERS: Final = frozenset({"kafka", "minio"})
"""Fixtures of `tests/real_services.py` that start one, in each process that asks for it."""
WAITING: Final = 2
"""So many processes are there for tests that wait, beside one for each processor."""
CHOSEN: Final = "PYTEST_XDIST_AUTO_NUM_WORKERS"
"""With this variable somebody has chosen the number of processes."""
LONGEST: Final = (
    "tests/proof/cluster/test_fault_run.py",
    "tests/proof/large/test_large.py",
    "tests/proof/judge/test_on_cluster.py",
    "tests/proof/hostile/test_hostile.py",
    "tests/scripts/test_first_hour.py",
    "tests/proof/cluster/",
    "tests/kubernetes/",
    "tests/cli/",
    "tests/benchmarks/",
    "tests/cluster/",
    "tests/simulation/test_seeds.py",
    "tests/typing/",
    "tests/proof/",
    "tests/docs/",
)
"""How the tests begin that take tens of seconds, or have such among them; the longest first."""


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    processors = yield
    return processors if os.environ.get(CHOSEN) else processors + WAITING


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # one process of several
        items.sort(key=_turn)


def _turn(item: pytest.Item) -> tuple[int, int]:
    if not SERVERS.isdisjoint(getattr(item, "fixturenames", ())):
        return 0, _length(item.nodeid)
    return (1, _length(item.nodeid)) if item.get_closest_marker("slow") else (2, 0)


def _length(test: str) -> int:
    """Its place among `LONGEST`, behind them if it is none of these."""
    return next((place for place, longest in enumerate(LONGEST) if test.startswith(longest)), len(LONGEST))
