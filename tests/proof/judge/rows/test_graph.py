"""The graph: orders, what reaches what, and short cycles."""

from __future__ import annotations

from random import Random

import pytest

from proof.judge.rows.graph import Graph


def graph(size: int, *edges: tuple[int, int]) -> Graph:
    made = Graph(size)
    for start, end in edges:
        made.add(start, end, "edge")
    return made


def test_an_order_respects_all_edges_and_a_cycle_has_none() -> None:
    assert graph(4, (3, 1), (1, 0), (3, 2)).order() == [3, 1, 2, 0]
    assert graph(3, (0, 1), (1, 2), (2, 1)).order() is None


def test_an_edge_to_itself_is_none_and_of_two_the_first_is_kept() -> None:
    made = graph(2, (0, 0), (0, 1))
    made.add(0, 1, "other")
    assert made.edges == [{1: "edge"}, {}]


def test_what_reaches_a_node_is_counted_through_nodes_that_are_not() -> None:
    made = graph(4, (0, 3), (3, 1), (1, 2))
    order = made.order()
    assert order is not None
    assert made.before(order, 3) == [0b000, 0b001, 0b011, 0b001]


def test_the_shortest_cycle_is_found_among_others() -> None:
    made = graph(9, (8, 0), (0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 3), (4, 5), (5, 6), (6, 4))
    assert sorted(made.cycle()) == [3, 4]
    assert graph(3, (0, 1), (1, 2)).cycle() == []


@pytest.mark.parametrize("seed", range(30))
def test_a_cycle_is_one_of_edges_and_is_found_if_there_is_no_order(seed: int) -> None:
    rng = Random(seed)
    made = graph(12, *((rng.randrange(12), rng.randrange(12)) for _ in range(14)))
    cycle = made.cycle()
    assert bool(cycle) is (made.order() is None)
    assert len(set(cycle)) == len(cycle)
    assert all(end in made.edges[start] for start, end in zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))
