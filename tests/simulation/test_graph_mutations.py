"""Mutation proof for transaction graphs: on several workers, a request that starts at a graph's start stays in it, and
each rule, broken on purpose, is caught by the simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from msgspec.structs import replace

from proof import chaos_app
from proof.simulation import SimulationFailure, SimulationReport, random_plan, simulate
from styx.messages import ReplyRecord
from styx.model import giving
from styx.model.app import App
from styx.model.graph import Graph
from styx.model.graph_place import GraphPlace
from styx.worker import outbox
from styx.worker.admission import Admission
from tests.plain_form import plain_form
from tests.simulation.mutation import ONLY_IF_ASKED

pytestmark = plain_form

SEEDS: Final = range(12)


def bounded_app() -> App:
    """The chaos app, in which requests that start at `text.run` may not call everything."""
    graph = Graph("programs", start="text.run").edge("text.run", "number.run").edge("number.run", "text.run")
    graph.edge("text.run", "pair.run").edge("number.run", "number.run").edge("text.run", "text.near")
    graph.edge("text.run", "text.run").terminal("pair.run", "text.near")
    return App("chaos", [*chaos_app.app.operators.values()], graphs=[graph])


def run(seed: int) -> SimulationReport:
    plan = replace(random_plan(seed), **ONLY_IF_ASKED | {"laters": 0.2, "workers": 3})
    return simulate(plan, app=bounded_app())


def outside(reply: ReplyRecord) -> bool:
    return reply.error is not None and reply.error[1] == "OutsideGraph"


def test_requests_stay_in_their_graph_on_all_workers() -> None:
    refused = kept = 0
    for seed in SEEDS:
        for reply in run(seed).replies:
            refused += outside(reply)
            kept += reply.error is None
    assert refused > 50
    assert kept > 500


def calls_between_workers_leave_the_graph(patch: pytest.MonkeyPatch) -> None:
    original = outbox.outgoing_call

    def outgoing_call(footprint: Any, path: bytes, made: Any, *rest: Any) -> Any:
        return replace(original(footprint, path, made, *rest), function=made.function.name)

    patch.setattr("styx.worker.executor.outgoing_call", outgoing_call)


def requests_begin_outside_of_their_graph(patch: pytest.MonkeyPatch) -> None:
    original = Admission.__init__

    def begin(self: Admission, app: App, *rest: Any) -> None:
        original(self, app, *rest)
        self._first = app.resolved
        self._app = App(app.name, app.operators.values())

    patch.setattr(Admission, "__init__", begin)


def what_is_given_for_later_is_held_against_the_graph(patch: pytest.MonkeyPatch) -> None:
    """In the engine's first execution alone."""
    original = giving.give

    def give(context: Any, operator: Any, function: Any, *rest: Any) -> None:
        if context._spec.graph is not None and context._footprint is not None:
            place: GraphPlace = context._spec.graph
            place.callee(context, context._env.app.resolve(operator, function))
        original(context, operator, function, *rest)

    patch.setattr("styx.model.context.give", give)


@pytest.mark.parametrize(
    "mutation",
    [
        calls_between_workers_leave_the_graph,
        requests_begin_outside_of_their_graph,
        what_is_given_for_later_is_held_against_the_graph,
    ],
)
def test_a_mutation_is_caught(mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    for seed in SEEDS:
        try:
            run(seed)
        except SimulationFailure:
            return
    pytest.fail(f"no seed noticed: {mutation.__name__}")
