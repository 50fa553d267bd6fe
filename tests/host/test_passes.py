"""Passes: the order of events, slices, flushes and the end of a pass, over a core of the test's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from styx.errors import EngineFailed
from styx.host import passes as passes_module
from styx.host.event_dump import Dump
from styx.host.passes import EVENT_TEXT_CHARS_MAX, Passes
from styx.model.limits import Limits
from styx.worker.events import CheckFurther, Event, Halted, LogLags, Proceed
from styx.worker.pressure import LOG_BYTES_MAX
from styx.worker.worker import Worker
from tests.protocol.scripted_app import app

pytestmark = pytest.mark.anyio

A, B, C = (CheckFurther(number) for number in range(3))


class World:
    """Surroundings and worker at once: writes down what happens. `runnable` so many slices; `then` follows an event."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.slices = 0
        self.then: dict[int, Callable[[], object]] = {}
        self.gathered: list[Event] = []
        self.undurable_bytes = 0
        self.again = 0
        self.broken: list[BaseException] = []
        self.limits: Any = SimpleNamespace(function_seconds_max=10.0)
        self.app: Any = None
        self.n_slots = self.id = 0
        self.executor = SimpleNamespace(running=None)
        self.passes = Passes(cast(Worker, self), self)
        self.passes.watchdog.start = lambda *_: None  # type: ignore[method-assign]
        self.passes.start(self.step, lambda event: self.seen.append(("coordinator", event)))

    @property
    def runnable(self) -> bool:
        return self.slices > 0

    def step(self, event: Event) -> None:
        assert self.passes.turn % 2 == 1
        self.seen.append(event)
        if isinstance(event, Proceed):
            self.slices -= 1
        if isinstance(event, CheckFurther):
            self.then.get(event.entities, lambda: None)()

    def gather(self) -> None:
        for event in self.gathered:
            self.passes.to_worker(event)
        self.gathered = []

    def flush(self) -> int:
        self.seen.append("flush")
        return self.undurable_bytes

    def after_pass(self) -> bool:
        self.seen.append("end")
        self.again -= 1
        return self.again >= 0

    def failed(self, what: str, error: BaseException) -> None:
        assert self.passes.turn % 2 == 0
        self.broken.append(error)


@pytest.fixture
async def world() -> World:
    return World()


async def turns(count: int = 1) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_events_go_in_the_order_they_come_whatever_core_they_are_for(world: World) -> None:
    world.gathered = [C]
    world.passes.to_worker(A)
    world.passes.to_coordinator(cast(Any, B))
    await turns(3)
    assert world.seen == [A, ("coordinator", B), C, "flush", "end"]


async def test_what_an_event_leads_to_is_taken_in_the_same_pass(world: World) -> None:
    world.then = {0: lambda: world.passes.to_worker(B)}
    world.passes.to_worker(A)
    await turns(3)
    assert world.seen == [A, B, "flush", "end"]


async def test_a_pass_runs_one_slice_behind_a_flush_and_the_loop_turns_between_two(world: World) -> None:
    world.slices = 2
    world.passes.to_worker(A)
    await turns()
    one = ["flush", Proceed(), "flush", "end"]
    assert world.seen == [A, *one]
    await turns(3)
    assert world.seen == [A, *one, *one]


async def test_another_pass_follows_while_the_surroundings_want_one(world: World) -> None:
    world.again = 2
    world.passes.wake()
    world.passes.wake()
    await turns(5)
    assert world.seen == ["flush", "end"] * 3


async def test_the_core_hears_once_that_the_log_lags_and_once_that_it_does_not(world: World) -> None:
    world.undurable_bytes = LOG_BYTES_MAX + 1
    world.again = 2
    world.passes.wake()
    await turns(5)
    world.undurable_bytes = LOG_BYTES_MAX
    world.passes.wake()
    await turns(3)
    assert [event for event in world.seen if isinstance(event, LogLags)] == [LogLags(True), LogLags(False)]


async def test_a_stop_amid_a_pass_is_its_end(world: World) -> None:
    world.then = {0: world.passes.stop}
    world.passes.to_worker(A)
    world.passes.to_worker(B)
    await turns(3)
    assert world.seen == [A, "flush"]
    assert world.passes.turn % 2 == 0


