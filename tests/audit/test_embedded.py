"""Audits of an embedded engine's data directory: what is deterministic agrees, and what is not is found."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import styx
from benchmarks.driver.loading import load
from benchmarks.tpcc.workload import TpcC
from proof.bank import account
from styx import App
from styx.audit.course import BEGINNING
from styx.audit.verdict import AGREED, DIFFERS, UNJUDGED, Verdict
from styx.client.embedded import EmbeddedClient
from styx.log.base import Stream
from tests.audit import planted
from tests.audit.here import audit_of
from tests.benchmarks.tpcc.test_audited_engine import SETTINGS

pytestmark = pytest.mark.anyio

Play = Callable[[EmbeddedClient], Awaitable[object]]

bank = App("bank", [account])


async def recorded(app: App, directory: Path, play: Play, *, crash: bool = False, n_slots: int = 4) -> None:
    """Two snapshots of a run, between which `play` has run; with `crash` the engine was killed right behind it."""
    client = styx.embedded(app, directory, n_slots=n_slots, snapshot_interval=1000.0)
    async with client:
        await steady(client)
        assert await client.engine.snapshot()
        await play(client)
        if crash:
            assert await client.engine.flushed()
            client.crash()
    if crash:
        async with styx.embedded(app, directory, n_slots=n_slots, snapshot_interval=1000.0) as again:
            await steady(again)


async def steady(client: EmbeddedClient) -> None:
    """Requests of every app here that are deterministic."""
    operator, function = ("thing", "add") if "thing" in client.engine.worker.app.operators else ("account", "credit")
    await asyncio.gather(*(client.call(operator, f"k{number}", function, number) for number in range(20)))


async def payments(client: EmbeddedClient) -> None:
    rng = random.Random(7)
    for _ in range(20):
        keys = [f"k{rng.randrange(8)}" for _ in range(40)]
        await asyncio.gather(
            *(
                client.submit("account", one, rng.choice(["transfer", "move"]), other, rng.randrange(30))
                for one, other in zip(keys[:20], keys[20:], strict=True)
            )
        )


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 3, 4])
async def test_a_bank_agrees_on_each_number_of_workers(tmp_path: Path, workers: int, crash: bool) -> None:
    await recorded(bank, tmp_path / "data", payments, crash=crash)
    verdict = await audit_of(bank, tmp_path / "data", tmp_path / "scratch", workers=workers).once()
    assert (verdict.outcome, verdict.lines()) == (AGREED, verdict.lines())
    assert (verdict.workers, verdict.recorded_workers) == (workers, 1)
    assert verdict.replies == 400 + 20 * crash
    assert verdict.entries >= 8


@pytest.mark.parametrize("after", [None, BEGINNING])
async def test_behind_the_first_snapshot_is_the_beginning(tmp_path: Path, after: int | None) -> None:
    async with styx.embedded(bank, tmp_path / "data", snapshot_interval=1000.0) as client:
        await steady(client)
        await payments(client)
    verdict = await audit_of(bank, tmp_path / "data", tmp_path / "scratch", after=after).once()
    assert (verdict.outcome, verdict.after, verdict.workers) == (AGREED, -1, 2)
    assert verdict.replies == 420


async def test_tpc_c_agrees_with_a_crash_in_between(tmp_path: Path) -> None:
    workload = TpcC(SETTINGS)
    client = styx.embedded(workload.app, tmp_path / "data", snapshot_interval=1000.0)
    async with client:
        for loading in workload.initial():
            await load(client, loading)
        assert await client.engine.snapshot()
        await orders(client, workload, 1)
        assert await client.engine.flushed()
        client.crash()
    async with styx.embedded(workload.app, tmp_path / "data", snapshot_interval=1000.0) as client:
        await orders(client, workload, 2)
    verdict = await audit_of(workload.app, tmp_path / "data", tmp_path / "scratch", workers=3).once()
    assert verdict.outcome == AGREED, verdict.lines()
    assert verdict.replies >= 200


async def orders(client: EmbeddedClient, workload: TpcC, seed: int) -> None:
    generator = workload.generator(0, 1, seed=seed)
    sent = [generator.next() for _ in range(100)]
    await asyncio.gather(*(client.submit(*planned[1:4], *planned.arguments) for planned in sent))


async def of_planted(directory: Path, play: Play, *, crash: bool = False) -> Verdict:
    await recorded(planted.app, directory / "data", play, crash=crash)
    return await audit_of(planted.app, directory / "data", directory / "scratch").once()


async def test_events_external_calls_and_calls_for_later_agree(tmp_path: Path) -> None:
    planted.outside_calls.clear()

    async def play(client: EmbeddedClient) -> None:
        await asyncio.gather(*(client.call("thing", f"charged {number}", "charge") for number in range(5)))
        await steady(client)

    verdict = await of_planted(tmp_path, play)
    assert verdict.outcome == AGREED, verdict.lines()
    assert verdict.events == 20
    assert len(planted.outside_calls) == 5, "an audit makes no external call"


@pytest.mark.parametrize(
    ("function", "arguments", "origin", "phase"),
    [
        ("draw", [], "thing.draw", 1),
        ("draw_locally", [], "thing.draw_locally", 3),
        ("draw_there", ["elsewhere"], "thing.draw", 1),
    ],
)
async def test_a_random_number_in_the_state_is_traced_to_its_function(
    tmp_path: Path, function: str, arguments: list[str], origin: str, phase: int
) -> None:
    entity = arguments[0] if arguments else "planted"

    async def play(client: EmbeddedClient) -> None:
        await steady(client)
        await client.call("thing", "planted", function, *arguments)
        await client.call("thing", entity, "copy", "taken")
        await steady(client)

    verdict = await of_planted(tmp_path, play)
    assert (verdict.outcome, verdict.reply_differences, verdict.state_differences) == (DIFFERS, 0, 2)
    assert {(each.table, each.key) for each in verdict.first_entries} == {("thing", repr(entity)), ("thing", "'taken'")}
    assert all(each.stored != each.replayed for each in verdict.first_entries)
    assert verdict.origin is not None
    assert (verdict.origin.functions, verdict.origin.phase) == ([origin], phase)
    assert [each.partition(" ")[0] for each in verdict.writers] == [origin, "thing.put"]


async def test_among_conflicts_the_transaction_is_found(tmp_path: Path) -> None:
    """They are run in the lock phase, where each finds what the one before it has left."""

    async def play(client: EmbeddedClient) -> None:
        await asyncio.gather(
            client.call("thing", "k1", "put", 1),
            client.call("thing", "k1", "draw"),
            client.call("thing", "k1", "copy", "k2"),
        )

    verdict = await of_planted(tmp_path, play)
    assert verdict.origin is not None
    assert (verdict.outcome, verdict.origin.functions, verdict.origin.phase) == (DIFFERS, ["thing.draw"], 2)


async def test_the_clock_in_a_reply_is_the_first_difference(tmp_path: Path) -> None:
    async def play(client: EmbeddedClient) -> None:
        await steady(client)
        reply = await client.submit("thing", "planted", "clock")
        places.append((reply.epoch, reply.phase, reply.tid))
        await client.call("thing", "planted", "clock")

    places: list[tuple[int, int, int]] = []
    verdict = await of_planted(tmp_path, play)
    assert (verdict.outcome, verdict.reply_differences) == (DIFFERS, 2)
    first = verdict.first_replies[0]
    assert (first.epoch, first.phase, first.tid) == places[0]
    assert first.function == "thing['planted'], function clock"
    assert verdict.origin is not None
    assert (verdict.origin.epoch, verdict.origin.tid) == (places[0][0], places[0][2])
    assert verdict.origin.functions == ["thing.clock"]
    assert "was answered, the replay gives" in "\n".join(verdict.lines())


async def test_an_event_that_differs(tmp_path: Path) -> None:
    verdict = await of_planted(tmp_path, lambda client: client.call("thing", "planted", "tell"))
    assert (verdict.outcome, verdict.differences, verdict.event_differences) == (DIFFERS, 1, 1)
    [found] = verdict.first_events
    assert (found.event, found.recorded != found.replayed) == ("told", True)


async def test_a_replay_that_cannot_go_on_is_a_difference(tmp_path: Path) -> None:
    """Recorded epochs take calls for later that the replay's functions have not given at that time."""

    async def play(client: EmbeddedClient) -> None:
        for _ in range(5):
            await client.call("thing", "planted", "later", 20)
            assert await client.engine.settled(10.0)

    verdict = await of_planted(tmp_path, play)
    assert verdict.outcome == DIFFERS
    assert verdict.origin is not None
    assert verdict.origin.functions == ["thing.later"]


