"""The course of an audit that follows, and the process in which a case is judged."""

from __future__ import annotations

import asyncio
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import styx
from styx.audit import course
from styx.audit.apart import judge_apart
from styx.audit.capture import capture
from styx.audit.case import CopiedObjects
from styx.audit.metrics import AuditCounters
from styx.audit.origin import first_difference
from styx.audit.place import DirectoryPlace, snapshots
from styx.audit.records import Budget
from styx.audit.verdict import AGREED, DIFFERS, UNJUDGED, CannotJudge, Verdict
from styx.client.embedded import EmbeddedClient
from styx.store.base import NotFound
from styx.testing.patience import PATIENCE_SECONDS
from tests.audit import planted
from tests.audit.here import audit_of

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course, "POLL_SECONDS", 0.01)


async def interval(client: EmbeddedClient, *calls: str) -> int:
    """Some requests, and a snapshot behind them, of which it gives the epoch."""
    for call in ("add", "add", *calls):
        await client.call("thing", call, call)
    assert await client.engine.snapshot()
    return client.engine.coordinator.ledger.stored_epoch


async def test_it_goes_on_as_snapshots_come(tmp_path: Path) -> None:
    counters = AuditCounters()
    async with styx.embedded(planted.app, tmp_path / "data", snapshot_interval=1000.0) as client:
        epochs = [await interval(client) for _ in range(2)]
        following = audit_of(planted.app, tmp_path / "data", tmp_path / "scratch", counters=counters).follow()
        found = [await anext(following)]
        upcoming = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0.1)
        assert not upcoming.done()
        epochs.append(await interval(client, "draw"))
        found.append(await upcoming)
        epochs.append(await interval(client))
        found.append(await anext(following))
        await following.aclose()
    assert [(each.after, each.until) for each in found] == list(pairwise(epochs))
    # What differed is in the snapshot, from which the next replay begins.
    assert [each.outcome for each in found] == [AGREED, DIFFERS, AGREED]
    assert counters.differs
    shown = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(counters.text())
        for sample in family.samples
    }
    assert shown["styx_audit_intervals_total", "agreed"] == 2
    assert shown["styx_audit_intervals_total", "differs"] == 1
    assert shown["styx_audit_differences_total", "state"] == 1
    assert shown["styx_audit_epochs_total",] == epochs[-1] - epochs[0]
    assert shown["styx_audit_skipped_epochs_total",] == 0
    assert shown["styx_audit_lag_epochs",] == 0
    assert 0 <= shown["styx_audit_age_seconds",] < PATIENCE_SECONDS


async def test_what_it_is_too_late_for_is_left_out_and_counted(tmp_path: Path) -> None:
    counters = AuditCounters()
    async with styx.embedded(planted.app, tmp_path / "data", snapshot_interval=1000.0) as client:
        _, last = [await interval(client) for _ in range(2)]
        following = audit_of(planted.app, tmp_path / "data", tmp_path / "scratch", counters=counters).follow()
        assert (await anext(following)).until == last
        *_, older, newest = [await interval(client) for _ in range(4)]
        await client.engine.flushed()
        await asyncio.sleep(0.2)  # the log is released on another thread
        missed = await anext(following)
        assert (missed.outcome, missed.passing, missed.after, missed.until) == (UNJUDGED, True, last, older)
        verdict = await anext(following)
        assert (verdict.outcome, verdict.after, verdict.until) == (AGREED, older, newest)
        following_on = await interval(client)
        verdict = await anext(following)
        assert (verdict.outcome, verdict.after, verdict.until) == (AGREED, newest, following_on)
        await following.aclose()
    assert f"styx_audit_skipped_epochs_total {older - last:.1f}" in counters.text()


async def test_another_version_of_the_app_ends_it(tmp_path: Path) -> None:
    newer = styx.App("planted", [planted.thing])
    async with styx.embedded(planted.app, tmp_path / "data", snapshot_interval=1000.0) as client:
        for _ in range(2):
            await interval(client)
    following = audit_of(newer, tmp_path / "data", tmp_path / "scratch").follow()
    found = [verdict async for verdict in following]
    assert [(each.outcome, each.passing) for each in found] == [(UNJUDGED, False)]