async def test_a_failure_names_its_event_and_nothing_follows(world: World) -> None:
    world.then = {0: lambda: 1 // 0}
    world.passes.to_worker(A)
    world.passes.to_worker(B)
    await turns(3)
    (error,) = world.broken
    assert error.__notes__ == ["while taking CheckFurther(entities=0)"]
    world.passes.to_worker(C)
    await turns(3)
    assert world.seen == [A], "a core that stopped amid a step takes nothing more"


async def test_a_failure_of_the_engine_s_leaves_its_last_events(world: World, tmp_path: Path) -> None:
    world.passes._dump = tmp_path / "failure.events"
    world.app, world.n_slots, world.id = app, 1, 0
    world.limits = Limits()
    world.then = {1: lambda: 1 // 0}
    world.passes.to_worker(A)
    world.passes.to_worker(B)
    await turns(3)
    (error,) = world.broken
    where = f"its last events are in {world.passes._dump}: developers of the engine can replay them"
    assert error.__notes__[1:] == [where]
    dump = msgspec.msgpack.decode(world.passes._dump.read_bytes(), type=Dump)
    assert [event.text for event in dump.events] == [repr(A), repr(B)]


async def test_the_last_events_are_kept_until_the_end(world: World) -> None:
    world.passes.to_worker(A, 7)
    world.passes.to_coordinator(cast(Any, B))
    await turns(2)
    log = world.passes._log
    assert [(event, n_bytes) for _, event, n_bytes in log.items] == [(A, 7), (B, 0)]
    world.passes.stop()
    assert (len(log.items), log.n_bytes) == (0, 0)


async def test_a_dump_that_cannot_be_written_hides_no_failure(world: World, tmp_path: Path) -> None:
    world.passes._dump = tmp_path
    world.app, world.n_slots, world.id = app, 1, 0
    world.limits = Limits()
    world.then = {0: lambda: 1 // 0}
    world.passes.to_worker(A)
    await turns(3)
    (error,) = world.broken
    assert isinstance(error, ZeroDivisionError)
    assert error.__notes__[1].startswith(f"its last events could not be written to {tmp_path}: ")


async def test_an_error_that_says_all_by_itself_leaves_none(world: World, tmp_path: Path) -> None:
    world.passes._dump = tmp_path / "failure.events"
    world.then = {0: _refuse}
    world.passes.to_worker(A)
    await turns(3)
    assert len(world.broken) == 1
    assert not world.passes._dump.exists()


def _refuse() -> None:
    raise EngineFailed("recorded epochs ran on other code")


async def test_the_text_of_a_large_event_is_cut(world: World) -> None:
    event = Halted(cast(bool, "x" * 10_000))
    world.passes._steps = (lambda _: 1 // 0, None)
    world.passes.to_worker(event)
    await turns(2)
    (note,) = world.broken[0].__notes__
    assert note == f"while taking {repr(event)[:EVENT_TEXT_CHARS_MAX]}…"


async def test_an_interruption_is_told_and_goes_on() -> None:
    """Ctrl-C amid a pass reaches whoever runs the loop, and the surroundings, also while a dump is written."""
    world = World()
    world.then = {0: _interrupt}
    world.passes.to_worker(A)
    world.passes._loop = cast(Any, None)
    with pytest.raises(KeyboardInterrupt):
        world.passes._pass()
    assert [type(error) for error in world.broken] == [KeyboardInterrupt]


def _interrupt() -> None:
    raise KeyboardInterrupt


async def test_an_interruption_amid_a_dump_is_told_too(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(passes_module, "leave_dump", interrupted)
    world.passes._dump = tmp_path / "failure.events"
    world.app = app
    world.then = {0: lambda: 1 // 0}
    world.passes._loop = cast(Any, SimpleNamespace(call_soon=lambda *_: None))
    world.passes.to_worker(A)
    with pytest.raises(KeyboardInterrupt):
        world.passes._pass()
    assert [type(error) for error in world.broken] == [ZeroDivisionError]