async def test_other_words_of_an_error_are_counted_apart(tmp_path: Path) -> None:
    async def play(client: EmbeddedClient) -> None:
        reply = await client.submit("thing", "planted", "vague", idempotency_key="once")
        assert reply.error is not None

    verdict = await of_planted(tmp_path, play)
    assert (verdict.outcome, verdict.worded, verdict.differences) == (AGREED, 1, 0)
    assert "errors in other words, which is harmless: 1" in verdict.lines()[0]


async def test_differences_beyond_the_first_are_counted(tmp_path: Path) -> None:
    verdict = await of_planted(
        tmp_path, lambda client: asyncio.gather(*(client.call("thing", f"c{number}", "clock") for number in range(25)))
    )
    assert (verdict.reply_differences, len(verdict.first_replies)) == (25, 10)
    assert (verdict.state_differences, len(verdict.first_entries)) == (25, 10)


async def test_while_the_engine_runs(tmp_path: Path) -> None:
    async with styx.embedded(bank, tmp_path / "data", snapshot_interval=1000.0) as client:
        for _ in range(2):
            await payments(client)
            assert await client.engine.snapshot()
        await payments(client)
        verdict = await audit_of(bank, tmp_path / "data", tmp_path / "scratch").once()
        await payments(client)
    assert (verdict.outcome, verdict.replies) == (AGREED, 400)


