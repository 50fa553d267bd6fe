"""A failed engine's dump, replayed on a fresh core: the same failure."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import msgspec
import pytest

import styx
from proof.replayed_events import NotReplayable, replay
from styx import App, Context, EngineFailed, Operator
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import SnapshotWanted
from styx.embedded_engine.drive import DUMP_NAME
from styx.embedded_engine.storage import OBJECTS_NAME
from styx.errors import StyxError
from styx.host.event_dump import Dump, DumpedEvent, WorkerCore, dump_of
from styx.host.event_log import EventLog, KeptLoad
from styx.host.passes import settle
from styx.model.limits import Limits
from styx.protocol.messages import Recover
from styx.state.table import NEWEST
from styx.store.directory import DirectoryStore
from styx.worker.events import CoordinatorSaid, LogLags, StateLoaded
from styx.worker.executor import Executor
from styx.worker.worker import Worker
from tests.plain_form import plain_form

pytestmark = [pytest.mark.anyio, plain_form]

entity = Operator("entity")


@entity.register
async def add(ctx: Context) -> int:
    total: int = await ctx.get(0) + 1
    await ctx.put(total)
    return total


@entity.register
async def poison(ctx: Context) -> None:
    await ctx.put(99)


def told(value: int) -> int:
    return value + 1


@entity.register
async def ask(ctx: Context) -> int:
    answer: int = await ctx.call_external(told, 1)
    await ctx.put(answer)
    return answer


app = App("replayed", [entity])


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine itself fails at one function, and says how many entities there are."""
    original = Executor._start

    def start(self: Executor, invocation: Any) -> None:
        if invocation._spec.name == "poison":
            entities = sum(len(slot.state.entities(NEWEST)) for slot in self.slots.values())
            raise RuntimeError(f"a fault of the engine's, at {entities} entities")
        original(self, invocation)

    monkeypatch.setattr(Executor, "_start", start)


async def failed(data_dir: Path) -> bytes:
    """Gives the engine the poison; the dump that it leaves."""
    async with styx.embedded(app, data_dir, n_slots=2) as client:
        assert await client.call(entity, "a", add) == 1
        assert await client.call(entity, "b", add) == 1
        assert await client.engine.snapshot()
        await client.call(entity, "a", add)
        with pytest.raises(StyxError):
            await client.call(entity, "c", poison)
    return (data_dir / DUMP_NAME).read_bytes()


def fails_again(dump: bytes, data_dir: Path, app: App = app) -> RuntimeError:
    with pytest.raises(RuntimeError, match="a fault of the engine's") as raised:
        replay(dump, app, DirectoryStore(data_dir / OBJECTS_NAME))
    return raised.value


async def test_the_same_failure(tmp_path: Path, fault: None) -> None:
    """The first time, and at each start from then on, on a snapshot and what is behind it."""
    for dump in (await failed(tmp_path), await started(tmp_path), await started(tmp_path)):
        error = fails_again(dump, tmp_path)
        text = f"RuntimeError: {error}"
        assert text == "RuntimeError: a fault of the engine's, at 2 entities"
        said = msgspec.msgpack.decode(dump, type=Dump).failure.splitlines()
        assert said[:2] == [text, *error.__notes__]


async def test_the_same_failure_behind_an_external_call(tmp_path: Path, fault: None) -> None:
    """The outcome came behind the load: the fresh core makes the call as well, and waits for it."""
    async with styx.embedded(app, tmp_path, n_slots=2) as client:
        assert await client.call(entity, "a", ask) == 2
        with pytest.raises(StyxError):
            await client.call(entity, "c", poison)
    for dump in ((tmp_path / DUMP_NAME).read_bytes(), await started(tmp_path)):
        assert str(fails_again(dump, tmp_path)) == "a fault of the engine's, at 1 entities"


class Count(msgspec.Struct):
    total: int


async def test_the_same_failure_behind_a_conversion_of_the_state(tmp_path: Path, fault: None) -> None:
    """The state of before is not kept beside the converted one."""
    async with styx.embedded(app, tmp_path, n_slots=2) as client:
        assert await client.call(entity, "a", add) == 1
    typed = Operator("entity", state_type=Count, migrate=lambda old: {"total": 100 * old})
    typed.register(poison)
    changed = App("replayed", [typed])
    async with styx.embedded(changed, tmp_path, n_slots=2) as client:
        assert client.entity("entity", "a") == Count(100)
        assert client.engine.worker.generation == 3
        loads = [event for _, event, _ in client.engine._passes._log.items if isinstance(event, StateLoaded | KeptLoad)]
        assert [type(load) for load in loads] == [KeptLoad, KeptLoad]
        with pytest.raises(StyxError):
            await client.call(entity, "c", poison)
    error = fails_again((tmp_path / DUMP_NAME).read_bytes(), tmp_path, changed)
    assert str(error) == "a fault of the engine's, at 1 entities"


async def test_the_log_lagged_before_the_generation_began(tmp_path: Path) -> None:
    log = EventLog()
    worker = Worker(0, app, 1, Limits())
    events = LogLags(True), CoordinatorSaid(Recover(1, {0: 0}, None))
    settle(deque([(worker.step, event, 0) for event in events]), log)
    dump = dump_of(app.name, WorkerCore(0, 1, Limits()), log.of(worker.step), ValueError())
    replayed = replay(dump, app, DirectoryStore(tmp_path))
    assert isinstance(replayed, Worker)
    assert replayed.pressure.congested


async def started(data_dir: Path) -> bytes:
    """The engine fails at its next start."""
    (data_dir / DUMP_NAME).unlink()
    with pytest.raises(EngineFailed, match=r"a fault of the engine's.*styx set-aside"):
        await styx.embedded(app, data_dir, n_slots=2).__aenter__()
    return (data_dir / DUMP_NAME).read_bytes()


async def test_without_the_fault_nothing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: None) -> None:
    dump = await failed(tmp_path)
    monkeypatch.undo()
    worker = replay(dump, app, DirectoryStore(tmp_path / OBJECTS_NAME))
    assert isinstance(worker, Worker)
    assert len(worker.executor.roots) == 1


async def test_one_that_is_not_whole_or_of_another_app_is_refused(tmp_path: Path, fault: None) -> None:
    dump = msgspec.msgpack.decode(await failed(tmp_path), type=Dump)
    store = DirectoryStore(tmp_path / OBJECTS_NAME)
    changed: dict[str, dict[str, Any]] = {
        "first events were dropped": {"whole": False},
        "it is of app 'other', and this is 'replayed'": {"app": "other"},
        "event 0 could not be encoded: what": {"events": [DumpedEvent("Halted", "what", None)]},
    }
    for why, fields in changed.items():
        with pytest.raises(NotReplayable, match=why):
            replay(msgspec.msgpack.encode(msgspec.structs.replace(dump, **fields)), app, store)


async def test_a_failure_of_the_coordinator_s_is_replayed_on_a_coordinator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Coordinator.step

    def step(self: Coordinator, event: Any) -> Any:
        if isinstance(event, SnapshotWanted):
            raise RuntimeError(f"a fault of the engine's, behind epoch {self.epoch}")
        return original(self, event)

    monkeypatch.setattr(Coordinator, "step", step)
    async with styx.embedded(app, tmp_path, n_slots=2) as client:
        assert await client.call(entity, "a", add) == 1
        reached = client.engine.coordinator.epoch
        assert not await client.engine.snapshot()
    error = fails_again((tmp_path / DUMP_NAME).read_bytes(), tmp_path)
    assert str(error) == f"a fault of the engine's, behind epoch {reached}"
