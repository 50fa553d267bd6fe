"""Read-only transactions in the execution step: what they see, what they leave behind, and where their calls count."""

from __future__ import annotations

from typing import Any

import pytest

from styx.errors import ReadOnlyViolation
from styx.model.limits import Limits
from styx.worker.root import RootTransaction
from styx.worker.validation import conflicts
from tests.protocol.scripted_app import entity
from tests.worker.execution import Execution, scripted_root


def looked(
    scripts: dict[int, tuple[str, str]],
    others: dict[int, tuple[str, str]] | None = None,
    limits: Limits | None = None,
    sequential: bool = False,
) -> Execution:
    """An execution of read-only transactions, and of `others` that may write, on slots 0 and 1."""
    execution = Execution(2, {"a0": 5, "b1": 7}, limits)
    roots = [scripted_root(tid, *script) for tid, script in (others or {}).items()]
    for tid, script in scripts.items():
        root = scripted_root(tid, *script)
        root.function, root.sequential = entity.function("look"), sequential
        roots.append(root)
    execution.executor.begin(0, sorted(roots, key=lambda root: root.tid))
    while not execution.executor.idle:
        execution.executor.run(1)
    assert execution.executor.open_roots == 0
    return execution


def error(root: RootTransaction) -> tuple[str, str]:
    assert root.failure is not None
    return root.failure.type, root.failure.message


def test_nothing_is_left_for_validation() -> None:
    execution = looked({2: ("a0", "get; look b1 (get); send b1 (get); send b1 (get)")})
    for slot in execution.slots.values():
        assert not slot.shared
        assert not any(slot.cells.values()), "no cell"
        assert conflicts(slot, ()) == []
    assert execution.executor.read_only == {2}
    assert not execution.root(2).collided
    execution.executor.end()
    assert execution.executor.read_only == set()


@pytest.mark.parametrize("sequential", [False, True])
def test_it_sees_the_beginning_of_the_epoch_whatever_ran_before(sequential: bool) -> None:
    execution = looked(
        {2: ("a0", "get"), 4: ("b1", "get")},
        {1: ("a0", "add 1; send b1 (add 1)"), 3: ("a0", "put 9")},
        sequential=sequential,
    )
    assert (execution.result(2), execution.result(4)) == (5, 7)
    assert conflicts(execution.slots[0], ()) == [3]
    assert conflicts(execution.slots[1], ()) == []


def test_within_a_transaction_that_writes_it_sees_what_was_written() -> None:
    execution = looked({}, {1: ("a0", "add 1; look a0 (get)")})
    assert execution.result(1) == 6
    assert execution.executor.read_only == set()


@pytest.mark.parametrize(
    ("script", "did"),
    [
        ("put 1", "entity.look on 'a0' used ctx.put"),
        ("add 1", "entity.look on 'a0' used ctx.put"),
        ("delete", "entity.look on 'a0' used ctx.delete"),
        ("outside x", "entity.look on 'a0' used ctx.call_external"),
        ("look b1 (put 1)", "entity.look on 'b1' used ctx.put"),
        ("send b1 (get; send a0 (delete))", "entity.look on 'a0' used ctx.delete"),
    ],
)
@pytest.mark.parametrize("sequential", [False, True])
def test_a_write_ends_it(script: str, did: str, sequential: bool) -> None:
    root = looked({2: ("a0", script)}, sequential=sequential).root(2)
    assert error(root)[0] == ReadOnlyViolation.__name__
    assert error(root)[1].startswith(f"{did}, but is registered with read_only=True: do that in another function")
    assert (root.external, root.overflow, root.collided) == (False, False, False)


LIMIT: Any = Limits(invocations_max=10)


def test_too_many_calls_in_the_roots_chain_end_it_at_once() -> None:
    root = looked({2: ("a0", "; ".join(["look b1 (get)"] * 10))}, limits=LIMIT).root(2)
    assert error(root)[0] == "CallLimitExceeded"
    assert not root.overflow


def test_too_many_calls_in_a_branch_are_counted_in_sequence() -> None:
    """The second branch exceeds the limit before it fails; only the sum over the branches says so."""
    branches = ["get", "; ".join([*["look b1 (get)"] * 8, "fail early"]), "; ".join(["look b1 (get)"] * 11)]
    script = "; ".join(f"send b1 ({branch})" for branch in branches)
    root = looked({2: ("a0", script)}, limits=LIMIT).root(2)
    assert root.overflow
    root = looked({2: ("a0", script)}, limits=LIMIT, sequential=True).root(2)
    assert error(root)[0] == "CallLimitExceeded"
