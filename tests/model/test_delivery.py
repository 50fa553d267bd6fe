"""Deliveries of calls for later, one after the other in the serial reference."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from styx import App, Context, Operator, Retry
from styx.messages import Request
from styx.model.agenda import agenda_of, dead_of, decode_dead, decode_entry
from styx.model.delivery import delivery_name, delivery_request, put_off_request
from styx.testing.serial import Place, SerialReference

giver = Operator("giver", key_type=str)
book = Operator("book", key_type=str)
NOW_US = 10**15
DELIVERED = Place(1, 1, delivers=True)


@giver.register
async def give(ctx: Context, text: str, name: str | None) -> None:
    ctx.after(timedelta(seconds=1), book, write, "b", (text,), name=name, retry=Retry(2, timedelta(seconds=3)))


@giver.register
async def withdraw(ctx: Context, name: str) -> bool:
    return await ctx.cancel(name)


@book.register
async def write(ctx: Context, text: str) -> None:
    await ctx.put([*await ctx.get([]), text])


app = App("later", [giver, book])


class Serial:
    """The reference, and what was given in it, in order."""

    def __init__(self) -> None:
        self.reference = SerialReference(app)
        self.tid = 0

    def run(self, function: str, *arguments: Any) -> Any:
        self.tid += 1
        request = Request(f"r{self.tid}", "giver", "a", function, msgspec.msgpack.encode(arguments))
        outcome = self.reference.run(self.tid, NOW_US, request)
        assert outcome.result is not None, outcome.error
        return msgspec.msgpack.decode(outcome.result)

    def request(self, number: int) -> Request:
        """The delivery of the call that was given as number `number`."""
        call_id = list(self.reference.given)[number]
        table, key = self.reference.given[call_id]
        return delivery_request(table, key, call_id, NOW_US)  # type: ignore[arg-type]  # an entry's key

    def deliver(self, request: Request) -> Any:
        self.tid += 1
        outcome = self.reference.run(self.tid, NOW_US, request, DELIVERED)
        assert outcome.result is not None, outcome.error
        return msgspec.msgpack.decode(outcome.result)

    def stored(self, table: str) -> list[bytes]:
        return [data for (name, _), data in self.reference.state.items() if name == table]


@pytest.fixture
def serial() -> Serial:
    return Serial()


def test_a_call_is_made_once(serial: Serial) -> None:
    serial.run("give", "x", None)
    assert [serial.deliver(serial.request(0)) for _ in range(2)] == ["delivered", "withdrawn"]
    assert serial.reference.value("book", "b") == ["x"]
    assert serial.stored(agenda_of("giver")) == []


def test_a_delivery_that_is_under_way_makes_no_call_that_was_replaced_meanwhile(serial: Serial) -> None:
    serial.run("give", "old", "t")
    serial.run("give", "new", "t")
    assert serial.deliver(serial.request(0)) == "withdrawn"
    assert serial.reference.value("book", "b") is None
    assert serial.deliver(serial.request(1)) == "delivered"
    assert serial.reference.value("book", "b") == ["new"]


def test_a_call_that_was_withdrawn_is_not_made(serial: Serial) -> None:
    serial.run("give", "x", "t")
    assert [serial.run("withdraw", "t") for _ in range(2)] == [True, False]
    assert serial.deliver(serial.request(0)) == "withdrawn"
    assert serial.reference.value("book", "b") is None


def test_what_fails_is_put_off_and_then_kept_among_the_dead(serial: Serial) -> None:
    serial.run("give", "x", None)
    failed = put_off_request(serial.request(0), NOW_US, ("ValueError", "no"))
    assert serial.deliver(failed) == ["put off", "ValueError", "no"]
    [entry] = map(decode_entry, serial.stored(agenda_of("giver")))
    assert (entry.attempt, entry.due_us) == (1, NOW_US + 3_000_000)
    assert serial.deliver(failed) == ["dead", "ValueError", "no"]
    [dead] = map(decode_dead, serial.stored(dead_of("giver")))
    assert (dead.entry.attempt, dead.died_us, dead.error) == (2, NOW_US, ("ValueError", "no"))
    assert serial.stored(agenda_of("giver")) == []
    assert serial.deliver(failed) == ["withdrawn", "ValueError", "no"]


def test_a_request_id_names_the_delivery(serial: Serial) -> None:
    serial.run("give", "x", None)
    delivery = serial.request(0)
    [call_id] = serial.reference.given
    assert delivery_name(delivery.request_id) == (NOW_US, False, call_id, 1)
    assert delivery_name(put_off_request(delivery, NOW_US, ("E", "")).request_id) == (NOW_US, True, call_id, 1)
    assert delivery_name("r1") is None
