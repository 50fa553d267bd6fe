"""Workers of one runtime only: the first one decides, unless epochs that another one ran are to be run again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from styx.cluster.background import Background
from styx.cluster.coordinator.runtimes import NAME, Runtimes, read_runtime
from styx.process.runtime import FACT, RUNTIME
from styx.store.memory import MemoryStore
from styx.transport import Connection, Hello


class FakeConnection:
    closed = False

    def __init__(self, name: str, runtime: str | None) -> None:
        facts = {} if runtime is None else {FACT: runtime}
        self.peer = Hello(cluster="c", role="worker", name=name, incarnation=name, facts=facts)


class Setting:
    """`run` does what was put into the background."""

    def __init__(self, recorded: str = "") -> None:
        self.store = MemoryStore()
        self.accepted: list[str] = []
        self.turned_away: list[str] = []
        self.reasons: list[str] = []
        self._todo: list[tuple[Callable[[], Any], Callable[[Any], None], Callable[[OSError], None]]] = []
        self.runtimes = Runtimes(self.store, cast(Background, self), recorded, self._turn_away)

    def submit(
        self, what: str, run: Callable[[], Any], ended: Callable[[Any], None], gave_up: Callable[[OSError], None]
    ) -> None:
        self._todo.append((run, ended, gave_up))

    def run(self, error: OSError | None = None) -> None:
        for run, ended, gave_up in self._todo:
            if error is None:
                ended(run())
            else:
                gave_up(error)
        self._todo = []

    def worker(self, name: str, runtime: str | None) -> None:
        connection = cast(Connection, FakeConnection(name, runtime))
        self.runtimes.admit(connection, lambda each: self.accepted.append(each.peer.name))

    def _turn_away(self, connection: Connection, reason: str) -> None:
        self.turned_away.append(connection.peer.name)
        self.reasons.append(reason)


def test_the_first_worker_decides_and_the_store_keeps_it() -> None:
    setting = Setting()
    for name, runtime in (("a", "one"), ("b", "one"), ("c", "two")):
        setting.worker(name, runtime)
    assert (setting.accepted, setting.turned_away) == ([], ["c"]), "nobody before it is stored"
    setting.run()
    assert setting.accepted == ["a", "b"]
    assert read_runtime(setting.store) == "one"
    setting.worker("d", "one")
    setting.worker("e", "two")
    setting.worker("f", None)
    assert (setting.accepted, setting.turned_away) == (["a", "b", "d"], ["c", "e", "f"])


def test_epochs_that_were_recorded_are_run_on_what_ran_them() -> None:
    setting = Setting("one")
    setting.worker("a", "two")
    setting.worker("b", "one")
    assert (setting.accepted, setting.turned_away) == (["b"], ["a"])
    assert "this cluster runs on one, and the worker on two" in setting.reasons[0]
    assert "stop the coordinator" in setting.reasons[0]


def test_each_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    setting = Setting("one")
    for _ in range(3):
        setting.worker("a", "two")
    assert (len(caplog.records), len(setting.turned_away)) == (1, 3)


def test_a_store_that_is_away_is_tried_again_by_the_next_worker() -> None:
    setting = Setting()
    setting.worker("a", "one")
    setting.run(OSError("away"))
    assert (setting.accepted, setting.turned_away) == ([], ["a"])
    setting.worker("a", "two")
    setting.run()
    assert (setting.accepted, read_runtime(setting.store)) == (["a"], "two")


def test_a_store_without_it() -> None:
    assert read_runtime(MemoryStore()) == ""
    store = MemoryStore()
    store.put(NAME, b"\xff")
    assert read_runtime(store)


def test_what_this_process_runs_on() -> None:
    assert RUNTIME.startswith("CPython 3.")
    assert RUNTIME.endswith((", compiled form", ", plain form"))
