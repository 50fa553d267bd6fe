"""Phase 3 by itself: local transactions of one slot, one after the other, as the serial reference runs them."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from random import Random
from typing import Any

import pytest

from proof import chaos_app, spinning
from proof.chaos_app import app
from proof.random_requests import CONTENDED, MIXED, Profile, random_near
from styx import App, Context, Operator
from styx.errors import EngineFailed
from styx.messages import Request, encode_request
from styx.model.execution import ErrorTriple, resolve_request
from styx.model.limits import Limits
from styx.state.table import NEWEST
from styx.testing.serial import SerialReference
from styx.values.codec import encode_strict
from styx.worker.executor import Executor
from styx.worker.local_phase import LocalPhase
from styx.worker.notes import Notes
from styx.worker.root import RootTransaction
from styx.worker.slot import Slot
from tests.plain_form import plain_form


class Phase:
    """The phase 3 of requests to one slot of an app, with TIDs from 1 on."""

    def __init__(
        self,
        requests: list[Request],
        app: App = app,
        limits: Limits | None = None,
        ended: dict[int, ErrorTriple | None] | None = None,
        decided: tuple[int, ...] = (),
        n_slots: int = 1,
    ) -> None:
        self.notes = Notes(all_aborts=True)
        limits = limits or Limits()
        self.executor = Executor(0, app, limits, n_slots, self.notes)
        self.slot = Slot(0)
        self.slot.epoch = 0
        self.executor.slots = {0: self.slot}
        self.notes.begin(0, None)
        self.roots = [_root(tid, request, app, limits, n_slots) for tid, request in enumerate(requests, 1)]
        self.phase = LocalPhase(self.executor, self.roots, ended or {}, decided, self.notes)

    def run(self, slice_invocations: int = 1) -> None:
        while not self.phase.done:
            self.phase.run(slice_invocations)
        self.phase.commit()

    def outcome(self, tid: int) -> tuple[bytes | None, ErrorTriple | None]:
        root = self.roots[tid - 1]
        failure = root.failure
        return root.result, None if failure is None else (failure.code, failure.type, failure.message)

    def state(self) -> dict[tuple[str, Any], bytes]:
        return self.slot.state.entities(NEWEST)


def _root(tid: int, request: Request, app: App, limits: Limits, n_slots: int) -> RootTransaction:
    target = resolve_request(app, request, limits, n_slots)
    payload = encode_request(request)
    root = RootTransaction(
        tid, 0, 0, 1_000 * tid, payload, request.request_id, 0, target.function, target.key, request.params
    )
    root.local = True
    return root


def near(program: list[Any], key: str = "k0", function: str = "near") -> Request:
    return Request(f"r {key}", "text", key, function, encode_strict([program]))


# As the serial reference ---------------------------------------------------------------------------------------

LIMITS = (Limits(), Limits(invocations_max=8), Limits(transaction_bytes_max=400, invocations_max=100))


@pytest.mark.parametrize("seed", range(40))
def test_it_gives_what_serial_execution_gives(seed: int) -> None:
    rng = Random(f"phase 3 {seed}")
    profile = rng.choice([CONTENDED, MIXED, Profile(keys=3, calls_max=20, poisoned=0.2)])
    requests = [random_near(rng, profile, 1, f"r{n}") for n in range(40)]
    limits = LIMITS[seed % len(LIMITS)]
    phase = Phase(requests, limits=limits)
    phase.run(rng.choice([1, 5, 1_000]))
    reference = SerialReference(app, limits, 1)
    for tid, request in enumerate(requests, 1):
        expected = reference.run(tid, 1_000 * tid, request)
        result, error = phase.outcome(tid)
        if error is not None and error[1] == "NondeterministicFunction":
            error = expected.error  # its words depend on what runs around
        assert (result, error) == (expected.result, expected.error), request
    assert phase.state() == reference.state
    assert not phase.phase.carried


def test_exactly_as_many_calls_as_are_allowed() -> None:
    calls = [["call", "async", ["at", 0, n], [["add", 1]]] for n in range(4)]
    for most, outcome in ((5, None), (4, "CallLimitExceeded")):
        phase = Phase([near(calls)], limits=Limits(invocations_max=most))
        phase.run()
        _, error = phase.outcome(1)
        assert (error and error[1]) == outcome
        assert len(phase.state()) == (0 if error else 4)


def _deep(depth: int) -> list[Any]:
    program: list[Any] = [["add", 1]]
    for _ in range(depth):
        program = [["call", "sync", ["self"], program], ["add", 1]]
    return program


chain = Operator("chain", key_type=int)


@chain.register(local=True)
async def down(ctx: Context, left: int) -> int:
    below: int = await ctx.call(chain, down, ctx.key + 1, (left - 1,)) if left else 0
    await ctx.put(below + 1)
    return below + 1


def test_a_chain_of_waiting_functions_may_be_deeper_than_the_interpreters_stack() -> None:
    depth = sys.getrecursionlimit() + 500
    requests = [Request("r", "chain", 0, "down", encode_strict([depth]))]
    phase = Phase(requests, App("deep", [chain]), Limits(call_depth_max=depth))
    phase.run()
    assert phase.outcome(1) == (encode_strict(depth + 1), None)
    assert len(phase.state()) == depth + 1


def test_a_call_back_sees_the_waiting_functions_writes_and_it_sees_the_calls() -> None:
    program = [["add", 5], ["call", "sync", ["at", 1, 0], [["call", "sync", ["caller"], [["add", 10]]]]], ["add", 100]]
    phase = Phase([near(program)])
    phase.run()
    assert phase.outcome(1) == (encode_strict(115), None)


# What phase 3 cannot do ----------------------------------------------------------------------------------------


def _elsewhere(n_slots: int) -> list[Any]:
    text = chaos_app.text
    return next(["at", 0, n] for n in range(99) if text.slot_of(f"k{n}", n_slots) != 0)


def _here(n_slots: int) -> str:
    return next(f"k{n}" for n in range(99) if chaos_app.text.slot_of(f"k{n}", n_slots) == 0)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_what_leaves_its_slot_leaves_no_trace_and_is_no_longer_local(mode: str) -> None:
    leaving = near([["add", 7], ["call", mode, _elsewhere(2), [["add", 1]]]], _here(2))
    phase = Phase([leaving, near([["add", 1]], _here(2))], n_slots=2)
    phase.run()
    root = phase.roots[0]
    assert phase.phase.carried == [root]
    assert phase.phase.left == {("text", "near"): 1}
    assert (root.local, root.sequential, root.result, root.failure) == (False, False, None, None)
    assert phase.outcome(2) == (encode_strict(1), None)
    assert not phase.notes.lines


def test_what_raises_before_its_call_is_sent_has_not_left_its_slot() -> None:
    phase = Phase([near([["call", "async", _elsewhere(2), []], ["raise"]], _here(2))], n_slots=2)
    phase.run()
    assert not phase.phase.carried
    assert phase.outcome(1)[1] == ("aborted", "Chaos", "at 0")


def test_an_external_call_goes_on_in_sequential_mode() -> None:
    phase = Phase([near([["add", 7], ["outside", 1]])])
    phase.run()
    assert [root.sequential for root in phase.phase.carried] == [True]
    assert phase.state() == {}


# The watchdog --------------------------------------------------------------------------------------------------

SPIN: list[Any] = [["add", 1], ["spin", "endless"]]


@plain_form
@pytest.mark.parametrize("kind", ["endless", "hidden"])
def test_a_function_that_does_not_end_aborts_its_transaction_and_the_verdict_says_so(kind: str) -> None:
    phase = Phase([near([["add", 1], ["spin", kind]]), near([["add", 1]])])
    phase.run()
    error = ("aborted", "FunctionTooLong", spinning.TEXT)
    assert phase.outcome(1) == (None, error)
    assert phase.phase.cut == [(1, error)]
    assert phase.outcome(2) == (encode_strict(1), None)


def test_a_recorded_verdict_is_taken_without_a_run() -> None:
    error = ("aborted", "FunctionTooLong", "a second")
    phase = Phase([near([["add", 1]]), near([["add", 1]])], ended={1: error})
    phase.run()
    assert phase.outcome(1) == (None, error)
    assert phase.outcome(2) == (encode_strict(1), None)
    assert phase.phase.cut == []


@plain_form
def test_what_ended_when_it_ran_first_must_end_in_a_replay() -> None:
    with pytest.raises(EngineFailed, match="the replay of transaction 1 does not end"):
        Phase([near(SPIN)], decided=(0,)).run()


# Its surroundings ----------------------------------------------------------------------------------------------

VARIABLE: ContextVar[int] = ContextVar("variable", default=0)
own = Operator("own")


@own.register(local=True)
async def sets(ctx: Context, waits: bool) -> list[int]:
    """Sets a variable, before or behind a call of another function that does."""
    before = VARIABLE.get()
    VARIABLE.set(1)
    called = await ctx.call(own, sets, "b", (False,)) if waits else []
    return [before, *called, VARIABLE.get()]


@own.register(local=True)
async def waits_first(ctx: Context) -> list[int]:
    called = await ctx.call(own, sets, "b", (True,))
    again = await ctx.call(own, sets, "b", (False,))
    return [VARIABLE.get(), *called, *again]


def test_a_variable_belongs_to_the_function_that_sets_it() -> None:
    requests = [Request(str(n), "own", "a", "sets", encode_strict([waits])) for n, waits in enumerate([True, False])]
    requests.append(Request("3", "own", "a", "waits_first", encode_strict([])))
    phase = Phase(requests, App("own", [own]))
    phase.run(1_000)
    assert phase.outcome(1)[0] == encode_strict([0, 0, 1, 1])
    assert phase.outcome(2)[0] == encode_strict([0, 1])
    assert phase.outcome(3)[0] == encode_strict([0, 0, 0, 1, 1, 0, 1])
    assert VARIABLE.get() == 0


@own.register(local=True)
async def tells(ctx: Context, raises: bool) -> None:
    ctx.log("told", raises=raises)
    if raises:
        raise KeyError("none")


def test_notes_are_kept_of_ends() -> None:
    requests = [Request(str(raises), "own", "a", "tells", encode_strict([raises])) for raises in (False, True)]
    phase = Phase(requests, App("own", [own]))
    phase.run()
    assert [(note.tid, note.aborted) for note in phase.notes.lines] == [(1, False), (2, True)]
    assert [note.type for note in phase.notes.aborts] == ["KeyError"]
