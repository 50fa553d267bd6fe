"""Code that changed between a crash and the restart: recorded epochs run on the code that ran them, then on the new."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from styx.embedded_engine import app_change, app_record
from styx.errors import ConfigurationError, EngineFailed
from styx.host import background, coordinator_host
from styx.model.limits import Limits
from styx.testing.patience import PATIENCE_SECONDS
from styx.worker.events import AppendEpochRecord
from styx.worker.worker import Worker
from tests.embedded.app_files import LOCKED, NAME, Edited
from tests.plain_form import plain_form

pytestmark = pytest.mark.anyio
TIMES = """
async def put(ctx: Context, value: int) -> int:
    await ctx.put(value * {factor})
    return value * {factor}

async def note(ctx: Context, value: int) -> None:
    await ctx.put(value * {factor})

async def get(ctx: Context) -> Any:
    return await ctx.get()
"""
WITH_LOCK = TIMES.replace("{factor}", "{{factor}} + (lock.locked() and 0)").format


@pytest.fixture
def end(tmp_path: Path) -> Iterator[Path]:
    """Ends an external call when it is there: this process would wait for the call's thread."""
    path = tmp_path / "end"
    yield path
    path.touch()


def _times(edited: Edited, factor: int, **more: str) -> Any:
    return edited.app(functions=TIMES.format(factor=factor), **more)


def _with_lock(edited: Edited, factor: int) -> Any:
    """An app that cannot be packed."""
    functions = TIMES.replace("value * {factor}", f"(lock.locked() or value * {factor})")
    return edited.app(functions=functions, more=LOCKED)


async def _crash(client: Any, *calls: tuple[Any, ...]) -> list[Any]:
    async with client:
        answers = [await client.call("acc", *call) for call in calls]
        client.crash()
    return answers


async def test_what_was_answered_stands_and_the_new_code_runs(edited: Edited) -> None:
    assert await _crash(edited.open(_times(edited, 2)), ("a", "put", 5), ("b", "note", 5)) == [10, None]
    async with edited.open(_times(edited, 3)) as client:
        assert client.state() == {("acc", "a"): 10, ("acc", "b"): 10}
        assert client.engine.app_change.recorded_code_ran
        assert client.engine.counters.replayed == 2
        assert await client.call("acc", "a", "put", 5) == 15
    async with edited.open(_times(edited, 3)) as client:
        assert client.state() == {("acc", "a"): 15, ("acc", "b"): 10}
        assert not client.engine.app_change.changed


async def test_each_generation_of_the_code_ran_its_own_epochs(edited: Edited) -> None:
    for factor in range(2, 7):
        calls = (f"k{factor}", "put", 1), (f"n{factor}", "note", 1)
        assert await _crash(edited.open(_times(edited, factor)), *calls) == [factor, None]
    async with edited.open(_times(edited, 9)) as client:
        expected = {f"{kind}{factor}": factor for factor in range(2, 7) for kind in "kn"}
        assert {key: value for (_, key), value in client.state().items()} == expected
        # Nothing is run again that a change of the code has made a snapshot of.
        assert client.engine.counters.replayed == 2
        store = client.engine._storage.store
    assert len(app_record.versions(store)) == 1


