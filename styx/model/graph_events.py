"""What transaction graphs declare of events: which function publishes each one, and where that leads in the graph.

A publisher is the only function of the app that emits the event, in any graph and outside of them. A subscriber in the
same transaction is called by the publisher, so the graph needs that edge. Nothing is run here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from styx.errors import ConfigurationError
from styx.model.event import Event
from styx.model.function_reference import FunctionReference
from styx.model.graph_check import CheckedGraph
from styx.model.subscription import Subscription

_Subscribers = Mapping[str, tuple[Subscription, ...]]


def publishers(
    app: str, graphs: Iterable[CheckedGraph], events: Mapping[str, Event[Any]], subscribers: _Subscribers
) -> dict[str, FunctionReference]:
    """The publisher of each event that has one, by the event's name; raises `ConfigurationError` for what cannot be."""
    found: dict[str, FunctionReference] = {}
    for graph in graphs:
        problems = [*_problems(graph, events, subscribers)]
        for function, event in graph.publishes:
            other = found.setdefault(event.name, function)
            if other != function:
                problems.append(f"event {event.name!r} is published by {other} and by {function}: one may")
        if problems:
            raise ConfigurationError(f"app {app!r}, graph {graph.name!r}: {'; '.join(problems)}")
    return found


def _problems(graph: CheckedGraph, events: Mapping[str, Event[Any]], subscribers: _Subscribers) -> Iterable[str]:
    functions, leads = {*graph.functions()}, dict[FunctionReference, list[FunctionReference]]()
    for function, event in graph.publishes:
        if events.get(event.name) is not event:
            yield f"{function} publishes {event!r}, which the app does not have: declare it in App(events=[…])"
        elif function not in functions:
            yield f"{function} publishes {event.name!r} and is not in the graph: an edge to it is missing"
        elif function not in graph.terminals:
            for each in subscribers.get(event.name, ()):
                if each.after_commit:
                    continue
                leads.setdefault(function, []).append(each.reference)
                if (function, each.reference) not in graph.edges:
                    yield (
                        f"{function} publishes {event.name!r}, for which {each.reference} is called in the same "
                        f"transaction: the edge {function} -> {each.reference} is missing"
                    )
    circle = _circle(leads)
    if circle:
        yield (
            f"events lead from {' to '.join(map(str, circle))} in one transaction, without end: handle one of them "
            "with after_commit=True"
        )


def _circle(leads: Mapping[FunctionReference, list[FunctionReference]]) -> list[FunctionReference]:
    """The functions of a circle, the first one again at its end; empty if there is none."""
    done = set[FunctionReference]()
    for begin in leads:
        way = [begin]
        todo = [iter(leads[begin])]
        while todo:
            following = next(todo[-1], None)
            if following is None:
                todo.pop()
                done.add(way.pop())
            elif following in way:
                return [*way[way.index(following) :], following]
            elif following not in done:
                way.append(following)
                todo.append(iter(leads.get(following, ())))
    return []
