"""What an emission leads to inside the app, one transaction after the other in the serial reference."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from styx import App, Context, Event, Graph, Limits, Operator, Retry
from styx.messages import Request
from styx.model.agenda import agenda_of, due_of
from styx.model.delivery import UNPLACED, delivery_request, put_off_request
from styx.model.lane import lane_of
from styx.testing.serial import Place, SerialReference

NOW_US = 10**15
DELIVERS = Place(2, 1, delivers=True)


class Moved(msgspec.Struct):
    product: str
    seller: int
    amount: int


moved: Event[Moved] = Event("moved", Moved)
pinged: Event[str] = Event("pinged", str)
ponged: Event[str] = Event("ponged", str)
tagged: Event[frozenset[str]] = Event("tagged", frozenset[str])
counted: Event[int] = Event("counted", int)

product, stock, board = Operator("product"), Operator("stock"), Operator("board", key_type=tuple[str, int])


@product.register
async def move(ctx: Context, *amounts: int) -> None:
    for amount in amounts:
        ctx.emit(moved, Moved(str(ctx.key), 3, amount))


@product.register
async def fail(ctx: Context) -> None:
    ctx.emit(moved, Moved(str(ctx.key), 3, 1))
    raise ValueError("no")


@product.register
async def elsewhere(ctx: Context) -> None:
    ctx.emit(moved, Moved(str(ctx.key), 3, 1), key="other")


@stock.on(moved, key=lambda event: event.product)
async def adjust(ctx: Context, event: Moved) -> None:
    if event.amount < 0:
        raise ValueError("below nothing")
    await ctx.put(await ctx.get(0) + event.amount)


@product.on(moved, after_commit=True, retry=Retry(2, timedelta(seconds=1)))
async def note(ctx: Context, event: Moved) -> None:
    if event.amount == 4:
        raise ValueError("poison")
    await ctx.put([*await ctx.get([]), event.amount])


@board.on(moved, key=lambda event: ("all", event.seller), after_commit=True, ordered_by=lambda event: event.seller)
async def show(ctx: Context, event: Moved) -> None:
    await ctx.put([*await ctx.get([]), event.amount])


@product.register
async def ping(ctx: Context) -> None:
    ctx.emit(pinged, "ping")


@product.on(pinged)
async def pong(ctx: Context, event: str) -> None:
    ctx.emit(ponged, event + "!")


@product.on(ponged)
async def ping_again(ctx: Context, event: str) -> None:
    ctx.emit(pinged, event)


@product.register
async def tag(ctx: Context, *tags: str) -> None:
    ctx.emit(tagged, frozenset(tags))


@stock.on(tagged, key=min)
async def take_tags(ctx: Context, event: frozenset[str]) -> None:
    await ctx.put(sorted(event))


@product.register
async def count(ctx: Context, number: int) -> None:
    ctx.emit(counted, number)


KEYS: dict[int, Any] = {1: "one", 2: 2, 3: None}
GROUPS: dict[int, Any] = {1: 1.5, 2: ["x"], 4: "g"}


@stock.on(counted, key=lambda number: KEYS[number])
async def take_number(ctx: Context, event: int) -> None:
    await ctx.put(event)


@stock.on(counted, key=lambda number: "x", after_commit=True, ordered_by=lambda number: GROUPS[number])
async def take_in_order(ctx: Context, event: int) -> None: ...


app = App("shop", [product, stock, board], events=[moved, pinged, ponged, tagged, counted])


class Serial:
    """The reference, and its deliveries."""

    def __init__(self, its_app: App = app, limits: Limits | None = None) -> None:
        self.reference = SerialReference(its_app, limits)
        self.tid = 0

    def run(self, function: str, *arguments: Any, operator: str = "product") -> Any:
        """The result, or (type, message) of the error."""
        self.tid += 1
        request = Request(f"r{self.tid}", operator, "p", function, msgspec.msgpack.encode(arguments))
        outcome = self.reference.run(self.tid, NOW_US, request, Place(1, 1))
        return outcome.error[1:] if outcome.error is not None else msgspec.msgpack.decode(outcome.result or b"")

    def waiting(self, operator: str) -> list[str]:
        """The ids in the operator's agendas, in order."""
        return sorted(str(key[-1]) for table, key in self.reference.state if table == agenda_of(operator))  # type: ignore[index]

    def deliver(self, call_id: str, *behind: str, failed: int = UNPLACED) -> Any:
        """Makes calls that were given for later, together. If that fails, puts the only one off, or sets that apart
        which has `failed`.
        """
        self.tid += 1
        table, key = self.reference.given[call_id]
        request = delivery_request(table, key, call_id, NOW_US, behind)  # type: ignore[arg-type]  # an entry's key
        outcome = self.reference.run(self.tid, NOW_US, request, DELIVERS)
        if outcome.error is None:
            return msgspec.msgpack.decode(outcome.result or b"")
        put_off = put_off_request(request, NOW_US, (outcome.error[1], outcome.error[2]), failed)
        return msgspec.msgpack.decode(self.reference.run(self.tid, NOW_US, put_off, DELIVERS).result or b"")[0]

    def times(self, operator: str) -> list[int]:
        """When the waiting calls are due, in order."""
        entries = [self.reference.state[self.reference.given[each]] for each in self.waiting(operator)]
        return [due_of(data)[0] for data in entries]


