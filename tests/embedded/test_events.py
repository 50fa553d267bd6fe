"""Events of an embedded engine: each once, in the serial order, over crashes and starts; and what readers are told."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import styx
from styx import App, Context, Operator
from styx.client.embedded import EmbeddedClient
from styx.embedded_engine import event_stream
from styx.errors import (
    BadArguments,
    ConfigurationError,
    EngineFailed,
    EventsCut,
    EventsReleased,
    EventUnreadable,
    OutcomeUnknown,
)
from styx.log.base import Stream
from styx.messages import EventRecord
from styx.model.event import Event
from styx.model.event_seen import BEGINNING, END, EventSeen
from styx.testing import embedded_cluster
from styx.testing.patience import PATIENCE_SECONDS
from tests.embedded.app_files import Edited
from tests.embedded.event_app import Noted, Paid, amounts, draws, shop

pytestmark = pytest.mark.anyio


async def _following(client: EmbeddedClient, n: int, **options: Any) -> list[EventSeen]:
    """The next `n` events of a reader that goes on."""
    found: list[EventSeen] = []
    async with asyncio.timeout(PATIENCE_SECONDS), client.events("order-paid", **options) as reader:
        async for event in reader:
            found.append(event)
            if len(found) == n:
                break
    return found


async def _pay(client: EmbeddedClient, n: int, first: int = 0) -> None:
    await asyncio.gather(*[client.call("order", f"k{each % 7}", "pay", each) for each in range(first, first + n)])


async def test_what_was_emitted_comes_typed_with_its_place_and_its_entity() -> None:
    app = shop()
    async with embedded_cluster(app) as cluster:
        reply = await cluster.request("order", "a", "pay", 5)
        [event] = await cluster.events(app.events["order-paid"])
        assert event.value == Paid(5, "a")
        assert (event.event, event.version, event.operator, event.key) == ("order-paid", 1, "order", "a")
        assert (event.epoch, event.phase, event.tid) == (reply.epoch, reply.phase, reply.tid)
        assert event.time.tzinfo is not None
        assert await cluster.events("order-paid") == [event._replace(value={"amount": 5, "by": "a"})]


async def test_they_are_in_the_serial_order_over_all_slots() -> None:
    async with embedded_cluster(shop(), n_slots=5) as cluster:
        await _pay(cluster, 200)
        found = await cluster.events("order-paid")
        assert len(found) == 200
        places = [(event.epoch, event.phase, event.tid) for event in found]
        assert places == sorted(places)
        assert len({event.phase for event in found}) > 1, "some were in conflict"
        assert [event.cursor for event in found] == sorted({event.cursor for event in found})


async def test_an_abort_emits_nothing() -> None:
    async with embedded_cluster(shop()) as cluster:
        assert (await cluster.request("order", "a", "pay_and_fail", 5)).error is not None
        assert await cluster.events("order-paid") == []


async def test_events_of_one_name_alone_are_given() -> None:
    app = shop()
    async with embedded_cluster(app) as cluster:
        await cluster.call("order", "a", "note", "x")
        await cluster.call("order", "a", "pay", 1)
        assert [each.value for each in await cluster.events(app.events["noted"])] == [Noted("x")]
        assert len(await cluster.events("order-paid")) == 1


async def test_calls_for_later_have_emitted_when_the_fixture_gives_the_list() -> None:
    async with embedded_cluster(shop()) as cluster:
        await cluster.call("order", "a", "pay_later", 7, 60)
        assert await cluster.events("order-paid") == []
        await cluster.advance(timedelta(minutes=2))
        assert [event.value["amount"] for event in await cluster.events("order-paid")] == [7]


async def test_a_reader_goes_on_behind_each_cursor() -> None:
    async with embedded_cluster(shop(), n_slots=3) as cluster:
        await _pay(cluster, 60)
        found = await cluster.events("order-paid")
        for at in range(0, 60, 7):
            assert await cluster.events("order-paid", after=found[at].cursor) == found[at + 1 :]
        assert await cluster.events("order-paid", after=BEGINNING) == found
        assert await cluster.events("order-paid", after=END) == []


async def test_a_reader_follows_and_misses_nothing() -> None:
    async with embedded_cluster(shop()) as cluster:
        following = asyncio.create_task(_following(cluster, 300, follow=True))
        for first in range(0, 300, 30):
            await _pay(cluster, 30, first)
        assert await following == await cluster.events("order-paid")


async def test_from_now_on_is_what_comes_behind_the_beginning_of_the_reader() -> None:
    async with embedded_cluster(shop()) as cluster:
        await _pay(cluster, 20)
        reader = cluster.events("order-paid", after=END, follow=True)
        first = asyncio.create_task(anext(reader))
        await asyncio.sleep(0)
        await cluster.call("order", "z", "pay", 77)
        assert (await first).value == {"amount": 77, "by": "z"}
        await reader.aclose()


@pytest.mark.parametrize(("name", "most"), [("READ_RECORDS_MAX", 7), ("READ_BYTES_MAX", 100), ("READ_BYTES_MAX", 1)])
async def test_many_are_given_in_pieces(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    monkeypatch.setattr(event_stream, name, most)
    async with embedded_cluster(shop()) as cluster:
        await _pay(cluster, 50)
        assert len(await cluster.events("order-paid")) == 50
        assert len(await cluster.events("noted")) == 0


async def test_they_survive_crashes_and_starts_each_once(tmp_path: Path) -> None:
    async with embedded_cluster(shop(), tmp_path, n_slots=3) as cluster:
        for turn in range(4):
            await _pay(cluster, 40, 40 * turn)
            before = await cluster.events("order-paid")
            assert len(before) == 40 * (turn + 1)
            await cluster.crash_and_recover()
            assert await cluster.events("order-paid") == before
            if turn == 1:
                assert await cluster.engine.snapshot()


async def test_what_was_emitted_and_not_yet_durable_is_emitted_by_the_recovery(tmp_path: Path) -> None:
    async with styx.embedded(shop(), tmp_path) as client:
        await _pay(client, 30)
        client.crash()  # replies are given before they are durable
    async with styx.embedded(shop(), tmp_path) as client:
        paid = sum(client.state().values())
        found = await client.events("order-paid", follow=False)
        assert sum(event.value["amount"] for event in found) == paid
        assert len({event.id for event in found}) == len(found)


async def test_they_are_there_after_a_clean_end(tmp_path: Path) -> None:
    async with styx.embedded(shop(), tmp_path) as client:
        await _pay(client, 30)
        before = await client.events("order-paid", follow=False)
    async with styx.embedded(shop(), tmp_path) as client:
        assert await client.events("order-paid", follow=False) == before
        await client.call("order", "a", "pay", 3)
        assert await client.events("order-paid", after=before[-1].cursor, follow=False) != []


async def test_a_reader_that_waits_is_cut_when_the_engine_ends() -> None:
    client = styx.embedded(shop())
    async with client:
        await client.call("order", "a", "pay", 1)
        reader = client.events("order-paid")
        event = await anext(reader)
        waiting = asyncio.create_task(anext(reader))
        await asyncio.sleep(0)
    with pytest.raises(EventsCut, match=f"closed.*come to {event.cursor}"):
        await waiting
    with pytest.raises(EventsCut):  # it does not look like an end
        await anext(reader)


async def test_a_reader_that_waits_is_cut_when_the_engine_crashes(tmp_path: Path) -> None:
    client = styx.embedded(shop(), tmp_path)
    async with client:
        waiting = asyncio.create_task(anext(client.events("order-paid")))
        await client.call("order", "a", "note", "1")
        client.crash()
        with pytest.raises(EventsCut):
            await waiting


@pytest.mark.parametrize("function", ["draw", "sometimes"])
async def test_a_replay_that_emits_something_else_does_not_start(tmp_path: Path, function: str) -> None:
    app = draws()
    async with styx.embedded(app, tmp_path) as client:
        await client.call("ticket", "a", function)
        assert await client.engine.flushed()
        client.crash()
    with pytest.raises((EngineFailed, OutcomeUnknown), match="where event 'drawn' stands in the log"):
        async with styx.embedded(app, tmp_path):
            pytest.fail("an engine has started although its recovery has found a difference")


@pytest.mark.parametrize(
    ("function", "text", "told"), [("draw", "1", "another value"), ("sometimes", "odd", "no event")]
)
async def test_a_replay_that_emits_something_else_is_told_if_it_is_accepted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, function: str, text: str, told: str
) -> None:
    app = draws()
    async with styx.embedded(app, tmp_path) as client:
        await client.call("ticket", "a", function)
        assert await client.engine.flushed()
        client.crash()
    with caplog.at_level(logging.WARNING):
        async with styx.embedded(app, tmp_path, accept_changed_replay=True) as client:
            [event] = await client.events("drawn", follow=False)
            assert event.value == {"text": text}, "what stands there stays"
            assert client.engine.replay.found == 1
    assert f"{told} where event 'drawn' stands" in caplog.text


async def test_too_many_are_released_and_a_late_reader_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "EVENTS_IN_MEMORY_MAX", 10)
    monkeypatch.setattr(event_stream, "RELEASE_SECONDS_MIN", 0.0)
    async with styx.embedded(shop(), n_slots=1) as client:
        await _pay(client, 50)
        assert await client.engine.snapshot()
        await _pay(client, 10)
        found = await client.events("order-paid", follow=False)
        assert await client.engine.snapshot()
        left = await client.events("order-paid", follow=False)
        assert left == found[-11:], "with one before the first that is kept"
        assert await client.events("order-paid", after=found[55].cursor, follow=False) == found[56:]
        with pytest.raises(EventsReleased, match="7 days, 0:00:00, and at most 10 of a slot"):
            await client.events("order-paid", after=found[20].cursor, follow=False)
        with pytest.raises(EventsReleased):
            await client.events("order-paid", after=BEGINNING, follow=False)


async def test_old_ones_are_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "RELEASE_SECONDS_MIN", 0.0)
    async with styx.embedded(shop(), tmp_path, n_slots=1) as client:
        await _pay(client, 20)
        found = await client.events("order-paid", follow=False)
        assert await client.engine.snapshot()
        await client.engine.set_forward(8 * 86_400_000_000)
        await client.call("order", "a", "pay", 1)
        assert await client.engine.snapshot()
        async with asyncio.timeout(20):
            while client.engine.log.bounds(Stream.EVENTS, 0)[0] == 0:  # noqa: ASYNC110 - another thread looks
                await asyncio.sleep(0.01)
        assert len(await client.events("order-paid", follow=False)) == 2, "the young one, and one before it"
        with pytest.raises(EventsReleased):
            await client.events("order-paid", after=found[3].cursor, follow=False)
        client.crash()
    async with styx.embedded(shop(), tmp_path, n_slots=1) as client:
        assert len(await client.events("order-paid", follow=False)) >= 2, "a log on a disk releases whole batches"


async def test_with_keep_log_none_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "EVENTS_IN_MEMORY_MAX", 10)
    monkeypatch.setattr(event_stream, "RELEASE_SECONDS_MIN", 0.0)
    async with styx.embedded(shop(), n_slots=1, keep_log=True) as client:
        await _pay(client, 50)
        for _ in range(2):
            assert await client.engine.snapshot()
            await client.call("order", "a", "note", "x")
        assert len(await client.events("order-paid", follow=False)) == 50


async def test_a_value_that_does_not_fit_the_type_is_told_with_the_way_on() -> None:
    app = shop()
    other = Event("order-paid", Noted, version=2)
    async with embedded_cluster(app) as cluster:
        await cluster.call("order", "a", "pay", 5)
        reader = cluster.events(other)
        with pytest.raises(
            EventUnreadable, match=r"'order-paid', version 1, does not fit the type of version 2"
        ) as told:
            await anext(reader)
        assert await cluster.events(other, after=told.value.cursor) == []
        assert [each async for each in reader] == [], "the reader is behind it"


async def test_an_app_without_events_has_no_stream() -> None:
    async with embedded_cluster(styx.App("none", [styx.Operator("a")])) as cluster:
        with pytest.raises(styx.errors.BadArguments, match="has no event 'x', nor any other one: declare"):
            cluster.events("x")


async def test_the_order_of_appends_is_the_order_of_cursors() -> None:
    """The rule by which a place is found by halves: in each partition, cursors ascend."""
    async with embedded_cluster(shop(), n_slots=2) as cluster:
        await _pay(cluster, 120)
        await asyncio.gather(*[cluster.call("order", f"k{n % 5}", "pay_two", f"k{n % 3}", n) for n in range(60)])
        await cluster.engine.flushed()
        for slot in range(2):
            records = cluster.engine.log.read(Stream.EVENTS, slot, 0)
            cursors = [event_stream._cursor(record) for record in records]
            assert cursors == sorted(set(cursors))


async def test_what_stands_behind_a_snapshot_is_of_later_epochs_alone() -> None:
    """Those of the snapshot's own epoch are many: a start would read them for nothing."""
    async with embedded_cluster(shop(), n_slots=2) as cluster:
        await _pay(cluster, 40)
        await _pay(cluster, 40, first=40)
        await cluster.engine.flushed()
        found = await cluster.events("order-paid")
        last = found[-1].epoch
        for epoch in range(-1, last + 1):
            standing = cluster.engine.events.standing(range(2), epoch)
            assert set(standing) == {event.id for event in found if event.epoch > epoch}
        assert {event.epoch for event in found} != {last}


