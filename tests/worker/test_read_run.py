"""A read whose slots are on several workers: it asks for its parts, and ends as the serial execution does."""

from __future__ import annotations

from random import Random

import pytest

from proof.chaos_app import app
from proof.random_looks import random_look
from proof.random_requests import MIXED
from proof.random_rows import random_row_look
from proof.random_sweeps import random_survey
from styx.errors import CallLimitExceeded
from styx.messages import Request
from styx.model.execution import resolve_request
from styx.model.function_spec import MadeCall
from styx.model.limits import Limits
from styx.protocol.frames import CallSpec
from styx.protocol.reads import READ_NUMBERS, PartEnded, PartFailed, PartReturned, ReadPart
from styx.testing.serial import SerialReference
from styx.values.codec import encode_strict
from styx.worker.epoch_view import SlotView
from styx.worker.outbox import made_call
from styx.worker.own_variables import OwnVariables
from styx.worker.read_run import ReadRun
from tests.worker.test_reads import Stepping, placed, random_write

N_SLOTS = 3
LOW = Limits(invocations_max=6)


class Workers:
    """A worker for each slot of an engine, of which each knows its own slot only. `parts` counts what was asked."""

    def __init__(self, engine: Stepping, limits: Limits | None = None) -> None:
        self.engine = engine
        self.parts = 0
        self._variables = OwnVariables()

    def read(self, request: Request, number: int) -> PartEnded:
        worker = self.engine.worker
        target = resolve_request(app, request, worker.limits, N_SLOTS)
        function, key, slot = target.function, target.key, target.slot
        part = ReadPart(number, 7, worker.epoch, slot, function.operator, function.called_as, key, request.params)
        return self._run(part, MadeCall(False, slot, function, key, request.params))

    def _run(self, part: ReadPart, call: MadeCall) -> PartEnded:
        worker = self.engine.worker
        views = {part.slot: SlotView(worker.slots[part.slot], part.epoch, N_SLOTS)}
        run = ReadRun(worker.executor, None, self._variables, part, call, views)
        end: PartEnded | ReadPart | None = None

        def steps(count: int) -> int:
            nonlocal end
            end = run.go_on(count)
            return 0

        while True:
            self._variables.run(steps, 1)
            if isinstance(end, ReadPart):
                assert end.slot != part.slot
                self.parts += 1
                spec = CallSpec(end.synchronous, end.slot, end.operator, end.function, end.key, end.params)
                run.answered(self._run(end, made_call(app, spec)))
            elif end is not None:
                return end


def outcome(end: PartEnded) -> tuple[bytes | None, tuple[str, str, str] | None]:
    if isinstance(end, PartReturned):
        return end.value, None
    return None, (end.code, end.kind, end.message)


@pytest.mark.parametrize("limits", [None, LOW])
@pytest.mark.parametrize("seed", range(4))
def test_parts_of_other_workers_make_the_serial_execution(seed: int, limits: Limits | None) -> None:
    rng = Random(f"parts {seed}")
    engine = Stepping(app, N_SLOTS, limits)
    writes = [random_write(rng, MIXED, f"r{number}", N_SLOTS) for number in range(100)]
    engine.run([placed(request, N_SLOTS) for request in writes])
    reference = SerialReference(app, limits, N_SLOTS)
    for slot in engine.worker.slots.values():
        reference.state.update(slot.state.entities(engine.worker.epoch))
    workers = Workers(engine)
    kinds = set[str]()
    for number in range(READ_NUMBERS, READ_NUMBERS + 150):
        kind = rng.random()
        if kind < 0.2:
            request = random_survey(rng, "look")
        else:
            request = random_row_look(rng, "look") if kind < 0.5 else random_look(rng, MIXED, "look")
        got = outcome(workers.read(request, number))
        assert got == tuple(reference.run(number, 7, request)), request
        kinds.add("well" if got[1] is None else got[1][1])
    assert workers.parts > 100
    assert {"well", "Low", "ReadOnlyViolation"} <= kinds
    assert (CallLimitExceeded.__name__ in kinds) == (limits is LOW)


def test_asynchronous_calls_of_a_part_run_behind_the_chain_of_who_asked() -> None:
    """The part's asynchronous call raises, and so does the caller: the caller's exception comes first."""
    engine = Stepping(app, N_SLOTS)
    fails = ["look", "async", ["at", 0, 1], [["guard", 5]]]
    keys = [f"k{number}" for number in range(20)]
    text = app.operators["text"]
    caller, callee = keys[0], next(key for key in keys if text.slot_of(key, N_SLOTS) != text.slot_of(keys[0], N_SLOTS))
    target = ["at", 0, int(callee[1:])]
    for last, expected in ((["raise"], "Chaos"), (["read"], "Low")):
        program = [["look", "sync", target, [fails]], last]
        request = Request("look", "text", caller, "look", encode_strict([program]))
        end = Workers(engine).read(request, READ_NUMBERS)
        assert isinstance(end, PartFailed)
        assert end.kind == expected