@pytest.fixture
def serial() -> Serial:
    return Serial()


# In the same transaction -----------------------------------------------------------------------------------


def test_a_subscriber_is_called_in_the_transaction(serial: Serial) -> None:
    assert serial.run("move", 5, 7) is None
    assert serial.reference.value("stock", "p") == 12
    assert [each.event for each in serial.reference.emitted] == ["moved", "moved"]


def test_its_error_is_that_of_the_transaction(serial: Serial) -> None:
    assert serial.run("move", 5, -1) == ("ValueError", "below nothing")
    assert (serial.reference.state, serial.reference.emitted) == ({}, [])


def test_values_arrive_as_their_type(serial: Serial) -> None:
    assert serial.run("tag", "b", "a") is None
    assert serial.reference.value("stock", "a") == ["a", "b"]


def test_events_that_lead_to_each_other_without_end(serial: Serial) -> None:
    kind, message = serial.run("ping")
    assert kind == "CallDepthExceeded"
    assert "event 'p" in message
    assert "is handled in the same transaction by product." in message
    assert message.endswith("Events that lead to each other without end need after_commit=True")


def test_or_until_the_transaction_has_called_too_many() -> None:
    kind, message = Serial(limits=Limits(invocations_max=50)).run("ping")
    assert kind == "CallLimitExceeded"
    assert "events that lead" in message.lower()


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (2, ("BadKey", "operator 'stock' has keys of type str, got 2 of type int")),
        (3, ("BadKey", "operator 'stock' has keys of type str, got None of type NoneType")),
        (9, ("UnsupportedValue", "<stock.take_number on 'counted'>: key= raised KeyError: 9")),
        (1, ("BadKey", "a group is a str, an int of 64 bits or a tuple of them: got 1.5")),
    ],
)
def test_what_the_functions_of_the_event_must_not_give(serial: Serial, number: int, told: tuple[str, str]) -> None:
    assert serial.run("count", number) == told


def test_a_key_function_that_raises_for_the_group(serial: Serial) -> None:
    kind, message = Serial(App("shop", [product, stock, board], events=[*app.events.values()])).run("count", 2)
    assert (kind, "got 2" in message) == ("BadKey", True)


# After the commit ------------------------------------------------------------------------------------------


def test_what_is_given_is_in_the_lane_of_its_source(serial: Serial) -> None:
    serial.run("move", 1, 2)
    serial.run("move", 3)
    waiting = serial.waiting("stock")
    assert waiting == []
    (lane,) = {lane_of(each) for each in serial.waiting("product")}
    assert lane
    assert [serial.deliver(each) for each in serial.waiting("product")] == ["delivered"] * 3
    assert serial.reference.value("product", "p") == [1, 2, 3]


def test_an_aborted_transaction_gives_nothing(serial: Serial) -> None:
    serial.run("fail")
    assert serial.reference.state == {}


def test_a_group_is_held_by_an_entity_of_the_subscriber(serial: Serial) -> None:
    serial.run("move", 1, 2)
    waiting = serial.waiting("board")
    assert len({lane_of(each) for each in waiting}) == 1
    assert [serial.deliver(each) for each in waiting] == ["delivered", "delivered"]
    assert serial.reference.value("board", ("all", 3)) == [1, 2]


