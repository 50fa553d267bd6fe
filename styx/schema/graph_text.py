"""A transaction graph as text, for `styx graph`: a line for each function, with what it calls."""

from __future__ import annotations

from styx.model.graph_check import CheckedGraph


def text_of(graph: CheckedGraph) -> str:
    """The graph's name and start, then its functions in the order of their declaration; no line break at the end."""
    callees = graph.callees()
    width = max(len(str(each)) for each in callees)
    lines = [f"{graph.name}: starts at {graph.start}"]
    for function, called in callees.items():
        told = ", ".join(map(str, called)) if called else "(terminal)"
        lines.append(f"  {function!s:{width}} -> {told}")
    lines += [f"  {function} publishes {event.name}" for function, event in graph.publishes]
    return "\n".join(lines)
