"""A function's place in a transaction graph, which says what the function may call there.

Each function of a graph has one more specification, and this is its `graph`. A request that begins at the graph's start
runs that one, and each call leads to the specification of the callee in the same graph. So no message has to say which
graph a transaction is in, and a function outside of all graphs is never asked. A place decides, and calls nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from styx.errors import OutsideGraph
from styx.model.function_spec import BUILT_IN, FunctionSpec
from styx.model.internal_operator import INTERNAL_MARK
from styx.model.partition_function import PARTITIONS_SUFFIX

if TYPE_CHECKING:
    from styx.model.context import Context

NAMES_TOLD_MAX = 20
"""Allowed functions that an error names."""


class GraphPlace:
    """`graph` is the graph's name, `outside` the function as it is in no graph. `callees` gives the specification at
    its place for each function that may be called. A `terminal` calls nothing in the transaction.
    """

    __slots__ = ("callees", "graph", "outside", "terminal")

    def __init__(self, graph: str, outside: FunctionSpec, terminal: bool) -> None:
        self.graph = graph
        self.outside = outside
        self.terminal = terminal
        self.callees: dict[FunctionSpec, FunctionSpec] = {}

    def callee(self, caller: Context, function: FunctionSpec) -> FunctionSpec:
        """The specification of `function` at its place; raises `OutsideGraph`. `caller` is the context at this place.

        What the engine itself calls, to keep indexes, references and views, is in every graph.
        """
        found = self.callees.get(function)
        if found is not None:
            return found
        if of_the_engine(function):
            return function
        where, called = caller._where(), full_name(function)
        edge = f"{full_name(self.outside)} -> {called}"
        if self.terminal:
            raise OutsideGraph(
                f"{where} called {called}, but is a terminal of graph {self.graph!r}, which calls nothing in the "
                f"transaction: call it with ctx.after_commit, or declare the edge {edge} instead"
            )
        raise OutsideGraph(
            f"{where} called {called}, which graph {self.graph!r} does not allow; it allows {self._allowed()}: declare "
            f"the edge {edge}, or call it with ctx.after_commit"
        )

    def _allowed(self) -> str:
        names = [full_name(function) for function in self.callees]
        more = len(names) - NAMES_TOLD_MAX
        return ", ".join(names[:NAMES_TOLD_MAX]) + (f" and {more} more" if more > 0 else "")


def of_the_engine(function: FunctionSpec) -> bool:
    """Whether the engine has made the function."""
    return function.name in BUILT_IN or INTERNAL_MARK in function.operator.removesuffix(PARTITIONS_SUFFIX)


def full_name(function: FunctionSpec) -> str:
    """`cart.reprice`, for a partition function too."""
    return f"{function.operator.removesuffix(PARTITIONS_SUFFIX)}.{function.name}"
