"""In which order the processes of one run take the tests, when it has several (`pytest -n 2 --dist worksteal`).

pytest-xdist deals the list out in equal parts, and who has done his takes half of what another one has left, from the
end. So the first process goes through the tests on real servers, which wait most of the time; meanwhile the others
compute, first what is quick, then what takes long, and seldom need a server of their own. Which tests run, and what
one of them does, is never decided here.
"""

from __future__ import annotations

from typing import Final

import pytest

SERVERS: Final = frozenset({"kafka", "minio"})
"""Fixtures of `tests/real_services.py` that start one, in each process that asks for it."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # one process of several
        items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if not SERVERS.isdisjoint(getattr(item, "fixturenames", ())):
        return 0
    return 1 if item.get_closest_marker("slow") else 2
