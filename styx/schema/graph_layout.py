"""Where the functions and edges of a transaction graph stand in a picture: in columns, from the start to the right.

A function's column is the length of the longest path to it. Edges that lead back run below all others. Within the
columns, functions are ordered so that few edges cross. The same graph gives the same places. Nothing is drawn here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from styx.model.function_reference import FunctionReference
from styx.model.graph_check import CheckedGraph

SWEEPS: Final = 8
"""How often the columns are ordered anew, and how often their rows are moved."""
ROW: Final = 66
"""From one function to the next in a column, in pixels."""
LANE: Final = 26
"""Likewise between edges, which pass through a column or lead back."""


class _Bend(NamedTuple):
    """Where an edge passes through a column in which none of its ends is."""

    edge: int
    column: int


_Node = FunctionReference | _Bend
_Columns = list[list[_Node]]


class Layout(NamedTuple):
    """`columns` are the functions of each column, `rows` the height of each function in pixels, from 0 on. `through`
    gives the heights at which an edge passes the columns between its ends. `back` are the edges that lead back, or from
    a function to itself, and are in neither.
    """

    columns: list[list[FunctionReference]]
    rows: Mapping[FunctionReference, int]
    through: Mapping[tuple[FunctionReference, FunctionReference], list[int]]
    back: list[tuple[FunctionReference, FunctionReference]]


def layout_of(graph: CheckedGraph) -> Layout:
    """The places of a graph's functions and edges."""
    back = _edges_back(graph)
    forward = [edge for edge in graph.edges if edge not in back]
    column = _columns(graph, forward)
    columns: _Columns = [[] for _ in range(max(column.values()) + 1)]
    for each in graph.functions():
        columns[column[each]].append(each)
    links: list[tuple[_Node, _Node]] = []
    for number, (caller, callee) in enumerate(forward):
        bends = [_Bend(number, each) for each in range(column[caller] + 1, column[callee])]
        for bend in bends:
            columns[bend.column].append(bend)
        chain: list[_Node] = [caller, *bends, callee]
        links += pairwise(chain)
    neighbours = _Neighbours(links)
    columns = _ordered(columns, neighbours)
    rows = _rows(columns, neighbours)
    through = {
        edge: [rows[_Bend(number, each)] for each in range(column[edge[0]] + 1, column[edge[1]])]
        for number, edge in enumerate(forward)
    }
    functions = [[each for each in nodes if isinstance(each, FunctionReference)] for nodes in columns]
    places = {each: y for each, y in rows.items() if isinstance(each, FunctionReference)}
    return Layout(functions, places, through, [edge for edge in graph.edges if edge in back])


class _Neighbours:
    """The nodes beside each node: `before` in the column to the left, `behind` in that to the right."""

    def __init__(self, links: Sequence[tuple[_Node, _Node]]) -> None:
        self.links = links
        self.before: dict[_Node, list[_Node]] = {}
        self.behind: dict[_Node, list[_Node]] = {}
        for left, right in links:
            self.before.setdefault(right, []).append(left)
            self.behind.setdefault(left, []).append(right)


def _edges_back(graph: CheckedGraph) -> set[tuple[FunctionReference, FunctionReference]]:
    """The edges that lead to a function on the way to their caller, found depth first from the start on."""
    callees, back = graph.callees(), set[tuple[FunctionReference, FunctionReference]]()
    seen, on_the_way = {graph.start}, {graph.start}
    todo = [(graph.start, iter(callees[graph.start]))]
    while todo:
        caller, left = todo[-1]
        callee = next(left, None)
        if callee is None:
            todo.pop()
            on_the_way.discard(caller)
        elif callee in on_the_way:
            back.add((caller, callee))
        elif callee not in seen:
            seen.add(callee)
            on_the_way.add(callee)
            todo.append((callee, iter(callees[callee])))
    return back


