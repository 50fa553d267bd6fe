"""What `client.events` refuses, of every client; and the reader that it returns."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

import styx
from styx import App, Context, Event, Operator
from styx.client.events import reader_of
from styx.errors import (
    BadArguments,
    ConfigurationError,
    EventsCut,
    EventUnreadable,
    NotSent,
    RequestRejected,
    StyxError,
)
from styx.model.agenda import FIRST_RUN, LOCAL_PART, LOCK_PHASE
from styx.model.event_seen import BEGINNING, EventMessage, checked_cursor, cursor_of
from styx.model.limits import EVENT_PLACE_BYTES_MAX
from styx.model.serial_id import event_id
from styx.testing import embedded_cluster
from tests.embedded.event_app import Noted, Paid, shop
from tests.gateway.running import running

pytestmark = pytest.mark.anyio

ID = f"{'0' * 13}{7:016x}.010.00000001"
CURSOR = f"{'0' * 12}10{7:016x}.010.00000001"
NO_CURSORS: list[Any] = [
    "",
    "END",
    "latest",
    "0",
    0,
    1.5,
    True,
    b"end",
    ["end"],
    ID,
    CURSOR + "x",
    "x" + CURSOR,
    CURSOR.replace("7", "G"),
    CURSOR[:12] + "4" + CURSOR[13:],
    CURSOR[:13] + "3" + CURSOR[14:],
    CURSOR.replace(".", ","),
    CURSOR[:-1],
    CURSOR + "\n",
    f"{'0' * 30}.{'0' * (EVENT_PLACE_BYTES_MAX + 1)}.00000001",
    f"{'0' * 30}.0e10.00000001",
    f"{'0' * 30}..00000001",
    f"{'0' * 30}.00000001",
]
NO_EVENTS: list[Any] = [None, "", 5, b"order-paid", ["order-paid"], Paid, Paid(1), shop(), "x" * 101, Operator("order")]


class Source:
    """Gives these lists of messages, or raises what is among them."""

    def __init__(self, *steps: list[EventMessage] | Exception) -> None:
        self._steps = steps

    async def read(self, event: str, after: str | None, follow: bool) -> AsyncIterator[list[EventMessage]]:
        for step in self._steps:
            if isinstance(step, Exception):
                raise step
            yield step


def message(number: int, value: bytes = b'{"amount":1}') -> EventMessage:
    return EventMessage(
        event="order-paid",
        version=1,
        id=f"{'0' * 13}{number:016x}.010.00000001",
        epoch=0,
        phase=1,
        tid=number,
        operator="order",
        key=["a", 1],
        time_us=1_000_000,
        value=msgspec.Raw(value),
    )


@pytest.mark.parametrize("after", NO_CURSORS, ids=repr)
def test_what_is_no_cursor_is_refused(after: Any) -> None:
    with pytest.raises(BadArguments, match="after= takes the cursor of an event"):
        checked_cursor(after)


def test_who_takes_an_id_for_a_cursor_is_told() -> None:
    with pytest.raises(
        BadArguments, match=r"--after takes .*, which is the id of an event: its cursor is told beside it"
    ):
        checked_cursor(ID, "--after")


@pytest.mark.parametrize("after", [None, "end", CURSOR, BEGINNING, message(3).cursor])
def test_cursors(after: Any) -> None:
    assert checked_cursor(after) == after


@pytest.mark.parametrize("part", [FIRST_RUN, LOCK_PHASE, LOCAL_PART])
@pytest.mark.parametrize("step", [0, 9, 10, 99, 100, 65_001])
@pytest.mark.parametrize("depth", range(1, 330, 47))
def test_the_cursor_of_every_event_is_one(depth: int, step: int, part: int) -> None:
    cursor = cursor_of(2**40, 3, event_id(2**40, part, 2**63 - 1, step.to_bytes(2, "big") * depth, 2**31))
    assert checked_cursor(cursor) == cursor


@pytest.mark.parametrize("event", NO_EVENTS, ids=range(len(NO_EVENTS)))
def test_what_is_no_event_is_refused(event: Any) -> None:
    with pytest.raises(BadArguments, match=r"an event is a styx\.Event or its name"):
        reader_of(Source(), None, event, None, True)


@pytest.mark.parametrize("follow", [None, 1, "true", 0], ids=repr)
def test_follow_is_true_or_false(follow: Any) -> None:
    with pytest.raises(BadArguments, match="follow= is True or False"):
        reader_of(Source(), None, "x", None, follow)


@pytest.mark.parametrize("event", ["nix", Event("nix", Paid)])
def test_an_event_that_the_app_does_not_have_is_named_with_those_that_it_has(event: Any) -> None:
    with pytest.raises(BadArguments, match="app 'shop' has no event 'nix'; it has: noted, order-paid"):
        reader_of(Source(), shop(), event, None, True)


async def test_a_client_that_is_not_open_reads_nothing() -> None:
    for client in (styx.embedded(shop()), styx.connect("http://127.0.0.1:1")):
        with pytest.raises(ConfigurationError, match="not open"):
            client.events("order-paid")


async def test_all_of_them_at_once_are_only_there_without_follow() -> None:
    with pytest.raises(BadArguments, match="follow=False"):
        await reader_of(Source(), None, "x", None, True)


async def test_the_list_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.client.events.LISTED_MAX", 3)
    with pytest.raises(BadArguments, match="more than 3 events"):
        await reader_of(Source([message(n) for n in range(1, 6)]), None, "x", None, False)
    assert len(await reader_of(Source([], [message(1), message(2)], [message(3)]), None, "x", None, False)) == 3


async def test_what_is_seen() -> None:
    [event] = await reader_of(Source([message(7)]), None, Event("order-paid", Paid), None, False)
    assert event.value == Paid(1)
    assert (event.key, event.cursor, event.time.isoformat()) == (("a", 1), CURSOR, "1970-01-01T00:00:01+00:00")


async def test_an_error_is_told_each_time_and_is_no_end() -> None:
    reader = reader_of(Source([message(1)], EventsCut("gone")), None, "x", None, True)
    assert (await anext(reader)).tid == 1
    for _ in range(3):
        with pytest.raises(EventsCut, match="gone"):
            await anext(reader)


@pytest.mark.parametrize("value", [b'{"amount":"x"}', b"[]", b"null", b"5", b'{"by":"a"}'])
async def test_a_value_of_another_type_is_told_and_the_next_one_comes(value: bytes) -> None:
    reader = reader_of(Source([message(7, value), message(8)]), None, Event("order-paid", Paid, version=3), None, False)
    with pytest.raises(EventUnreadable, match="version 1, does not fit the type of version 3") as told:
        await anext(reader)
    assert told.value.cursor == CURSOR
    assert (await anext(reader)).tid == 8


class Slow:
    """Gives one message behind each place, and the next one only to who waits for it once more."""

    def __init__(self) -> None:
        self.places: list[str | None] = []

    async def read(self, event: str, after: str | None, follow: bool) -> AsyncIterator[list[EventMessage]]:
        self.places.append(after)
        yield []
        if len(self.places) > 1 or after is None:
            yield [message(len(self.places))]
        await asyncio.sleep(60)


async def test_a_wait_that_is_given_up_loses_nothing_and_is_no_end() -> None:
    source = Slow()
    async with reader_of(source, None, "x", None, True) as reader:
        assert (await anext(reader)).tid == 1
        for number in range(2, 4):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(reader), 0.01)
            assert (await anext(reader)).tid == number
    assert source.places == [None, message(1).cursor, message(2).cursor]


async def test_a_wait_for_the_first_one_from_now_on_that_is_given_up_says_so() -> None:
    """What passes until somebody waits again cannot be known."""
    async with reader_of(Slow(), None, "x", "end", True) as reader:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(reader), 0.01)
        for _ in range(2):
            with pytest.raises(StyxError, match="begin another reader"):
                await anext(reader)


async def test_a_reader_that_was_closed_begins_again() -> None:
    reader = reader_of(Source([message(1), message(2)]), None, "x", None, False)
    async with reader:
        assert (await anext(reader)).tid == 1
    assert [event.tid for event in await reader] == [1, 2]


async def test_through_a_gateway_they_are_the_same(tmp_path: Path) -> None:
    app = shop()
    async with (
        embedded_cluster(app, tmp_path) as cluster,
        running(cluster.engine) as server,
        styx.connect(server.url) as client,
    ):
        for number in range(20):
            await cluster.call("order", f"k{number}", "pay", number)
        found = await cluster.events(app.events["order-paid"])
        assert await client.events(app.events["order-paid"], follow=False) == found
        assert await client.events("order-paid", follow=False) == await cluster.events("order-paid")
        assert await client.events(app.events["order-paid"], after=found[4].cursor, follow=False) == found[5:]


async def test_through_a_gateway_a_reader_follows() -> None:
    async with (
        embedded_cluster(shop()) as cluster,
        running(cluster.engine) as server,
        styx.connect(server.url) as client,
    ):
        reader = client.events("order-paid")
        for number in range(5):
            step = asyncio.ensure_future(anext(reader))
            await cluster.call("order", "a", "pay", number)
            assert (await asyncio.wait_for(step, 20)).value["amount"] == number
        await reader.aclose()


@pytest.mark.parametrize(
    ("event", "after", "error"),
    [
        ("nix", None, "not_found: app 'shop' has no event 'nix'; it has: noted, order-paid"),
        ("a/b", None, "not_found"),
        ("ä", None, "not_found"),
        ("order-paid ", None, "not_found"),
    ],
)
async def test_a_gateway_refuses(event: str, after: str | None, error: str) -> None:
    async with (
        embedded_cluster(shop()) as cluster,
        running(cluster.engine) as server,
        styx.connect(server.url) as client,
    ):
        with pytest.raises(RequestRejected, match=error):
            await client.events(event, after=after, follow=False)


async def test_a_gateway_of_an_app_without_events_has_none() -> None:
    async with (
        embedded_cluster(App("none", [Operator("a")])) as cluster,
        running(cluster.engine) as server,
        styx.connect(server.url) as client,
    ):
        with pytest.raises(RequestRejected, match="no operator 'events'"):
            await client.events("x", follow=False)


async def test_nobody_answers() -> None:
    async with styx.connect("http://127.0.0.1:9") as client:
        with pytest.raises(NotSent, match="is the gateway running there"):
            await client.events("x", follow=False)


async def test_a_gateway_that_ends_and_comes_again_is_read_on() -> None:
    async with (
        embedded_cluster(shop()) as cluster,
        running(cluster.engine) as first,
        styx.connect(first.url) as client,
    ):
        reader = client.events("order-paid", after="end")
        step = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0.05)
        await cluster.call("order", "a", "pay", 1)
        assert (await asyncio.wait_for(step, 20)).value["amount"] == 1
        port = int(first.url.rpartition(":")[2])
        first.stop.set()
        await first.task
        await cluster.call("order", "a", "pay", 2)
        step = asyncio.ensure_future(anext(reader))
        async with _on(cluster, port):
            assert (await asyncio.wait_for(step, 20)).value["amount"] == 2
            await reader.aclose()


def _on(cluster: Any, port: int) -> Any:
    from contextlib import asynccontextmanager

    from styx.gateway.server import serve

    @asynccontextmanager
    async def served() -> AsyncIterator[None]:
        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        stop = asyncio.Event()
        task = asyncio.create_task(serve(cluster.engine, port=port, on_started=started.set_result, stop=stop))
        await started
        yield
        stop.set()
        await task

    return served()


def test_a_blocking_client_iterates() -> None:
    app = shop()
    with styx.embedded_sync(app) as client:
        for number in range(5):
            client.call("order", "a", "pay", number)
        with client.events(app.events["order-paid"], follow=False) as reader:
            assert [event.value for event in reader] == [Paid(number, "a") for number in range(5)]
        following = client.events("order-paid", after="end")
        with pytest.raises(BadArguments):
            client.events("nix")
        following.close()


def test_a_blocking_client_that_is_closed_reads_nothing() -> None:
    client = styx.embedded_sync(shop())
    with pytest.raises(ConfigurationError, match="not open"):
        client.events("order-paid")
    with client:
        reader = client.events("order-paid")
    with pytest.raises(ConfigurationError, match="not open"):
        next(reader)


# Wrong declarations and emissions, which an app's author makes before anybody reads ---------------------------------

WRONG_EVENTS: list[tuple[Callable[[], Any], str]] = [
    (lambda: Event("", Paid), "an event's name"),
    (lambda: Event("a b", Paid), "an event's name"),
    (lambda: Event("ä", Paid), "an event's name"),
    (lambda: Event("x" * 101, Paid), "an event's name"),
    (lambda: Event(5, Paid), "an event's name"),  # type: ignore[call-overload]
    (lambda: Event("x", None), "needs the type"),
    (lambda: Event("x", Any), "needs the type"),
    (lambda: Event("x", Paid, version=0), "whole number from 1"),
    (lambda: Event("x", Paid, version=True), "whole number from 1"),
    (lambda: Event("x", Paid, version=1.0), "whole number from 1"),  # type: ignore[call-overload]
    (lambda: Event("x", Paid, keep=timedelta(0)), "keep="),
    (lambda: Event("x", Paid, keep=5), "keep="),  # type: ignore[call-overload]
    (lambda: App("a", [], events=[Event("x", Paid), Event("x", Noted)]), "two events named"),
    (lambda: App("a", [], events=[Paid]), "is not an Event"),  # type: ignore[list-item]
    (lambda: App("a", [Operator("events")], events=[Event("x", Paid)]), "rename the operator"),
]


@pytest.mark.parametrize(("make", "error"), WRONG_EVENTS, ids=range(len(WRONG_EVENTS)))
def test_wrong_declarations_are_refused(make: Callable[[], Any], error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        make()


def test_an_app_without_events_may_have_an_operator_of_that_name() -> None:
    assert App("a", [Operator("events")]).operators


WRONG_EMISSIONS: list[tuple[str, Any]] = [
    ("UnsupportedValue", 5),
    ("UnsupportedValue", None),
    ("UnsupportedValue", {"amount": "1"}),
    ("UnsupportedValue", Noted("x")),
    ("UnsupportedValue", Paid("much")),  # type: ignore[arg-type]
    ("UnsupportedValue", Paid(2**70)),
    ("ValueTooLarge", Paid(1, "x" * 600_000)),
]


@pytest.mark.parametrize(("error", "value"), WRONG_EMISSIONS, ids=range(len(WRONG_EMISSIONS)))
async def test_wrong_values_abort_and_nothing_is_emitted(error: str, value: Any) -> None:
    order, paid = Operator("order"), Event("order-paid", Paid)

    @order.register
    async def emit(ctx: Context) -> None:
        await ctx.put(1)
        ctx.emit(paid, value)

    async with embedded_cluster(App("a", [order], events=[paid])) as cluster:
        reply = await cluster.request(order, "a", emit)
        assert reply.error is not None
        assert reply.error.type == error
        assert "order-paid" in reply.error.message
        assert await cluster.events(paid) == []
        assert cluster.state() == {}


async def test_what_is_no_number_is_refused_before_json_would_change_it() -> None:
    order, measured = Operator("order"), Event("measured", float)

    @order.register
    async def emit(ctx: Context) -> None:
        ctx.emit(measured, math.nan)

    async with embedded_cluster(App("a", [order], events=[measured])) as cluster:
        reply = await cluster.request(order, "a", emit)
        assert reply.error is not None
        assert reply.error.type == "UnsupportedValue"


def test_every_error_is_one_of_ours() -> None:
    assert all(issubclass(each, StyxError) for each in (EventsCut, EventUnreadable, styx.errors.EventsReleased))


def test_a_blocking_client_that_closes_ends_its_readers() -> None:
    with styx.embedded_sync(shop()) as client:
        reader = client.events("order-paid")
        told: list[BaseException] = []

        def read() -> None:
            try:
                next(reader)
            except EventsCut as error:
                told.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        while not client._client.engine.events._waiting:
            time.sleep(0.001)
    thread.join(20)
    assert not thread.is_alive()
    assert len(told) == 1
