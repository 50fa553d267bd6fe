"""In which order the processes of one run take the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.parallel import LONGEST, WAITING, pytest_collection_modifyitems, pytest_xdist_auto_num_workers

ROOT = Path(__file__).parents[1]


class FakeItem:
    """A test, as far as its turn depends on it."""

    def __init__(self, nodeid: str, *fixtures: str, slow: bool = False) -> None:
        self.nodeid = nodeid
        self.fixturenames = list(fixtures)
        self._slow = slow

    def get_closest_marker(self, name: str) -> object:
        return self._slow or None


class FakeConfig:
    """Of a process of several."""

    workerinput: Any = None


def processes(processors: int) -> int:
    hook = pytest_xdist_auto_num_workers()
    next(hook)
    with pytest.raises(StopIteration) as done:
        hook.send(processors)
    count: int = done.value.value
    return count


@pytest.mark.parametrize("place", LONGEST)
def test_what_takes_longest_exists(place: str) -> None:
    assert (ROOT / place).exists()
    assert (ROOT / place).is_dir() is place.endswith("/")


def test_servers_come_first_and_what_is_quick_last_and_the_longest_before_others() -> None:
    wanted = [
        FakeItem(f"{LONGEST[0]}::test_faults", "options", "kafka", slow=True),
        FakeItem("tests/cluster/test_cron.py::test_ticks", "kafka", slow=True),
        FakeItem("tests/kafka/test_reader.py::test_first", "kafka", slow=True),
        FakeItem("tests/kafka/test_reader.py::test_second", "minio", slow=True),
        FakeItem("tests/simulation/test_seeds.py::test_thousands", slow=True),
        FakeItem("tests/log/test_sqlite_kill.py::test_kill", slow=True),
        FakeItem("tests/simulation/test_seeds.py::test_regression"),
        FakeItem("tests/worker/test_slot.py::test_slot"),
    ]
    items: Any = [wanted[at] for at in (2, 3, 6, 7, 5, 4, 1, 0)]
    config: Any = FakeConfig()
    pytest_collection_modifyitems(config, items)
    assert items == wanted
    # A process that is alone takes them as they stand in the files.
    items.reverse()
    alone: Any = object()
    pytest_collection_modifyitems(alone, items)
    assert items == wanted[::-1]


def test_tests_that_wait_leave_a_processor_to_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS", raising=False)
    assert processes(2) == 2 + WAITING
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "2")
    assert processes(2) == 2