def _columns(
    graph: CheckedGraph, forward: list[tuple[FunctionReference, FunctionReference]]
) -> dict[FunctionReference, int]:
    """The longest path from the start to each function, over edges that lead forward."""
    column = dict.fromkeys(graph.functions(), 0)
    callers = dict.fromkeys(column, 0)
    callees: dict[FunctionReference, list[FunctionReference]] = {each: [] for each in column}
    for caller, callee in forward:
        callers[callee] += 1
        callees[caller].append(callee)
    todo = [each for each in column if not callers[each]]
    for caller in todo:  # grows meanwhile
        for callee in callees[caller]:
            column[callee] = max(column[callee], column[caller] + 1)
            callers[callee] -= 1
            if not callers[callee]:
                todo.append(callee)
    return column


# Order and height within the columns -----------------------------------------------------------------------


def _ordered(columns: _Columns, neighbours: _Neighbours) -> _Columns:
    """The columns with the order of the fewest crossings that sweeps in both directions have found."""
    best, fewest = columns, _crossings(columns, neighbours)
    for sweep in range(SWEEPS):
        columns = [[*nodes] for nodes in columns]
        rightward = sweep % 2 == 0
        beside = neighbours.before if rightward else neighbours.behind
        for number in range(len(columns)) if rightward else reversed(range(len(columns))):
            other = number - 1 if rightward else number + 1
            if 0 <= other < len(columns):
                place = {node: at for at, node in enumerate(columns[other])}
                columns[number] = _by_mean(columns[number], beside, place)
        crossings = _crossings(columns, neighbours)
        if crossings < fewest:
            best, fewest = columns, crossings
    return best


def _by_mean(nodes: list[_Node], beside: Mapping[_Node, list[_Node]], place: Mapping[_Node, int]) -> list[_Node]:
    """The nodes in the order of the mean place of what is beside them; those without any stay where they are."""
    means = []
    for at, node in enumerate(nodes):
        places = [place[each] for each in beside.get(node, ())]
        means.append(sum(places) / len(places) if places else float(at))
    order = sorted(range(len(nodes)), key=lambda at: means[at])
    return [nodes[at] for at in order]


def _crossings(columns: _Columns, neighbours: _Neighbours) -> int:
    place = {node: (number, at) for number, nodes in enumerate(columns) for at, node in enumerate(nodes)}
    ends: list[list[tuple[int, int]]] = [[] for _ in columns]
    for left, right in neighbours.links:
        ends[place[left][0]].append((place[left][1], place[right][1]))
    return sum(
        (a[0] - b[0]) * (a[1] - b[1]) < 0 for pairs in ends for at, a in enumerate(pairs) for b in pairs[at + 1 :]
    )


def _rows(columns: _Columns, neighbours: _Neighbours) -> dict[Any, int]:
    """The heights: near those of the neighbours, in the order of the columns, and none too near to the next."""
    rows: dict[_Node, float] = {}
    for nodes in columns:
        for node, y in zip(nodes, _spread(nodes, [0.0] * len(nodes)), strict=True):
            rows[node] = y
    for sweep in range(SWEEPS):
        beside = neighbours.before if sweep % 2 == 0 else neighbours.behind
        for nodes in columns if sweep % 2 == 0 else reversed(columns):
            wanted = [_mean([rows[each] for each in beside.get(node, ())], rows[node]) for node in nodes]
            for node, y in zip(nodes, _spread(nodes, wanted), strict=True):
                rows[node] = y
    top = min(rows.values())
    return {node: round(y - top) for node, y in rows.items()}


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _spread(nodes: list[_Node], wanted: list[float]) -> list[float]:
    """Heights in order, with room between them, as far above the wanted ones as below."""
    found: list[float] = []
    for at, (node, y) in enumerate(zip(nodes, wanted, strict=True)):
        found.append(y if at == 0 else max(y, found[-1] + _room(nodes[at - 1], node)))
    away = _mean([y - w for y, w in zip(found, wanted, strict=True)], 0.0)
    return [y - away for y in found]


def _room(above: _Node, below: _Node) -> float:
    heights = [LANE if isinstance(each, _Bend) else ROW for each in (above, below)]
    return sum(heights) / 2
