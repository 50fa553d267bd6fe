"""A coordinator's session: events in their order, and the end at a failure."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from proof.replayed_events import replay
from styx import App, EngineFailed
from styx.cluster.coordinator.metrics import CoordinatorCounters
from styx.cluster.coordinator.session import CoordinatorSession
from styx.cluster.options import CoordinatorOptions
from styx.cluster.wire import Deployment
from styx.coordinator.control_events import OperatorGone
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import SnapshotWanted, Started, Tick
from styx.host.control_host import ControlBeginning
from styx.kafka.address import KafkaAddress
from styx.model.limits import Limits
from styx.store.memory import MemoryStore

pytestmark = pytest.mark.anyio


class Nothing:
    """Stands for what no event of these tests reaches."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Life:
    """A session, and what ended it."""

    def __init__(self) -> None:
        self.failures: list[BaseException] = []
        self.session = CoordinatorSession(
            CoordinatorOptions(app="shop", n_slots=2, workers=None, limits=Limits()),
            Deployment("shop", 2, 1, Limits()),
            b"secret",
            cast(KafkaAddress, Nothing()),
            MemoryStore(),
            cast(Any, Nothing()),
            cast(Any, Nothing()),
            lambda _: None,
            CoordinatorCounters(),
            self.failures.append,
        )
        self.session.start(ControlBeginning(Started(0, []), [], None, "", {}))


@pytest.fixture
async def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Life]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    life = Life()
    yield life
    life.session.stop()


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The core takes the events that are returned, and fails at `SnapshotWanted`."""
    taken: list[object] = []
    original = Coordinator.step

    def step(self: Coordinator, event: Any) -> Any:
        taken.append(event)
        if isinstance(event, SnapshotWanted):
            raise RuntimeError(f"a fault of the engine's, at {self.clock.now_s} s")
        return original(self, event)

    monkeypatch.setattr(Coordinator, "step", step)
    return taken


async def test_a_failure_leaves_the_coordinator_s_events_which_fail_again(
    life: Life, tmp_path: Path, fault: list[object]
) -> None:
    for event in (Tick(7e9), OperatorGone(1), SnapshotWanted()):
        life.session.give(event)
    (error,) = life.failures
    path = tmp_path / "styx-shop-coordinator.events"
    where = f"its last events are in {path}: developers of the engine can replay them"
    assert error.__notes__ == ["while taking SnapshotWanted()", where]
    with pytest.raises(RuntimeError, match="a fault of the engine's, at 7") as again:
        replay(path.read_bytes(), App("shop", []), MemoryStore())
    assert str(again.value) == str(error)


async def test_nothing_is_taken_behind_a_failure(life: Life, fault: list[object]) -> None:
    life.session.give(SnapshotWanted())
    fault.clear()
    life.session.give(SnapshotWanted())
    assert (fault, len(life.failures)) == ([], 1)


async def test_an_event_that_comes_amid_another_is_taken_behind_it(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[object] = []

    def step(event: Any) -> None:
        if event == Tick(1.0):
            life.session.give(Tick(2.0))
        taken.append(event)

    monkeypatch.setattr(life.session, "_step", step)
    life.session.give(Tick(1.0))
    life.session.give(Tick(3.0))
    assert taken == [Tick(1.0), Tick(2.0), Tick(3.0)]


async def test_data_that_cannot_be_served_leaves_no_events(life: Life, tmp_path: Path) -> None:
    session = life.session
    session._step = lambda event: session.refuse("it is damaged")  # type: ignore[method-assign]
    life.session.give(Tick(1.0))
    assert [type(error) for error in life.failures] == [EngineFailed]
    assert os.listdir(tmp_path) == []