async def test_crashes_amid_the_change(edited: Edited, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it ends, the next start goes on, with the same code or with yet another one."""
    assert await _crash(edited.open(_times(edited, 2)), ("a", "put", 5)) == [10]
    for number, name in enumerate(["_recover_further", "_app_changes", "_change_app"], 3):
        client = edited.open(_times(edited, number))
        original = getattr(client.engine, name)

        def broken(*arguments: Any, original: Any = original) -> None:
            original(*arguments)
            raise OSError("the power is gone")

        monkeypatch.setattr(client.engine, name, broken)
        with pytest.raises(EngineFailed, match="the power is gone"):
            async with client:
                pass
    async with edited.open(_times(edited, 4)) as client:
        assert client.state() == {("acc", "a"): 10}
        assert await client.call("acc", "a", "put", 5) == 20


async def test_a_function_that_is_gone_is_still_replayed(edited: Edited) -> None:
    assert await _crash(edited.open(_times(edited, 2)), ("a", "put", 5)) == [10]
    less = "async def get(ctx: Context) -> Any:\n    return await ctx.get()\n"
    async with edited.open(edited.app(functions=less)) as client:
        assert await client.call("acc", "a", "get") == 10
        reply = await client.request("acc", "a", "put", 5)
        assert reply.error is not None
        assert reply.error.code == "unknown_function"


async def test_limits_that_decided_an_outcome_are_replayed_with(edited: Edited) -> None:
    client = edited.open(edited.app(), limits=Limits(value_bytes_max=100))
    async with client:
        reply = await client.request("acc", "a", "note", "x" * 200)
        assert reply.error is not None
        assert await client.call("acc", "b", "put", "y") == "y"
        client.crash()
    async with edited.open(edited.app(), limits=Limits(value_bytes_max=1000)) as client:
        assert client.state() == {("acc", "b"): "y"}
        await client.call("acc", "a", "note", "x" * 200)


async def test_a_constant_is_part_of_the_code(edited: Edited, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source is the same, and the value that a module had when it was imported is another one."""
    functions = "async def put(ctx: Context, value: int) -> None:\n    await ctx.put(value * FACTOR)\n"
    more = "import os\nFACTOR = int(os.environ['STYX_TEST_FACTOR'])"
    monkeypatch.setenv("STYX_TEST_FACTOR", "2")
    await _crash(edited.open(edited.app(functions=functions, more=more)), ("a", "put", 5))
    monkeypatch.setenv("STYX_TEST_FACTOR", "3")
    async with edited.open(edited.app(functions=functions, more=more)) as client:
        assert client.state() == {("acc", "a"): 10}


@pytest.mark.parametrize("end", ["close", "crash"])
async def test_a_state_type_is_part_of_the_code(edited: Edited, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    """The source is the same, and the type is another one, as that of an installed package that was upgraded."""
    app = partial(
        edited.app,
        "Operator('acc', state_type=KIND)",
        "async def put(ctx: Context, value: Any) -> None:\n    await ctx.put(KIND(value))\n",
        more="import os\nKIND = {'int': int, 'str': str}[os.environ['STYX_TEST_KIND']]",
    )
    monkeypatch.setenv("STYX_TEST_KIND", "int")
    async with edited.open(app()) as client:
        await client.call("acc", "k", "put", 5)
        if end == "crash":
            client.crash()
    monkeypatch.setenv("STYX_TEST_KIND", "str")
    with pytest.raises(ConfigurationError, match=r"acc\['k'\]: expected 'str', got 'int'"):
        async with edited.open(app()):
            pass
    monkeypatch.setenv("STYX_TEST_KIND", "int")
    async with edited.open(app()) as client:
        assert client.state() == {("acc", "k"): 5}


async def test_a_migration_is_part_of_the_code(edited: Edited, monkeypatch: pytest.MonkeyPatch) -> None:
    more = (
        "import os\n"
        "def convert(old: Any) -> Any:\n    return old['n']\n"
        "MIGRATE = convert if os.environ['STYX_TEST_MIGRATE'] else None\n"
        "if not os.environ['STYX_TEST_MIGRATE']:\n    declared = Operator('acc')\n"
    )
    declared = "Operator('acc', state_type=int, migrate=convert) if MIGRATE else declared"
    monkeypatch.setenv("STYX_TEST_MIGRATE", "")
    async with edited.open(edited.app(declared, more=more)) as client:
        await client.call("acc", "k", "put", {"n": 5})
    monkeypatch.setenv("STYX_TEST_MIGRATE", "1")
    async with edited.open(edited.app(declared, more=more)) as client:
        assert client.state() == {("acc", "k"): 5}


async def test_a_clean_stop_leaves_nothing_to_replay(edited: Edited) -> None:
    async with edited.open(_times(edited, 2)) as client:
        await client.call("acc", "a", "put", 5)
    async with edited.open(_times(edited, 3)) as client:
        assert client.state() == {("acc", "a"): 10}
        assert client.engine.counters.replayed == 0
        assert client.engine.app_change.changed


async def test_the_same_code_changes_nothing(edited: Edited) -> None:
    await _crash(edited.open(_times(edited, 2)), ("a", "put", 5))
    async with edited.open(_times(edited, 2)) as client:
        assert client.engine.coordinator.app_version == 1
        assert client.engine.counters.replayed == 1


async def test_an_app_that_cannot_be_packed_works(edited: Edited) -> None:
    async with edited.open(_with_lock(edited, 2)) as client:
        await client.call("acc", "a", "put", 5)
    await _crash(edited.open(_with_lock(edited, 2)), ("b", "put", 5))
    await _crash(edited.open(_with_lock(edited, 2)), ("c", "put", 5))
    async with edited.open(_with_lock(edited, 2)) as client:
        assert client.state() == {("acc", key): 10 for key in "abc"}
    async with edited.open(_with_lock(edited, 3)) as client:
        assert client.state() == {("acc", key): 10 for key in "abc"}


async def test_and_is_not_run_in_place_of_the_code_that_ran(edited: Edited) -> None:
    await _crash(edited.open(_with_lock(edited, 2)), ("b", "note", 5))
    for _ in range(2):
        with pytest.raises(EngineFailed, match="other code than this, and that code could not be kept") as refused:
            async with edited.open(_with_lock(edited, 3)):
                pass
        assert "accept_changed_replay=True" in str(refused.value)
        assert "lock" in str(refused.value)
    async with edited.open(_with_lock(edited, 2)) as client:
        assert client.state() == {("acc", "b"): 10}


@plain_form
@pytest.mark.parametrize("kept", [True, False])
async def test_what_is_unfinished_goes_on_behind_the_change(
    edited: Edited, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Not before: on code that is refused nobody is answered, and state that is looked at stands still."""
    app = _times if kept else _with_lock
    limits = Limits(epoch_result_bytes_max=1, epoch_transactions_max=10)
    client = edited.open(app(edited, 2), limits=limits)
    async with client:
        client.engine._drive.request = lambda *_: None  # type: ignore[method-assign]  # the worker is not told
        for value in range(40):
            waiting = asyncio.ensure_future(client.submit("acc", "a", "note", value))
            waiting.add_done_callback(asyncio.Future.exception)
        client.engine.log.flush()
        assert await client.engine.flushed()
        client.crash()
    step = Worker.step
    appended: list[AppendEpochRecord] = []

    def step_until_some_are_passed_over(self: Worker, event: Any) -> Any:
        if self.epoch == 5 and self.backlog:
            raise OSError("the power fails")
        return step(self, event)

    def watched_step(self: Worker, event: Any) -> Any:
        effects = step(self, event)
        appended.extend(effect for effect in effects if isinstance(effect, AppendEpochRecord))
        return effects

    with monkeypatch.context() as patch:
        patch.setattr(Worker, "step", step_until_some_are_passed_over)
        with pytest.raises((EngineFailed, ConnectionError)):
            async with edited.open(app(edited, 2), limits=limits) as client:
                await client.call("acc", "b", "get")
    monkeypatch.setattr(Worker, "step", watched_step)
    if not kept:
        with pytest.raises(EngineFailed, match="other code than this, and that code could not be kept"):
            async with edited.open(app(edited, 3), limits=limits):
                pass
        assert appended == []
        return
    check, at_check = app_change.AppChange.check, []

    def watched_check(self: app_change.AppChange, tables: Any) -> None:
        check(self, tables)
        at_check.append(list(appended))

    monkeypatch.setattr(app_change.AppChange, "check", watched_check)
    async with edited.open(app(edited, 3), limits=limits) as client:
        assert await client.call("acc", "a", "get") == 39 * 3
    assert at_check == [[]]
    assert appended


@plain_form
async def test_what_a_snapshot_holds_runs_no_more_on_code_that_is_refused(
    edited: Edited, end: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither before the state is looked at nor in the epoch of the snapshot that the new version would begin on."""
    functions = """
def outside() -> None:
    ran.append({version})
    while not os.path.exists(END):
        time.sleep(0.01)

async def ask(ctx: Context) -> None:
    ran.append({version} + lock.locked())
    await ctx.call_external(outside)

async def note(ctx: Context) -> None:
    await ctx.put(1)
"""
    more = f"import os\nimport time\n{LOCKED}ran = []\nEND = {str(end)!r}\n"
    client = edited.open(edited.app(functions=functions.format(version=10), more=more))
    async with client:
        waiting = client.submit("acc", "a", "ask")
        while not client.engine._externals._tasks:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await client.call("acc", "b", "note")
        assert await client.engine.snapshot()
        client.crash()
        with pytest.raises(ConnectionError):
            await waiting
    app = edited.app(functions=functions.format(version=20), more=more)
    with monkeypatch.context() as patch:
        patch.setattr(background, "FIRST_PAUSE_SECONDS", 0.0)
        patch.setattr("styx.host.worker_host.store_slots", _full)
        with pytest.raises(EngineFailed, match="the snapshot before the new version of the app could not be stored"):
            async with edited.open(app):
                pass
    assert sys.modules[NAME].ran == []
    client = edited.open(app)
    async with client:
        while not client.engine._externals._tasks:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert set(sys.modules[NAME].ran) == {20}
        client.crash()


async def test_what_waits_in_the_log_runs_on_the_new_code(edited: Edited) -> None:
    """It was taken and in no epoch yet: nobody was answered."""
    client = edited.open(_times(edited, 2))
    async with client:
        await client.call("acc", "a", "put", 5)
        engine = client.engine
        await engine.snapshot()
        engine._drive.request = lambda *_: None  # type: ignore[method-assign]  # the worker is not told
        waiting = client.submit("acc", "b", "put", 5)
        engine.log.flush()
        assert await engine.flushed()
        client.crash()
        with pytest.raises(ConnectionError):
            await waiting
    async with edited.open(_times(edited, 3)) as client:
        assert await client.call("acc", "b", "get") == 15


async def test_code_that_never_ends_is_told_of_and_can_be_passed_by(
    edited: Edited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A developer kills what hangs, and mends it: the recorded epochs would hang again."""
    monkeypatch.setattr(app_change, "SLOW_SECONDS", 0.0)
    hanging = "import os\nasync def put(ctx: Context, value: int) -> None:\n    await ctx.put(value)\n    {rest}\n"
    app = edited.app(functions=hanging.format(rest="while os.environ.get('STYX_TEST_HANGS'): ..."))
    await _crash(edited.open(app), ("a", "put", 5))
    told = threading.Event()

    def let_go(*_: Any) -> None:
        told.set()
        monkeypatch.delenv("STYX_TEST_HANGS")

    monkeypatch.setattr(app_change._log, "warning", let_go)
    monkeypatch.setenv("STYX_TEST_HANGS", "1")
    async with edited.open(edited.app(functions=hanging.format(rest=""))) as client:
        assert told.is_set()
        assert client.state() == {("acc", "a"): 5}
        client.crash()
    told.clear()
    async with edited.open(_times(edited, 3), accept_changed_replay=True) as client:
        assert not client.engine.app_change.recorded_code_ran
    assert not told.is_set()


async def test_a_damaged_snapshot_amid_the_change_costs_a_longer_replay(edited: Edited) -> None:
    client = edited.open(_times(edited, 2))
    async with client:
        for number in range(4):
            await client.call("acc", f"k{number}", "note", 5)
            if number < 2:
                await client.engine.snapshot()
        client.crash()
    newest = sorted((edited.data / "objects" / "slots").iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[:-3] + b"xyz")
    async with edited.open(_times(edited, 3)) as client:
        assert client.state() == {("acc", f"k{number}"): 10 for number in range(4)}
        assert client.engine.counters.load_failures
        assert client.engine.counters.recovered_from == 1


async def test_a_store_that_fails_at_the_change(edited: Edited, monkeypatch: pytest.MonkeyPatch) -> None:
    await _crash(edited.open(_times(edited, 2)), ("a", "note", 5))
    monkeypatch.setattr(background, "FIRST_PAUSE_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(coordinator_host, "write_manifest", _full)
        with pytest.raises(EngineFailed, match="the snapshot before the new version of the app could not be stored"):
            async with edited.open(_times(edited, 3)):
                pass
    async with edited.open(_times(edited, 3)) as client:
        assert client.state() == {("acc", "a"): 10}


async def test_an_outside_call_that_waits_is_made_by_the_new_code(edited: Edited, tmp_path: Path) -> None:
    end = tmp_path / "end"  # of the call's thread, which this process would wait for
    functions = """
def outside(value: int) -> int:
    calls.append(value * {factor})
    while {factor} == 2 and not os.path.exists(END):
        time.sleep(0.01)
    return value * {factor}

async def ask(ctx: Context, value: int) -> None:
    await ctx.put(await ctx.call_external(outside, value))
"""
    more = f"import os\nimport time\ncalls = []\nEND = {str(end)!r}\n"
    client = edited.open(edited.app(functions=functions.format(factor=2), more=more))
    async with client:
        waiting = client.submit("acc", "a", "ask", 5)
        while not client.engine.worker.unfinished or not client.engine._externals._tasks:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await client.engine.flushed()
        client.crash()
        with pytest.raises(ConnectionError):
            await waiting
    async with edited.open(edited.app(functions=functions.format(factor=3), more=more)) as client:
        assert await client.engine.settled(PATIENCE_SECONDS)
        assert client.state() == {("acc", "a"): 15}
    end.touch()


def _full(*_: Any) -> None:
    raise OSError("no space left on device")
