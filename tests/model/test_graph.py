"""Transaction graphs as they are declared, and what is refused when they are, or when an app takes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from styx import App, ConfigurationError, Context, Graph, Operator
from styx.model.function_reference import FunctionReference
from styx.model.graph import EDGES_MAX
from styx.model.graph_check import GRAPHS_MAX

cart, stock, order = Operator("cart"), Operator("stock.main"), Operator("order")


@cart.register
async def checkout(ctx: Context) -> None: ...


@cart.register(read_only=True)
async def total(ctx: Context) -> int:
    return 0


@cart.register_partition
async def reprice(ctx: Any) -> None: ...


@stock.register
async def reserve(ctx: Context) -> None: ...


@order.register
async def place(ctx: Context) -> None: ...


@stock.register
@order.register
async def audit(ctx: Context) -> None: ...


async def stranger(ctx: Context) -> None: ...


OPERATORS = [cart, stock, order]


def built(*graphs: Any) -> App:
    return App("shop", OPERATORS, graphs=graphs)


def usual() -> Graph:
    return Graph("checkout", start=cart.checkout).edge(cart.checkout, stock.reserve).terminal(stock.reserve)


# What is right ---------------------------------------------------------------------------------------------


def test_functions_are_given_in_three_ways() -> None:
    graph = Graph("g", start=checkout).edge("cart.checkout", stock.reserve).edge(reserve, "stock.main.audit")
    checked = built(graph.terminal(stock.audit)).graphs["g"]
    assert [str(each) for each in checked.functions()] == ["cart.checkout", "stock.main.reserve", "stock.main.audit"]
    assert checked.start == FunctionReference("cart", "checkout")


def test_a_graph_may_go_in_circles_that_end() -> None:
    graph = usual().edge(cart.checkout, cart.checkout).edge(cart.checkout, cart.reprice).terminal(cart.reprice)
    assert len(built(graph).graphs["checkout"].edges) == 3


def test_a_start_may_be_the_only_function() -> None:
    assert built(Graph("g", start=place).terminal(place)).graphs["g"].edges == ()


def test_a_function_may_be_in_several_graphs() -> None:
    assert len(built(usual(), Graph("g", start=place).edge(place, reserve).terminal(reserve)).graphs) == 2


def test_a_reference_stands_for_its_function() -> None:
    assert cart.function(cart.checkout) is cart.functions["checkout"]
    assert str(cart.checkout) == "cart.checkout"
    assert cart.checkout == cart.checkout
    assert cart.checkout.__name__ == "checkout"


def test_an_app_without_graphs_looks_up_nothing_more() -> None:
    app = App("shop", OPERATORS)
    assert app.first is app.resolved
    assert not app.starts


# What is wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: Graph("", start=cart.checkout), "a graph's name is letters"),
        (lambda: Graph("a b", start=cart.checkout), "got 'a b'"),
        (lambda: Graph(7, start=cart.checkout), "got 7"),  # type: ignore[arg-type]
        (lambda: Graph("g" * 129, start=cart.checkout), "at most 128 characters"),
        (lambda: Graph("g", start=None), "a function is named as cart.checkout"),
        (lambda: Graph("g", start=cart), "got Operator('cart')"),
        (lambda: Graph("g", start=("cart", "checkout")), "the text 'cart.checkout'"),
        (lambda: Graph("g", start="checkout"), "got 'checkout'"),
        (lambda: Graph("g", start="cart."), "got 'cart.'"),
        (lambda: Graph("g", start=Operator), "a function is named as"),
        (lambda: usual().edge(cart.checkout, 5), "got 5"),
        (
            lambda: usual().edge(cart.checkout, stock.reserve),
            "has the edge cart.checkout -> stock.main.reserve already",
        ),
        (lambda: usual().terminal(), "names one function at least"),
        (lambda: usual().terminal(stock.reserve), "has the terminal stock.main.reserve already"),
        (lambda: built(usual().terminal(reserve)), "a terminal is declared twice"),
        (lambda: built(usual().edge(checkout, reserve)), "an edge is declared twice"),
        (lambda: built(usual().edge(cart.checkout, "cart.clear").terminal("cart.clear")), "no function 'clear'"),
        (lambda: built(Graph("g", start="basket.checkout")), "no operator 'basket'; it has: cart, order, stock.main"),
        (lambda: built(usual().edge(cart.checkout, stranger)), "function stranger is registered on no operator"),
        (
            lambda: built(usual().edge(cart.checkout, audit)),
            "function audit is registered on several operators: say which one is meant, 'stock.main.audit' or "
            "'order.audit'",
        ),
        (lambda: built(usual().edge(order.place, stock.reserve)), "order.place is not reached from the start"),
        (lambda: built(usual().terminal(order.place)), "an edge to it is missing"),
        (
            lambda: built(usual().edge(stock.reserve, order.place).terminal(order.place)),
            "stock.main.reserve is a terminal, which calls nothing in the transaction, and has an edge to order.place",
        ),
        (lambda: built(usual().edge(cart.checkout, order.place)), "order.place calls nothing and is no terminal"),
        (lambda: built(Graph("g", start=place)), "declare .terminal(order.place)"),
        (
            lambda: built(usual().edge(cart.checkout, order.place).edge(order.place, order.place)),
            "no path from order.place ends in a terminal",
        ),
        (lambda: built(Graph("g", start=cart.reprice).terminal(cart.reprice)), "is a partition function, which no"),
        (lambda: built(Graph("g", start=total).edge(total, reserve).terminal(reserve)), "cart.total is read-only"),
        (lambda: built(usual(), usual()), "two graphs named 'checkout'"),
        (lambda: built(usual(), Graph("g", start=checkout).terminal(checkout)), "both start at cart.checkout"),
        (lambda: built("checkout"), "takes Graph objects, got 'checkout'"),
        (lambda: App("shop", OPERATORS, graphs=usual()), "graphs=[checkout]"),  # type: ignore[arg-type]
        (lambda: App("shop", OPERATORS, graphs=5), "takes a list of Graph objects"),  # type: ignore[arg-type]
        (
            lambda: built(*[Graph(f"g{n}", start=place).terminal(place) for n in range(GRAPHS_MAX + 1)]),
            f"{GRAPHS_MAX} are the limit",
        ),
    ],
)
def test_what_is_wrong_is_said(wrong: Callable[[], Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(told)):
        wrong()


def test_all_that_is_wrong_is_said_at_once() -> None:
    graph = Graph("g", start=checkout).edge(checkout, reserve).edge(place, "order.audit")
    with pytest.raises(ConfigurationError) as raised:
        built(graph)
    assert str(raised.value).count("; ") == 2


def test_a_graph_that_an_app_has_is_not_changed_any_more() -> None:
    graph = usual()
    built(graph)
    with pytest.raises(ConfigurationError, match="is in the app 'shop' already"):
        graph.edge(cart.checkout, order.place)
    with pytest.raises(ConfigurationError, match="is in the app 'shop' already"):
        graph.terminal(order.place)


def test_a_graph_that_was_refused_can_be_corrected() -> None:
    graph = usual().edge(cart.checkout, order.place)
    with pytest.raises(ConfigurationError):
        built(graph)
    assert "checkout" in built(graph.terminal(order.place)).graphs


def test_edges_are_limited() -> None:
    graph = Graph("g", start=checkout)
    for n in range(EDGES_MAX):
        graph.edge(checkout, f"cart.f{n}")
    with pytest.raises(ConfigurationError, match="split it"):
        graph.edge(checkout, place)


def test_an_operator_without_the_function_says_what_it_has() -> None:
    with pytest.raises(AttributeError, match="operator 'cart' has no function 'chekout'; it has: checkout, reprice"):
        _ = cart.chekout
    with pytest.raises(AttributeError, match="it has: none"):
        _ = Operator("empty").anything