async def test_objects_that_no_snapshot_needs_are_deleted(tmp_path: Path) -> None:
    async with styx.embedded(planted.app, tmp_path / "data", snapshot_interval=1000.0) as client:
        following = audit_of(planted.app, tmp_path / "data", tmp_path / "scratch").follow()
        numbers = []
        for _ in range(12):
            await interval(client)
            assert (await anext(following)).outcome == AGREED
            there = snapshots(DirectoryPlace(tmp_path / "data", planted.app))
            named = {ref.name for manifest in there for slot in manifest.slots for ref in slot.objects}
            numbers.append(len(named))
            assert len(list((tmp_path / "scratch" / "objects").iterdir())) == len(named)
        await following.aclose()
    assert max(numbers) < 12


def case_of(tmp_path: Path, app: styx.App) -> tuple[Path, Path]:
    """The case of a directory's last two snapshots, and its objects."""
    place = DirectoryPlace(tmp_path / "data", app)
    newest, older = snapshots(place)
    case, objects = tmp_path / "case", CopiedObjects(tmp_path / "objects")
    case.mkdir()
    capture(place, older, newest, case, objects, Budget(2**30))
    with pytest.raises(NotFound):
        objects.get_range("slots/none", 0, 1)
    return case, tmp_path / "objects"


def command(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "styx.cli.audit_process", *words)


async def judged(tmp_path: Path, source: str, call: str, stuck_s: float = PATIENCE_SECONDS) -> Verdict:
    """The verdict of a process on an app in a file of its own."""
    file = tmp_path / "loud.py"
    file.write_text(source)
    sys.path.insert(0, str(tmp_path))
    try:
        from importlib import import_module, invalidate_caches

        invalidate_caches()
        app: styx.App = import_module("loud").app
        async with styx.embedded(app, tmp_path / "data", snapshot_interval=1000.0) as client:
            await client.call("it", "a", "steady")
            assert await client.engine.snapshot()
            await client.call("it", "a", call)
        case, objects = case_of(tmp_path, app)
        return await judge_apart(command(f"{file}:app"), case, objects, None, stuck_s=stuck_s)
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("loud", None)


LOUD = """
import os, sys, time
from styx import App, Context, Operator
it = Operator("it")
first = os.getpid()
apart = "styx.cli.audit_process" in " ".join(sys.orig_argv)

@it.register
async def steady(ctx: Context) -> None:
    await ctx.put(1)

@it.register
async def prints(ctx: Context) -> None:
    print("verdict of mine", flush=True)
    os.write(1, b"at nothing\\n")

@it.register
async def hangs(ctx: Context) -> None:
    while apart:
        time.sleep(0.1)

@it.register
async def dies(ctx: Context) -> None:
    if apart:
        os.write(2, b"what a pity")
        os._exit(7)

@it.register
async def order(ctx: Context) -> None:
    await ctx.put(list({f"word {n}" for n in range(40)}))

app = App("loud", [it])
"""


async def test_what_functions_print_is_no_answer(tmp_path: Path) -> None:
    assert (await judged(tmp_path, LOUD, "prints")).outcome == AGREED


async def test_a_function_that_does_not_end_in_the_replay(tmp_path: Path) -> None:
    with pytest.raises(CannotJudge, match=r"the replay stood still for 2 s.*: does a function not end\?"):
        await judged(tmp_path, LOUD, "hangs", 2.0)


async def test_a_process_that_ends(tmp_path: Path) -> None:
    with pytest.raises(CannotJudge, match=r"the process that replays has ended, with 7: .*what a pity"):
        await judged(tmp_path, LOUD, "dies")


async def test_hashes_are_other_ones_although_they_are_fixed_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    await judged(tmp_path, LOUD, "order")
    place = (tmp_path / "case", tmp_path / "objects")
    for trace in ("one", "other"):
        await judge_apart(command(f"{tmp_path / 'loud.py'}:app"), *place, 2, tmp_path / trace)
    origin = first_difference(tmp_path / "one", tmp_path / "other", "")
    assert origin is not None
    assert origin.functions == ["it.order"]


async def test_an_app_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CannotJudge, match="there is no module 'nowhere'"):
        await judge_apart(command("nowhere:app"), tmp_path, tmp_path, None)
