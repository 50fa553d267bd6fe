"""Checks the transaction graphs of an app against its functions, and makes their functions' places.

All that is wrong with a graph is said at once. Nothing is run here: what a function really calls is held against its
place when it calls (`styx.model.graph_place`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from styx.errors import ConfigurationError
from styx.model.event import Event
from styx.model.function_reference import FunctionReference
from styx.model.function_spec import FunctionSpec
from styx.model.graph import Graph
from styx.model.graph_place import GraphPlace
from styx.model.operator import Operator
from styx.values.codec import shown

GRAPHS_MAX: Final = 100
"""The graphs of an app."""
PROBLEMS_TOLD_MAX: Final = 10
"""Things wrong with one graph that an error says."""


class CheckedGraph(NamedTuple):
    """A graph of an app, with all functions by reference, in the order of their declaration."""

    name: str
    start: FunctionReference
    edges: tuple[tuple[FunctionReference, FunctionReference], ...]
    terminals: tuple[FunctionReference, ...]
    publishes: tuple[tuple[FunctionReference, Event[Any]], ...] = ()

    def functions(self) -> Iterable[FunctionReference]:
        """Each function once."""
        return dict.fromkeys([self.start, *(end for edge in self.edges for end in edge), *self.terminals])

    def callees(self) -> dict[FunctionReference, list[FunctionReference]]:
        """What each function may call."""
        found: dict[FunctionReference, list[FunctionReference]] = {each: [] for each in self.functions()}
        for caller, callee in self.edges:
            found[caller].append(callee)
        return found


class Graphs:
    """The graphs of an app. `by_name` has them as they were checked. `starts` gives the specification with which a
    request begins, for each function that starts a graph; `members` all others of them, by operator and by the name
    that calls between workers use.

    Raises `ConfigurationError`.
    """

    def __init__(self, app: str, operators: Mapping[str, Operator], graphs: Iterable[Graph]) -> None:
        self.by_name: dict[str, CheckedGraph] = {}
        self.starts: dict[FunctionSpec, FunctionSpec] = {}
        self.members: dict[tuple[str, str], FunctionSpec] = {}
        given = _checked_list(app, graphs)
        for graph in given:
            checked = _checked(app, operators, graph)
            others = [other.name for other in self.by_name.values() if other.start == checked.start]
            if others:
                raise ConfigurationError(
                    f"app {app!r}: graphs {others[0]!r} and {graph.name!r} both start at {checked.start}: a request "
                    "must say by its function which graph it is in; make one graph of the two"
                )
            self.by_name[graph.name] = checked
            self._add(operators, checked)
        for graph in given:
            graph.taken_by = app

    def _add(self, operators: Mapping[str, Operator], graph: CheckedGraph) -> None:
        declared = {each: _declared(operators, each) for each in graph.functions()}
        placed: dict[FunctionReference, FunctionSpec] = {}
        for each, function in declared.items():
            place = GraphPlace(graph.name, function, each in graph.terminals)
            spec = placed[each] = function.in_graph(place, f"<{graph.name}> {each.name}")
            self.members[spec.operator, spec.called_as] = spec
        for caller, callee in graph.edges:
            placed[caller].graph.callees[declared[callee]] = placed[callee]
        self.starts[declared[graph.start]] = placed[graph.start]


def _checked_list(app: str, graphs: Any) -> list[Graph]:
    if isinstance(graphs, Graph):
        raise ConfigurationError(f"app {app!r}: graphs= takes a list: write graphs=[{graphs.name}]")
    try:
        given = list(graphs)
    except TypeError:
        raise ConfigurationError(f"app {app!r}: graphs= takes a list of Graph objects, got {shown(graphs)}") from None
    for each in given:
        if not isinstance(each, Graph):
            raise ConfigurationError(f"app {app!r}: graphs= takes Graph objects, got {shown(each)}")
    if len(given) > GRAPHS_MAX:
        raise ConfigurationError(f"app {app!r} has {len(given)} graphs; {GRAPHS_MAX} are the limit")
    names = [each.name for each in given]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"app {app!r} has two graphs named {name!r}; rename one of them")
    return given


def _checked(app: str, operators: Mapping[str, Operator], graph: Graph) -> CheckedGraph:
    """The graph with references for all functions; raises `ConfigurationError` that says all that is wrong."""
    references: dict[Any, FunctionReference] = {}
    problems: list[str] = []
    for function in graph.functions():
        try:
            references[function] = _reference(operators, function)
        except ConfigurationError as error:
            problems.append(str(error))
    _refuse(app, graph, problems)
    edges = [(references[caller], references[callee]) for caller, callee in graph.edges]
    terminals = [references[each] for each in graph.terminals]
    published = tuple((references[function], event) for function, event in graph.published)
    checked = CheckedGraph(graph.name, references[graph.start], tuple(edges), tuple(terminals), published)
    _refuse(app, graph, [*_shape_problems(checked), *_function_problems(operators, checked)])
    return checked


def _refuse(app: str, graph: Graph, problems: list[str]) -> None:
    if problems:
        more = len(problems) - PROBLEMS_TOLD_MAX
        told = "; ".join(problems[:PROBLEMS_TOLD_MAX]) + (f"; and {more} more" if more > 0 else "")
        raise ConfigurationError(f"app {app!r}, graph {graph.name!r}: {told}")


def _reference(operators: Mapping[str, Operator], function: Any) -> FunctionReference:
    """The reference of a function that one operator has; raises `ConfigurationError`."""
    if isinstance(function, FunctionReference):
        operator = operators.get(function.operator)
        if operator is None:
            known = ", ".join(sorted(operators)) or "none"
            raise ConfigurationError(f"{function}: the app has no operator {function.operator!r}; it has: {known}")
        if function.name not in operator.functions and function.name not in operator.partitions.functions:
            known = ", ".join(sorted({*operator.functions, *operator.partitions.functions})) or "none"
            raise ConfigurationError(f"{function}: the operator has no function {function.name!r}; it has: {known}")
        return function
    having = [each for each in operators.values() if each.has(function) or each.partitions.has(function)]
    name = getattr(function, "__name__", shown(function))
    if not having:
        raise ConfigurationError(f"function {name} is registered on no operator of the app")
    if len(having) > 1:
        names = " or ".join(repr(f"{each.name}.{name}") for each in having)
        raise ConfigurationError(f"function {name} is registered on several operators: say which one is meant, {names}")
    return FunctionReference(having[0].name, name)


def _declared(operators: Mapping[str, Operator], reference: FunctionReference) -> FunctionSpec:
    operator = operators[reference.operator]
    return operator.functions.get(reference.name) or operator.partitions.functions[reference.name]


# What may be wrong -----------------------------------------------------------------------------------------


def _shape_problems(graph: CheckedGraph) -> Iterable[str]:
    """What is wrong with the edges, whatever the functions are."""
    callees = graph.callees()
    if len(set(graph.edges)) < len(graph.edges):
        yield "an edge is declared twice, by a function itself and by its name"
    if len(set(graph.terminals)) < len(graph.terminals):
        yield "a terminal is declared twice, by the function itself and by its name"
    reached = _closure({graph.start}, callees)
    for each in callees:
        if each not in reached:
            yield f"{each} is not reached from the start {graph.start}: an edge to it is missing"
        elif each in graph.terminals and callees[each]:
            yield f"{each} is a terminal, which calls nothing in the transaction, and has an edge to {callees[each][0]}"
        elif each not in graph.terminals and not callees[each]:
            yield f"{each} calls nothing and is no terminal: declare .terminal({each}), or what it calls"
    callers: dict[FunctionReference, list[FunctionReference]] = {each: [] for each in callees}
    for caller, callee in graph.edges:
        callers[callee].append(caller)
    ending = _closure({*graph.terminals, *(each for each in callees if not callees[each])}, callers)
    for each in callees:
        if each in reached and each not in ending:
            yield f"no path from {each} ends in a terminal: its calls go in a circle for ever"


def _function_problems(operators: Mapping[str, Operator], graph: CheckedGraph) -> Iterable[str]:
    """What the functions themselves rule out."""
    if graph.start.name not in operators[graph.start.operator].functions:
        yield f"the start {graph.start} is a partition function, which no client can call"
    for caller, callee in graph.edges:
        if _declared(operators, caller).read_only and not _declared(operators, callee).read_only:
            yield f"{caller} is read-only, and {callee}, which it is to call, may write"


def _closure(
    begin: set[FunctionReference], following: Mapping[FunctionReference, list[FunctionReference]]
) -> set[FunctionReference]:
    """All that can be reached from `begin`."""
    found, todo = set(begin), list(begin)
    while todo:
        for each in following[todo.pop()]:
            if each not in found:
                found.add(each)
                todo.append(each)
    return found
