"""Where a graph's functions stand: in columns, in an order with few crossings, and none upon another."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from styx.model.function_reference import FunctionReference
from styx.model.graph_check import CheckedGraph
from styx.schema.graph_layout import LANE, ROW, layout_of

Edge = tuple[FunctionReference, FunctionReference]


def graph(*edges: str) -> CheckedGraph:
    """A graph of edges such as "a b", which starts at the first one's caller."""
    pairs = [tuple(FunctionReference("op", each) for each in edge.split()) for edge in edges]
    called = {caller for caller, _ in pairs}
    ends = dict.fromkeys(callee for _, callee in pairs if callee not in called)
    return CheckedGraph("g", pairs[0][0], tuple(pairs), tuple(ends))  # type: ignore[arg-type]  # pairs


def names(columns: list[list[FunctionReference]]) -> list[str]:
    return ["".join(each.name for each in column) for column in columns]


def test_a_function_stands_behind_all_that_call_it() -> None:
    assert names(layout_of(graph("a b", "b c", "a c", "c d")).columns) == ["a", "b", "c", "d"]


def test_columns_are_ordered_so_that_no_edges_cross() -> None:
    assert names(layout_of(graph("a b", "a c", "b y", "c x")).columns) in (["a", "bc", "yx"], ["a", "cb", "xy"])


def test_an_edge_that_leads_back_has_no_place_in_the_columns() -> None:
    layout = layout_of(graph("a b", "b c", "c b", "b b", "c d"))
    assert names(layout.columns) == ["a", "b", "c", "d"]
    assert [f"{caller.name}{callee.name}" for caller, callee in layout.back] == ["cb", "bb"]


def test_a_long_edge_passes_beside_what_stands_between() -> None:
    layout = layout_of(graph("a b", "b c", "a c"))
    (a, b, c) = (column[0] for column in layout.columns)
    (passes,) = layout.through[a, c]
    assert abs(passes - layout.rows[b]) >= (LANE + ROW) / 2 - 1


def random_graph(rng: Random) -> CheckedGraph:
    n = rng.randrange(2, 25)
    edges = {(rng.randrange(at), at): None for at in range(1, n)}
    edges |= {(rng.randrange(n), rng.randrange(n)): None for _ in range(rng.randrange(20))}
    return graph(*(f"{a} {b}" for a, b in edges))


@pytest.mark.parametrize("seed", range(40))
def test_nothing_stands_upon_another(seed: int) -> None:
    drawn = random_graph(Random(seed))
    layout = layout_of(drawn)
    assert {each for column in layout.columns for each in column} == {*drawn.functions()}
    assert {*layout.back, *layout.through} == {*drawn.edges}
    for column in layout.columns:
        rows = sorted(layout.rows[each] for each in column)
        assert all(b - a >= ROW - 1 for a, b in pairwise(rows))
    assert min([*layout.rows.values(), *(y for rows in layout.through.values() for y in rows)]) == 0
    assert layout_of(drawn) == layout