async def test_nothing_in_the_directory_changes(tmp_path: Path) -> None:
    await recorded(bank, tmp_path / "data", payments)
    before = contents(tmp_path / "data")
    assert (await audit_of(bank, tmp_path / "data", tmp_path / "scratch").once()).outcome == AGREED
    assert contents(tmp_path / "data") == before
    assert not list((tmp_path / "scratch").glob("case"))


def contents(directory: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


async def test_other_code_is_not_judged(tmp_path: Path) -> None:
    await recorded(bank, tmp_path / "data", payments)
    other = App("bank", planted.app.operators.values())
    verdict = await audit_of(other, tmp_path / "data", tmp_path / "scratch").once()
    assert (verdict.outcome, verdict.passing) == (UNJUDGED, False)
    assert "is not the code of version 1" in verdict.reason


async def test_what_the_log_has_released_is_not_judged(tmp_path: Path) -> None:
    async with styx.embedded(bank, tmp_path / "data", snapshot_interval=1000.0) as client:
        for _ in range(4):
            await payments(client)
            assert await client.engine.snapshot()
        for _ in range(100):  # it is released on another thread
            if client.engine.log.bounds(Stream.EPOCHS, 0)[0]:
                break
            await asyncio.sleep(0.05)
    verdict = await audit_of(bank, tmp_path / "data", tmp_path / "scratch", after=BEGINNING).once()
    assert (verdict.outcome, verdict.passing) == (UNJUDGED, True)
    assert "it went while it was copied" in verdict.reason


@pytest.mark.parametrize(
    ("after", "until", "scratch_bytes", "reason"),
    [
        (7, None, 2**30, "there is no snapshot of epoch 7; there are those of"),
        (None, 7, 2**30, "there is no snapshot of epoch 7; there are those of"),
        (None, None, 1000, "give a larger --scratch-bytes"),
    ],
)
async def test_what_is_not_there_or_too_much(
    tmp_path: Path, after: int | None, until: int | None, scratch_bytes: int, reason: str
) -> None:
    await recorded(bank, tmp_path / "data", payments)
    audit = audit_of(
        bank, tmp_path / "data", tmp_path / "scratch", after=after, until=until, scratch_bytes=scratch_bytes
    )
    verdict = await audit.once()
    assert (verdict.outcome, reason in verdict.reason) == (UNJUDGED, True), verdict.reason
    assert verdict.lines()[0].endswith(verdict.reason)


async def test_more_workers_than_slots(tmp_path: Path) -> None:
    await recorded(bank, tmp_path / "data", payments)
    verdict = await audit_of(bank, tmp_path / "data", tmp_path / "scratch", workers=5).once()
    assert verdict.reason == "--workers is a number from 1 to 4, the deployment's slots, got 5"


async def test_behind_a_change_of_the_code(tmp_path: Path) -> None:
    """The snapshot on which the new version began is the older one's: its state is converted, and the rest agrees."""
    await recorded(planted.app, tmp_path / "data", steady)
    other = App("planted", planted.app.operators.values(), events=[planted.told], graphs=())
    newer = App("planted", [*other.operators.values(), account], events=[planted.told])
    async with styx.embedded(newer, tmp_path / "data", snapshot_interval=1000.0) as client:
        await steady(client)
        await client.call("account", "a", "credit", 1)
        assert await client.engine.snapshot()
        await steady(client)
    verdict = await audit_of(newer, tmp_path / "data", tmp_path / "scratch").once()
    assert verdict.outcome == AGREED, verdict.lines()