def test_a_poison_event_is_given_up_and_kept(serial: Serial) -> None:
    serial.run("move", 4)
    (call,) = serial.waiting("product")
    assert serial.deliver(call) == "put off"
    assert serial.waiting("product") == [call]
    assert serial.deliver(call) == "dead"
    assert ("product/<dead>", ("p", call)) in serial.reference.state


# Several calls of a lane together --------------------------------------------------------------------------


def test_calls_of_a_lane_are_made_together(serial: Serial) -> None:
    serial.run("move", 3, 1, 2)
    assert serial.deliver(*serial.waiting("product")) == "delivered"
    assert serial.deliver(*serial.waiting("board")) == "delivered"
    assert serial.reference.value("product", "p") == serial.reference.value("board", ("all", 3)) == [3, 1, 2]
    assert serial.waiting("product") == []


def test_one_that_fails_alone_is_set_apart(serial: Serial) -> None:
    serial.run("move", 1, 2, 4, 3)
    calls = serial.waiting("product")
    assert serial.deliver(*calls, failed=2) == "apart"
    assert serial.reference.value("product", "p") is None
    assert serial.times("product") == [0, 0, NOW_US, 0]
    assert serial.deliver(*calls[:2]) == "delivered"
    assert serial.deliver(calls[2]) == "put off", "that was its first attempt of two"
    assert serial.deliver(calls[2]) == "dead"
    assert serial.deliver(calls[3]) == "delivered"
    assert serial.reference.value("product", "p") == [1, 2, 3]


@pytest.mark.parametrize("failed", [UNPLACED, 7])
def test_all_are_set_apart_if_it_is_not_known_which_has_failed(serial: Serial, failed: int) -> None:
    serial.run("move", 1, 4)
    assert serial.deliver(*serial.waiting("product"), failed=failed) == "apart"
    assert serial.times("product") == [NOW_US, NOW_US]


def test_what_was_made_already_is_not_made_again(serial: Serial) -> None:
    serial.run("move", 1, 2)
    calls = serial.waiting("product")
    assert serial.deliver(calls[0]) == "delivered"
    assert serial.deliver(*calls) == "delivered"
    assert serial.reference.value("product", "p") == [1, 2]
    assert serial.deliver(*calls) == "withdrawn"


def test_an_event_of_another_key_is_given_by_who_emits_it(serial: Serial) -> None:
    serial.run("elsewhere")
    assert len(serial.waiting("product")) == 1
    assert serial.reference.emitted[0].key == "other"


def test_no_client_can_give_to_a_group(serial: Serial) -> None:
    assert serial.run("<queue>", operator="stock")[0] == "UnknownFunction"


# In graphs -------------------------------------------------------------------------------------------------


def in_graph(graph: Graph) -> Serial:
    return Serial(App("shop", [product, stock, board], events=[*app.events.values()], graphs=[graph]))


def test_a_call_for_an_event_is_an_edge() -> None:
    serial = in_graph(Graph("moves", start=move).edge(move, adjust).terminal(adjust))
    assert serial.run("move", 1) is None
    assert len(serial.waiting("product") + serial.waiting("board")) == 2


def test_without_the_edge_it_is_refused() -> None:
    serial = in_graph(Graph("moves", start=move).edge(move, take_tags).terminal(take_tags))
    kind, message = serial.run("move", 1)
    assert kind == "OutsideGraph"
    assert "product.move on 'p' called stock.adjust" in message


def test_what_a_terminal_emits_is_handled_after_the_commit() -> None:
    serial = in_graph(Graph("moves", start=move).terminal(move))
    assert serial.run("move", 1) is None
    assert serial.reference.value("stock", "p") is None
    calls = serial.waiting("product")
    assert len({lane_of(each) for each in calls}) == 2
    assert serial.deliver(calls[0]) == "delivered"


def test_what_is_emitted_in_order_too_deep_is_refused() -> None:
    node: Operator = Operator("node")

    @node.register
    async def deep(ctx: Context, calls: int) -> None:
        if calls:
            await ctx.call(node, deep, "n", (calls - 1,))
        else:
            ctx.emit(pinged, "x")

    @node.on(pinged, after_commit=True)
    async def hear(ctx: Context, event: str) -> None: ...

    serial = Serial(App("deep", [node], events=[pinged]))
    assert serial.run("deep", 25, operator="node") is None
    kind, message = serial.run("deep", 40, operator="node")
    assert (kind, "emit it less deep" in message) == ("CallDepthExceeded", True)
