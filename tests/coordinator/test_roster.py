"""Workers of one runtime only: the first one decides, unless epochs that another one ran are to be run again."""

from __future__ import annotations

from styx.coordinator.control_events import ControlEffect, RuntimeStored, StoreRuntime, TurnAway, WorkerArrived
from styx.coordinator.roster import Runtimes
from styx.process.runtime import NAME, RUNTIME, read_runtime, write_runtime
from styx.store.memory import MemoryStore


class Setting:
    """`run` does what is wanted of the store. Workers have numbers in the order of their arrival."""

    def __init__(self, recorded: str = "") -> None:
        self.store = MemoryStore()
        self.accepted: list[str] = []
        self.turned_away: list[str] = []
        self.reasons: list[str] = []
        self._names: list[str] = []
        self._todo: list[str] = []
        self.runtimes = Runtimes(recorded)

    def run(self, problem: str = "") -> None:
        todo, self._todo = self._todo, []
        for runtime in todo:
            if not problem:
                write_runtime(self.store, runtime)
            self._do(*self.runtimes.stored(RuntimeStored(problem)))

    def worker(self, name: str, runtime: str | None) -> int:
        self._names.append(name)
        number = len(self._names) - 1
        self._do(*self.runtimes.arrived(WorkerArrived(number, name, name, "", runtime or "")))
        return number

    def _do(self, admitted: list[WorkerArrived], effects: list[ControlEffect]) -> None:
        self.accepted += [worker.name for worker in admitted]
        for effect in effects:
            if isinstance(effect, TurnAway):
                self.turned_away.append(self._names[effect.worker])
                self.reasons.append(effect.reason)
            else:
                assert isinstance(effect, StoreRuntime)
                self._todo.append(effect.runtime)


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


def test_a_store_that_is_away_is_tried_again_by_the_next_worker() -> None:
    setting = Setting()
    setting.worker("a", "one")
    setting.run("away")
    assert (setting.accepted, setting.turned_away, setting.reasons) == ([], ["a"], ["away"])
    setting.worker("a", "two")
    setting.run()
    assert (setting.accepted, read_runtime(setting.store)) == (["a"], "two")


def test_one_that_is_gone_before_the_store_answers_is_not_admitted() -> None:
    setting = Setting()
    setting.runtimes.lost(setting.worker("a", "one"))
    setting.worker("b", "one")
    setting.run()
    assert setting.accepted == ["b"]


def test_a_store_without_it() -> None:
    assert read_runtime(MemoryStore()) == ""
    store = MemoryStore()
    store.put(NAME, b"\xff")
    assert read_runtime(store)


def test_what_this_process_runs_on() -> None:
    assert RUNTIME.startswith("CPython 3.")
    assert RUNTIME.endswith((", compiled form", ", plain form"))
