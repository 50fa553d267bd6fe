"""Validation against the obvious model: every transaction, compared with every lower one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.model.access import Access
from styx.model.bulk_load import BulkLoad
from styx.worker.slot import Slot
from styx.worker.validation import commit, conflicts
from tests.worker.execution import OPERATOR, Execution

STEPS = {"read": "get", "write": "put {}", "change": "add {}"}
acts = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from(["a0", "b0", "c0"])), min_size=1, max_size=3)


def executed(transactions: dict[int, tuple[str, str]], state: dict[str, int] | None = None) -> Slot:
    execution = Execution(1, state)
    execution.run(transactions)
    return execution.slots[0]


def conflicting(*scripts: str, gone: tuple[int, ...] = ()) -> list[int]:
    """TIDs in conflict when these run on entity a0 as 1, 2, 3, …"""
    return conflicts(executed({tid: ("a0", script) for tid, script in enumerate(scripts, 1)}), gone)


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        ("get", "get", False),
        ("get", "put 1", False),  # write after read: the reader is lower and has read what it should
        ("put 1", "get", True),
        ("put 1", "put 2", True),  # in conflict, because commits are not ordered within the phase
        ("delete", "get", True),
        ("add 1", "add 1", True),
    ],
)
def test_a_transaction_conflicts_if_it_touches_what_a_lower_one_wrote(first: str, second: str, conflict: bool) -> None:
    assert conflicting(first, second) == ([2] if conflict else [])


def test_the_lowest_is_never_in_conflict() -> None:
    assert conflicting("add 1", "add 1", "add 1") == [2, 3]


def test_a_conflict_with_one_that_is_itself_in_conflict_counts() -> None:
    slot = executed({1: ("a0", "add 1"), 2: ("a0", "add 1; send b0 (add 1)"), 3: ("b0", "get")})
    assert conflicts(slot, ()) == [2, 3]


def test_transactions_that_are_gone_have_written_nothing() -> None:
    assert conflicting("add 1", "add 1", "add 1", gone=(1,)) == [3]
    assert conflicting("add 1", "add 1", gone=(2,)) == []


def test_a_write_that_failed_its_function_still_counts_until_the_transaction_is_gone() -> None:
    # Who is gone is decided by all workers together; until then a slot knows only what was written.
    assert conflicting("put 1; fail no", "get") == [2]


@given(st.lists(acts, max_size=5), st.sets(st.integers(1, 5)))
def test_conflicts_are_those_of_the_obvious_model(drawn: list[list[tuple[str, str]]], gone: set[int]) -> None:
    transactions: dict[int, tuple[str, str]] = {}
    reads: dict[int, set[str]] = {}
    writes: dict[int, set[str]] = {}
    for tid, steps in enumerate(drawn, 1):
        script = "; ".join(f"ask {key} ({STEPS[act].format(tid)})" for act, key in steps)
        transactions[tid] = ("root0", script)
        reads[tid] = {key for act, key in steps if act != "write"}
        writes[tid] = {key for act, key in steps if act != "read"}
    expected = [
        tid
        for tid in transactions
        if tid not in gone
        and any((reads[tid] | writes[tid]) & writes[lower] for lower in range(1, tid) if lower not in gone)
    ]
    assert conflicts(executed(transactions), gone) == expected


def test_commit_applies_what_the_transaction_leaves() -> None:
    slot = executed({1: ("a0", "add 1; send b0 (delete); send c0 (get); send a0 (add 5)")}, {"b0": 3, "c0": 4})
    slot.state.take_delta()
    slot.state.delta_stored()
    commit(slot, ())
    assert slot.state.take_delta() == {OPERATOR: {"a0": b"\x06", "b0": None}}, "writes only, and below over above"


# Accesses to many entities at once -----------------------------------------------------------------------------


class Range(Access):
    """A scan of the keys below `end`: it writes nothing."""

    def __init__(self, end: str) -> None:
        super().__init__(OPERATOR, {})
        self._end = end

    def overlaps(self, key: Any) -> bool:
        return bool(key < self._end)


def accessing(scripts: dict[int, tuple[str, str]], accesses: dict[int, Access]) -> Slot:
    """Scripted transactions, of which some make such an access as well."""
    execution = Execution(1)
    execution.run({**scripts, **dict.fromkeys(accesses, ("z0", "get"))})
    for tid, access in accesses.items():
        execution.footprint(tid).accesses = [access]
    return execution.slots[0]


def load(*keys: str) -> Access:
    return BulkLoad(OPERATOR, dict.fromkeys(keys, b"\x01"), replace=True)


@pytest.mark.parametrize(
    ("script", "access", "before", "after"),
    [
        ("get", load("a0", "b0"), False, True),  # the load behind a reader; the reader behind the load
        ("put 1", load("a0", "b0"), True, True),
        ("put 1", load("b0"), False, False),
        ("get", Range("b0"), False, False),
        ("put 1", Range("b0"), True, False),  # a scan behind a writer of its range
        ("delete", Range("b0"), True, False),
        ("put 1", Range("a0"), False, False),
    ],
)
def test_an_access_conflicts_with_what_a_lower_one_wrote(
    script: str, access: Access, before: bool, after: bool
) -> None:
    assert conflicts(accessing({1: ("a0", script)}, {2: access}), ()) == ([2] if before else [])
    assert conflicts(accessing({2: ("a0", script)}, {1: access}), ()) == ([2] if after else [])


def test_accesses_conflict_with_each_other_where_the_lower_one_writes() -> None:
    assert conflicts(accessing({}, {1: load("a0"), 2: Range("b0"), 3: load("a0", "c0")}), ()) == [2, 3]
    assert conflicts(accessing({}, {1: Range("b0"), 2: load("a0"), 3: Range("a0")}), ()) == []
    assert conflicts(accessing({}, {1: load("a0"), 2: Range("b0")}), (1,)) == []


def test_what_an_access_writes_is_committed() -> None:
    slot = accessing({}, {1: load("a0"), 2: load("b0")})
    assert conflicts(slot, ()) == []
    commit(slot, (2,))
    assert slot.state.entities(0) == {(OPERATOR, "a0"): b"\x01"}
