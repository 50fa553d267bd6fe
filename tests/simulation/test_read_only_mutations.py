"""Mutation proof of the rules of read-only functions: each one, broken on purpose, is caught by the simulator."""

from __future__ import annotations

from typing import Any

import pytest

from styx.messages import ReplyRecord
from styx.model import context, read_only
from styx.worker import executor, replies
from styx.worker.footprint import EntityCell, Footprint, StartingCell
from styx.worker.invocation import Invocation
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form


def phase_0_writes(patch: pytest.MonkeyPatch) -> None:
    """Nothing refuses a write, neither here nor in the reference, and the engine applies it at once."""

    def encoded(self: context.Context, value: Any) -> bytes:
        return self._spec.encode_state(value)

    def write(self: StartingCell, chain: bytes, value: bytes | None) -> None:
        entries: dict[Any, bytes] = self.found.__self__  # type: ignore[attr-defined]
        if value is None:
            entries.pop(self.key, None)
        else:
            entries[self.key] = value

    patch.setattr(context.Context, "_encoded", encoded)
    patch.setattr(StartingCell, "write", write)


def a_violation_can_be_hidden(patch: pytest.MonkeyPatch) -> None:
    def violation(self: Invocation, method: str) -> BaseException:
        return read_only.used(self._where(), self._spec.name, method)

    patch.setattr(Invocation, "_violation", violation, raising=False)


def a_read_only_function_may_call_any(patch: pytest.MonkeyPatch) -> None:
    original = Invocation._made_call

    def made_call(self: Invocation, synchronous: bool, operator: Any, function: Any, *rest: Any) -> Any:
        called = self._env.app.operators.get(getattr(operator, "name", operator))
        if called is None or not called.has(function) or self._spec.read_only is False:
            return original(self, synchronous, operator, function, *rest)
        spec = called.function(function)
        read_only, spec.read_only = spec.read_only, True
        try:
            return original(self, synchronous, operator, function, *rest)
        finally:
            spec.read_only = read_only

    patch.setattr(Invocation, "_made_call", made_call)


def a_read_sees_what_its_own_epoch_writes(patch: pytest.MonkeyPatch) -> None:
    written: dict[tuple[int, Any], bytes | None] = {}
    begin, write = executor.Executor.begin, EntityCell.write

    def begins(self: executor.Executor, *arguments: Any) -> None:
        written.clear()
        begin(self, *arguments)

    def writes(self: EntityCell, chain: bytes, value: bytes | None) -> None:
        write(self, chain, value)
        written[id(self.found.__self__), self.key] = value  # type: ignore[attr-defined]

    def read(self: StartingCell, chain: bytes) -> bytes | None:
        entity = id(self.found.__self__), self.key  # type: ignore[attr-defined]
        return written[entity] if entity in written else self.found(self.key)

    patch.setattr(executor.Executor, "begin", begins)
    patch.setattr(EntityCell, "write", writes)
    patch.setattr(StartingCell, "read", read)


def reads_are_validated_like_any_other(patch: pytest.MonkeyPatch) -> None:
    def made(*arguments: Any) -> Footprint:
        made = Footprint(*arguments)
        made.read_only = False
        return made

    patch.setattr(executor, "Footprint", made)


def a_read_only_call_does_not_see_its_transaction(patch: pytest.MonkeyPatch) -> None:
    original = executor.Executor._enqueue

    def enqueue(self: executor.Executor, own: Footprint, slot: Any, function: Any, key: Any, *rest: Any) -> Any:
        invocation = original(self, own, slot, function, key, *rest)
        if function.read_only:
            invocation._cell = StartingCell(key, slot.find(function.operator))
        return invocation

    patch.setattr(executor.Executor, "_enqueue", enqueue)


def reads_see_the_epoch_before_and_say_so(patch: pytest.MonkeyPatch) -> None:
    """Serializable, but against real time: the state at the beginning of the epoch before, as of that place."""
    held: dict[tuple[int, int], dict[str, dict[Any, bytes]]] = {}
    late: set[int] = set()
    begin, enqueue, make = executor.Executor.begin, executor.Executor._enqueue, ReplyRecord

    def begins(self: executor.Executor, number: int, roots: Any) -> None:
        for slot in self.slots.values():
            held[slot.index, number] = {name: dict(table._entries) for name, table in slot.state.tables.items()}
        begin(self, number, roots)

    def enqueues(self: executor.Executor, own: Footprint, slot: Any, function: Any, key: Any, *rest: Any) -> Any:
        invocation = enqueue(self, own, slot, function, key, *rest)
        before = held.get((slot.index, slot.epoch - 1))
        if own.read_only and before is not None:
            late.add(own.tid)
            invocation._cell = StartingCell(key, before.get(function.operator, {}).get)
        return invocation

    def made(name: str, sequence: int, tid: int, epoch: int, *rest: Any) -> Any:
        return make(name, sequence, tid, epoch - (tid in late), *rest)

    patch.setattr(executor.Executor, "begin", begins)
    patch.setattr(executor.Executor, "_enqueue", enqueues)
    patch.setattr(replies, "ReplyRecord", made)


MUTATIONS: list[Mutation] = [
    phase_0_writes,
    a_violation_can_be_hidden,
    a_read_only_function_may_call_any,
    a_read_sees_what_its_own_epoch_writes,
    reads_are_validated_like_any_other,
    a_read_only_call_does_not_see_its_transaction,
    reads_see_the_epoch_before_and_say_so,
]


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    faults: dict[str, Any] = {"faults": ()} if mutation is reads_see_the_epoch_before_and_say_so else {}
    assert_caught(mutation, {"looks": 1.0, **faults}, cluster=False)
