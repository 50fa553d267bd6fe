"""How the tests of one run are spread over its processes, when it has several (`pytest -n`, pytest-xdist).

Those that need a real Kafka or MinIO stay in one process, one after the other on one broker: most of the time they
wait, and meanwhile the other processes compute. What takes long begins early, so that all processes end together. Which
tests run, and what one of them does, is never decided here.
"""

from __future__ import annotations

from typing import Final

import pytest

REAL: Final = frozenset({"kafka", "minio"})
"""Fixtures of `tests/real_services.py` that start a server."""


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not hasattr(config, "workerinput"):
        return  # the only process
    for item in items:
        if _needs_services(item):
            item.add_marker(pytest.mark.xdist_group("services"))
    items.sort(key=_turn)


def _needs_services(item: pytest.Item) -> bool:
    return not REAL.isdisjoint(getattr(item, "fixturenames", ()))


def _turn(item: pytest.Item) -> int:
    if _needs_services(item):
        return 0
    return 1 if item.get_closest_marker("slow") else 2
