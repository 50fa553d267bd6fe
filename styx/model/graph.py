"""A transaction graph: which function of a kind of request may call which other one, as the app declares it.

`Graph("checkout", start=cart.checkout).edge(cart.checkout, stock.reserve).terminal(stock.reserve)`. A graph is checked
when an app takes it (`styx.model.graph_check`), and each call of a request that begins at its start is held against it
(`styx.model.graph_place`). A declaration knows no app, and never changes what a function does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from styx.errors import ConfigurationError
from styx.model.event import Event
from styx.model.function_reference import FunctionReference, reference_of
from styx.model.limits import NAME_CHARS_MAX
from styx.values.codec import shown

EDGES_MAX: Final = 1_000
"""The edges of one graph."""

_NAME = re.compile(r"[A-Za-z0-9_.-]++")


class Graph:
    """The calls of the requests that begin with the function `start`.

    `name`: letters, digits, `_`, `.` and `-`, at most 128 characters, unique in an app. Functions are given as
    references, `cart.checkout`, as texts, "cart.checkout", or by themselves if one operator has them. `edge`,
    `terminal` and `publishes` give the graph, so that they can be written in a row.

    `edges`, `terminals` and `published` are in the order of their declaration; `taken_by` is the app that has the
    graph, "" before. Raises `ConfigurationError`, as its methods do.
    """

    def __init__(self, name: str, *, start: Any) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > NAME_CHARS_MAX:
            raise ConfigurationError(
                f"a graph's name is letters, digits, '_', '.' and '-', at most {NAME_CHARS_MAX} characters: got "
                f"{shown(name)}"
            )
        self.name = name
        self.taken_by = ""
        self.start = self._given(start)
        self.edges: dict[tuple[Any, Any], None] = {}
        self.terminals: dict[Any, None] = {}
        self.published: dict[tuple[Any, Event[Any]], None] = {}

    def edge(self, caller: Any, callee: Any) -> Graph:
        """`caller` may call `callee` in the transaction, with or without waiting for it, on any entity and any number
        of times. So may an event that `caller` emits, if `callee` subscribes to it in the same transaction.
        """
        self._refuse_late("edge")
        edge = (self._given(caller), self._given(callee))
        if edge in self.edges:
            raise ConfigurationError(f"graph {self.name!r} has the edge {_named(edge[0])} -> {_named(edge[1])} already")
        if len(self.edges) >= EDGES_MAX:
            raise ConfigurationError(f"graph {self.name!r} has more than {EDGES_MAX} edges: split it")
        self.edges[edge] = None
        return self

    def terminal(self, *functions: Any) -> Graph:
        """The functions call nothing in the transaction. What they emit is delivered after the commit."""
        self._refuse_late("terminal")
        if not functions:
            raise ConfigurationError(f"graph {self.name!r}: terminal(…) names one function at least")
        for function in functions:
            given = self._given(function)
            if given in self.terminals:
                raise ConfigurationError(f"graph {self.name!r} has the terminal {_named(given)} already")
            self.terminals[given] = None
        return self

    def publishes(self, function: Any, *events: Event[Any]) -> Graph:
        """The function alone emits these events, in this graph and everywhere else."""
        self._refuse_late("publisher")
        given = self._given(function)
        if not events:
            raise ConfigurationError(f"graph {self.name!r}: publishes(…) names one event at least")
        for event in events:
            if not isinstance(event, Event):
                raise ConfigurationError(
                    f"graph {self.name!r}: {_named(given)} publishes {shown(event)}, which is not an Event"
                )
            if (given, event) in self.published:
                raise ConfigurationError(f"graph {self.name!r}: {_named(given)} publishes {event.name!r} already")
            self.published[given, event] = None
        return self

    def functions(self) -> Iterable[Any]:
        """All functions that were given, each once, in the order of their declaration."""
        each = [self.start, *(end for edge in self.edges for end in edge), *self.terminals]
        return dict.fromkeys([*each, *(function for function, _ in self.published)])

    def _given(self, function: Any) -> Any:
        """A reference, or the function by itself, whose operator is looked for when an app takes the graph."""
        try:
            reference = reference_of(function)
        except ConfigurationError as error:
            raise ConfigurationError(f"graph {self.name!r}: {error}") from None
        return function if reference is None else reference

    def _refuse_late(self, method: str) -> None:
        if self.taken_by:
            raise ConfigurationError(
                f"graph {self.name!r} is in the app {self.taken_by!r} already: declare each {method} before App(…) "
                "takes the graph"
            )

    def __repr__(self) -> str:
        return f"Graph({self.name!r}, start={_named(self.start)})"


def _named(function: Any) -> str:
    return str(function) if isinstance(function, FunctionReference) else shown(getattr(function, "__name__", function))
