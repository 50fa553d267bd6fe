"""Which call changed, of a transaction that was run again, from the place at which it deviated."""

from __future__ import annotations

from styx.worker.changed_call import ChangedCall, changed_call
from tests.protocol.scripted_app import entity
from tests.worker.execution import Execution


def test_the_caller_and_the_call() -> None:
    execution = Execution(2)
    execution.run({1: ("a0", "ask b1 (add 1); ask c1 (add 2)")})
    footprint = execution.footprint(1)
    caller = (entity.name, "a0", "run")
    for index, key in enumerate(("b1", "c1")):
        found = changed_call(footprint, index.to_bytes(2, "big"))
        assert found == ChangedCall(caller, (entity.name, key, "run"))
    # Behind all calls: one more than before, or another result.
    assert changed_call(footprint, b"\0\2") == ChangedCall(caller, None)
    # In a function that did not run at first, below the second call.
    assert changed_call(footprint, b"\0\1\0\5") == ChangedCall(caller, (entity.name, "c1", "run"))


def test_what_another_slot_made_has_none() -> None:
    execution = Execution(2)
    execution.run({1: ("a0", "ask b1 (add 1)")})
    footprint = execution.footprint(1, slot=1)
    assert changed_call(footprint, b"\0\5") is None