def test_a_record_has_what_a_reader_gets() -> None:
    assert {"epoch", "phase", "id", "event", "version", "tid", "operator", "key", "time_us"} <= set(
        EventRecord.__struct_fields__
    )
    assert amounts([]) == []


EMITS = """
class Paid(msgspec.Struct):
    {fields}

paid = styx.Event("paid", Paid{version})
acc = Operator("acc")

@acc.register
async def pay(ctx: Context, amount: int) -> None:
    ctx.emit(paid, Paid(amount))

app = App("bank", [acc], events=[{events}])
"""


def _emits(edited: Edited, fields: str, version: str = "", events: str = "paid") -> Any:
    return edited.source("import styx\n" + EMITS.format(fields=fields, version=version, events=events))


async def test_a_changed_type_needs_a_higher_version(edited: Edited) -> None:
    async with styx.embedded(_emits(edited, "amount: int"), edited.data) as client:
        await client.call("acc", "a", "pay", 1)
    changed = "amount: int\n    by: str = ''"
    with pytest.raises(ConfigurationError, match=r"event 'paid' has another type .*version=2"):
        async with styx.embedded(_emits(edited, changed), edited.data):
            pass
    app = _emits(edited, changed, ", version=2")
    async with styx.embedded(app, edited.data) as client:
        await client.call("acc", "a", "pay", 2)
        found = await client.events(app.events["paid"], follow=False)
        assert [(each.version, each.value.amount, each.value.by) for each in found] == [(1, 1, ""), (2, 2, "")]
    async with styx.embedded(_emits(edited, "amount: int"), edited.data) as client:  # back, as it was
        await client.call("acc", "a", "pay", 3)
    with pytest.raises(ConfigurationError, match="version=3"):
        async with styx.embedded(_emits(edited, "amount: str", ", version=2"), edited.data):
            pass


