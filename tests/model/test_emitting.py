"""`ctx.emit`, one transaction after the other in the serial reference: what is emitted, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from styx import App, Context, Event, Operator
from styx.messages import EventRecord, Request
from styx.model.event import EVENTS_PER_FUNCTION_MAX
from styx.testing.serial import Place, SerialReference
from tests.plain_form import plain_form

paid: Event[int] = Event("paid", int, version=3)
other: Event[int] = Event("paid", int)
wrong: Any = "x"
shop = Operator("shop", key_type=tuple[str, int])
LOCK_FREE = Place(4, 1)
LOCAL = Place(5, 3)


@shop.register
async def pay(ctx: Context, amount: int) -> None:
    ctx.emit(paid, amount)
    ctx.emit(paid, amount + 1)


@shop.register
async def pay_elsewhere(ctx: Context, key: Any) -> None:
    ctx.emit(paid, 1, key=tuple(key) if isinstance(key, list) else key)


@shop.register
async def fail(ctx: Context) -> None:
    ctx.emit(paid, 1)
    raise ValueError("no")


@shop.register
async def swallow(ctx: Context) -> None:
    try:
        ctx.emit(paid, wrong)
    except Exception:  # noqa: BLE001 - what users write
        pass


@shop.register
async def emit_what(ctx: Context, what: str) -> None:
    wanted: Any = {"other": other, "name": "paid", "none": None}[what]
    ctx.emit(wanted, 1)


@shop.register
async def many(ctx: Context, times: int) -> None:
    for _ in range(times):
        ctx.emit(paid, 1)


@shop.register(read_only=True)
async def look(ctx: Context) -> None:
    ctx.emit(paid, 1)


@shop.register
async def deep(ctx: Context, left: int, before: int) -> None:
    if not left:
        ctx.emit(paid, before)
        ctx.emit(paid, before + 1)
        return
    for _ in range(before):
        ctx.call_async(shop, look_only, ctx.key)
    await ctx.call(shop, deep, ctx.key, (left - 1, before))


@shop.register
async def look_only(ctx: Context) -> None:
    await ctx.get()


app = App("shop", [shop], events=[paid])


def run(function: str, *arguments: Any, place: Place = LOCK_FREE) -> tuple[Any, list[EventRecord]]:
    """The error and the events of a transaction."""
    reference = SerialReference(app)
    request = Request("r", "shop", ["a", 7], function, msgspec.msgpack.encode(arguments))
    outcome = reference.run(9, 1_000, request, place)
    assert reference.state == {}
    return outcome.error, reference.emitted


def test_what_is_emitted_has_its_place_and_its_giver() -> None:
    error, (first, second) = run("pay", 5)
    assert error is None
    assert (first.event, first.version, first.payload, second.payload) == ("paid", 3, b"\x05", b"\x06")
    assert (first.epoch, first.phase, first.tid, first.operator, first.key) == (4, 1, 9, "shop", ["a", 7])
    assert (first.time_us, first.slot) == (1_000, shop.slot_of(("a", 7), 4))
    assert first.place < second.place


def test_an_event_of_phase_3_says_so() -> None:
    _, (first, _) = run("pay", 5, place=LOCAL)
    assert (first.epoch, first.phase) == (5, 3)


@pytest.mark.parametrize("key", ["b", 8, ["b", 8]])
def test_an_event_at_another_key_is_in_its_partition(key: Any) -> None:
    _, [event] = run("pay_elsewhere", key)
    kinds = (str, int) if isinstance(key, list) else type(key)
    assert event.slot == Operator("o", key_type=kinds).slot_of(tuple(key) if isinstance(key, list) else key, 4)
    assert (event.key, event.operator) == (key, "shop")


@pytest.mark.parametrize(
    ("function", "arguments", "told"),
    [
        ("fail", (), "no"),
        ("swallow", (), "event 'paid': 'x' does not fit the type of event 'paid', int: Expected `int`, got `str`"),
        ("emit_what", ("other",), "ctx.emit got Event('paid', int, version=1), which app 'shop' does not have"),
        ("emit_what", ("name",), "ctx.emit got 'paid', which is not an Event: declare it in App(events=[…])"),
        ("emit_what", ("none",), "ctx.emit got None, which is not an Event"),
        ("look", (), "emit"),
        ("pay_elsewhere", (1.5,), "ctx.emit(…, key=…) takes a str, an int"),
        ("many", (EVENTS_PER_FUNCTION_MAX + 1,), f"emitted more than {EVENTS_PER_FUNCTION_MAX} events"),
    ],
)
def test_a_transaction_that_aborts_emits_nothing(function: str, arguments: tuple[Any, ...], told: str) -> None:
    error, events = run(function, *arguments)
    assert told in error[2]
    assert events == []


def test_as_many_as_the_limit_are_emitted() -> None:
    error, events = run("many", EVENTS_PER_FUNCTION_MAX)
    assert error is None
    assert len({event.id for event in events}) == EVENTS_PER_FUNCTION_MAX
    assert [event.place for event in events] == sorted(event.place for event in events)


@pytest.mark.parametrize("depth", [27, 40, 500])
def test_an_id_is_the_whole_place_however_deep(depth: int) -> None:
    error, events = run("deep", depth, 0)
    assert error is None
    assert len({event.id for event in events}) == 2
    place = "0" + "1" * (depth + 1) + "0"
    assert [event.id for event in events] == [f"{4:012x}0{9:016x}.{place}.{number:08x}" for number in (1, 2)]


@plain_form
def test_an_event_whose_place_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = len(run("deep", 60, 12)[1][0].id)
    assert longest > 60 * len("a13")
    monkeypatch.setattr("styx.model.event_write.EVENT_PLACE_BYTES_MAX", longest)
    assert run("deep", 60, 12)[0] is None
    monkeypatch.setattr("styx.model.event_write.EVENT_PLACE_BYTES_MAX", longest - 1)
    error, events = run("deep", 60, 12)
    assert events == []
    assert error[1] == "CallDepthExceeded"
    assert f"its place among all calls, would have {longest} bytes, and the limit is {longest - 1}: emit" in error[2]
