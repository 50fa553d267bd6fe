"""What functions of a graph may call, one request after the other in the serial reference."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from styx import App, Context, Graph, Index, Operator
from styx.errors import OutsideGraph
from styx.messages import Request
from styx.model.delivery import delivery_request
from styx.model.partition_context import PartitionContext
from styx.testing.serial import Place, SerialReference

cart, stock, order = Operator("cart"), Operator("stock"), Operator("order")


def named(function: str) -> tuple[str, str]:
    operator, name = function.split(".")
    return operator, name


class Item(msgspec.Struct):
    product: int
    holder: str


items = cart.table(
    "items", Item, key="product", indexes=[Index("held", equal="holder", scope="app")]
)  # an index over all carts: the engine keeps its entries with calls of its own


@cart.register
async def checkout(ctx: Context, then: str = "", mode: str = "call") -> None:
    await ctx.call(stock, reserve, "s", (then if mode == "below" else "",))
    if then and mode == "call":
        await ctx.call(*named(then), "k")
    elif then and mode == "async":
        ctx.call_async(*named(then), "k")
    elif then and mode == "later":
        ctx.after_commit(*named(then), "k")


@cart.register
async def hold(ctx: Context) -> None:
    await ctx.rows(items).insert(Item(7, "ada"))


@cart.register_partition
async def reprice(ctx: PartitionContext) -> int:
    return 1


@cart.register
async def sweep(ctx: Context, allowed: bool) -> None:
    await ctx.call_all(cart, reprice if allowed else other_sweep)


@cart.register_partition
async def other_sweep(ctx: PartitionContext) -> int:
    return 1


@cart.register
async def swallow(ctx: Context) -> str:
    try:
        ctx.call_async(stock, reserve, "s")
    except OutsideGraph:
        return "unharmed"
    return ""


@stock.register
async def reserve(ctx: Context, then: str = "") -> None:
    if then:
        ctx.call_async(*named(then), "k")
    ctx.call_async(order, place, "o")


@order.register
async def place(ctx: Context) -> None:
    await ctx.put(await ctx.get(0) + 1)


@order.register
async def anything(ctx: Context) -> None:
    await ctx.call(stock, reserve, "s", ("cart.hold",))


GRAPHS = [
    Graph("checkout", start=checkout).edge(checkout, reserve).edge(reserve, place).terminal(place),
    Graph("hold", start=hold).terminal(hold),
    Graph("sweep", start=sweep).edge(sweep, cart.reprice).terminal(cart.reprice),
    Graph("swallow", start=swallow).terminal(swallow),
]
app = App("shop", [cart, stock, order], graphs=GRAPHS)


def run(reference: SerialReference, function: str, *arguments: Any, operator: str = "cart") -> Any:
    """The result of a request, or (type, message) of its error."""
    outcome = reference.run(1, 10**15, Request("r", operator, "a", function, msgspec.msgpack.encode(arguments)))
    return outcome.error[1:] if outcome.error is not None else msgspec.msgpack.decode(outcome.result or b"")


@pytest.fixture
def reference() -> SerialReference:
    return SerialReference(app)


def test_calls_along_the_edges_are_made(reference: SerialReference) -> None:
    assert run(reference, "checkout") is None
    assert reference.value("order", "o") == 1


@pytest.mark.parametrize("mode", ["call", "async"])
def test_another_call_ends_the_transaction(reference: SerialReference, mode: str) -> None:
    assert run(reference, "checkout", "order.place", mode) == (
        "OutsideGraph",
        "cart.checkout on 'a' called order.place, which graph 'checkout' does not allow; it allows stock.reserve: "
        "declare the edge cart.checkout -> order.place, or call it with ctx.after_commit",
    )
    assert reference.state == {}


def test_what_is_called_is_held_against_the_graph_too(reference: SerialReference) -> None:
    kind, message = run(reference, "checkout", "cart.hold", "below")
    assert kind == "OutsideGraph"
    assert "stock.reserve on 's' called cart.hold" in message


def test_a_terminal_calls_nothing(reference: SerialReference) -> None:
    kind, message = run(reference, "swallow")
    assert kind == "OutsideGraph"
    assert message == (
        "cart.swallow on 'a' called stock.reserve, but is a terminal of graph 'swallow', which calls nothing in the "
        "transaction: call it with ctx.after_commit, or declare the edge cart.swallow -> stock.reserve instead"
    )


def test_what_the_engine_calls_is_in_every_graph(reference: SerialReference) -> None:
    assert run(reference, "hold") is None
    assert len(reference.state) == 2


def test_partition_functions_are_functions_of_a_graph(reference: SerialReference) -> None:
    assert run(reference, "sweep", True) is None
    kind, message = run(reference, "sweep", False)
    assert (kind, "called cart.other_sweep, which" in message) == ("OutsideGraph", True)


def test_a_request_that_starts_elsewhere_is_in_no_graph(reference: SerialReference) -> None:
    assert run(reference, "anything", operator="order") is None


def test_a_call_after_the_commit_begins_anew(reference: SerialReference) -> None:
    """The graph ends with the transaction; and a delivery of a graph's start is in that graph."""
    assert run(reference, "checkout", "cart.swallow", "later") is None
    (call_id, (table, key)), *_ = reference.given.items()
    delivery = delivery_request(table, key, call_id, 10**15)  # type: ignore[arg-type]
    outcome = reference.run(2, 10**15, delivery, Place(1, 1, delivers=True))
    assert outcome.error is not None
    assert outcome.error[1] == "OutsideGraph"


@pytest.mark.parametrize("name", ["<checkout> reserve", "<checkout> checkout"])
def test_no_client_can_name_a_place(reference: SerialReference, name: str) -> None:
    kind, _ = run(reference, name, operator="stock" if "reserve" in name else "cart")
    assert kind == "UnknownFunction"