async def test_an_event_may_go_and_its_log_stays(edited: Edited) -> None:
    async with styx.embedded(_emits(edited, "amount: int"), edited.data) as client:
        await client.call("acc", "a", "pay", 1)
    async with styx.embedded(_emits(edited, "amount: int", events=""), edited.data) as client:
        with pytest.raises(BadArguments, match="has no event 'paid'"):
            client.events("paid")
    async with styx.embedded(_emits(edited, "amount: int"), edited.data) as client:
        assert len(await client.events("paid", follow=False)) == 1


async def test_keep_is_longer_than_a_week_and_has_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "EVENTS_KEPT_MAX", 5)
    monkeypatch.setattr(event_stream, "RELEASE_SECONDS_MIN", 0.0)
    order, kept = Operator("order"), Event("kept", Noted, keep=timedelta(days=30))

    @order.register
    async def note(ctx: Context, text: str) -> None:
        ctx.emit(kept, Noted(text))

    async with styx.embedded(App("a", [order], events=[kept]), tmp_path, n_slots=1) as client:
        for number in range(20):
            await client.call(order, "a", note, str(number))
        assert await client.engine.snapshot()
        await client.engine.set_forward(20 * 86_400_000_000)
        await client.call(order, "a", note, "young")
        assert await client.engine.snapshot()
        await client.call(order, "a", note, "younger")
        assert await client.engine.snapshot()
        assert len(await client.events(kept, follow=False)) == 22
