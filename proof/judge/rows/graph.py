"""A directed graph with named edges: its cycles, and which nodes reach which."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class Graph:
    """Nodes are 0 to `size` - 1. Of several edges between two nodes the first is kept."""

    def __init__(self, size: int) -> None:
        self.edges: list[dict[int, str]] = [{} for _ in range(size)]

    def add(self, start: int, end: int, name: str) -> None:
        """Adds an edge; none from a node to itself."""
        if start != end:
            self.edges[start].setdefault(end, name)

    def order(self) -> list[int] | None:
        """The nodes in an order that all edges respect. None if there is a cycle."""
        waiting = [0] * len(self.edges)
        for edges in self.edges:
            for end in edges:
                waiting[end] += 1
        ready = [node for node, number in enumerate(waiting) if not number]
        for node in ready:
            for end in self.edges[node]:
                waiting[end] -= 1
                if not waiting[end]:
                    ready.append(end)
        return ready if len(ready) == len(self.edges) else None

    def before(self, order: Iterable[int], counted: int) -> list[int]:
        """For each node the nodes below `counted` that reach it, as the bits of a number."""
        before = [0] * len(self.edges)
        for node in order:
            reached = before[node] | (1 << node if node < counted else 0)
            for end in self.edges[node]:
                before[end] |= reached
        return before

    def cycle(self) -> list[int]:
        """A cycle, short if there is a short one; empty if there is none. The last node has an edge to the first."""
        found: list[int] = []
        for node in sorted(self._on_cycles()):
            path = self._back(node, len(found))
            if path and (not found or len(path) < len(found)):
                found = path
        return found

    def _on_cycles(self) -> set[int]:
        """Nodes without those that no cycle has: those are taken away from both ends, again and again."""
        left = _pruned({node: set(edges) for node, edges in enumerate(self.edges)})
        back: dict[int, set[int]] = {node: set() for node in left}
        for node, ends in left.items():
            for end in ends:
                back[end].add(node)
        return set(_pruned(back))

    def _back(self, start: int, below: int) -> list[int]:
        """The shortest way from a node back to itself, with fewer than `below` nodes; 0: any number."""
        came_from: dict[int, int] = {}
        nodes = deque([(start, 1)])
        while nodes:
            node, length = nodes.popleft()
            if below and length >= below:
                return []
            for end in self.edges[node]:
                if end == start:
                    path = [node]
                    while path[-1] != start:
                        path.append(came_from[path[-1]])
                    return path[::-1]
                if end not in came_from:
                    came_from[end] = node
                    nodes.append((end, length + 1))
        return []


def _pruned(edges: dict[int, set[int]]) -> dict[int, set[int]]:
    """The part of a graph in which every node has an edge to another one of the part."""
    back: dict[int, list[int]] = {node: [] for node in edges}
    for node, ends in edges.items():
        for end in ends:
            back[end].append(node)
    numbers = {node: len(ends) for node, ends in edges.items()}
    gone = [node for node, number in numbers.items() if not number]
    for node in gone:
        for start in back[node]:
            numbers[start] -= 1
            if not numbers[start]:
                gone.append(start)
    dropped = set(gone)
    return {node: ends - dropped for node, ends in edges.items() if node not in dropped}
