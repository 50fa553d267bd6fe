"""Mutation proof for partition functions: each rule of theirs, broken on purpose, is caught by the simulator."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest

from styx.model.access import Access
from styx.model.partitioning import KeySpace, PartitionNumbers
from styx.protocol.frames import Failure, Result
from styx.relational.index_range import Group, IndexRange, Position, RowKey, TableIndex
from styx.relational.partition_index import PartitionIndex
from styx.state.sorted_index import SortedIndex
from styx.worker import current_cell, footprint, range_read, range_validation, validation, waits
from styx.worker.calls_together import CallsTogether
from styx.worker.footprint import RowCell
from styx.worker.slot import Slot
from styx.worker.transaction_rows import TransactionRows
from styx.worker.written_rows import WrittenIndex, WrittenRows
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

BUSY = {"sweeps": 1.0}


def groups_have_no_partition(patch: pytest.MonkeyPatch) -> None:
    """All rows of a slot are of each of its partitions; the serial reference finds those of all slots."""
    original = PartitionIndex.entry

    def entry(self: PartitionIndex, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        found = original(self, key, data, n_slots)
        assert found is not None
        return (0, *found[0][1:]), found[1]

    patch.setattr(PartitionIndex, "entry", entry)


def partitions_are_counted_by_another_number_of_slots(patch: pytest.MonkeyPatch) -> None:
    original = PartitionIndex.entry
    patch.setattr(PartitionIndex, "entry", lambda self, key, data, n_slots: original(self, key, data, n_slots + 1))


def a_partition_is_on_the_slot_of_its_number_as_a_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionNumbers, "partition_of", KeySpace.partition_of)


def partition_wide_ranges_are_not_validated(patch: pytest.MonkeyPatch) -> None:
    original = range_validation.conflicts_of_ranges

    def conflicts_of_ranges(slot: Slot, accesses: Iterable[tuple[int, Access]], gone: Container[int]) -> set[int]:
        for each in slot.querying:
            assert each.rows is not None
            each.rows.ranges = [found for found in each.rows.ranges if not _is_wide(found[1].index)]
        return original(slot, accesses, gone)

    patch.setattr(validation, "conflicts_of_ranges", conflicts_of_ranges)


def partition_wide_queries_do_not_see_own_writes(patch: pytest.MonkeyPatch) -> None:
    original = TransactionRows.seen

    def seen(self: TransactionRows, wanted: IndexRange, chain: bytes) -> WrittenIndex:
        index = wanted.index
        return WrittenRows().of(index, self.n_slots) if _is_wide(index) else original(self, wanted, chain)

    patch.setattr(TransactionRows, "seen", seen)


def commits_do_not_reach_partition_wide_indexes(patch: pytest.MonkeyPatch) -> None:
    original = SortedIndex.move

    def move(self: SortedIndex, key: RowKey, before: bytes | None, after: bytes | None) -> None:
        if not _is_wide(self._index):
            original(self, key, before, after)

    patch.setattr(SortedIndex, "move", move)


def partition_wide_ranges_do_not_collide(patch: pytest.MonkeyPatch) -> None:
    read, wrote = TransactionRows.read, TransactionRows.wrote

    def without_read(self: TransactionRows, chain: bytes, wanted: IndexRange) -> bool:
        return read(self, chain, wanted) and not _is_wide(wanted.index)

    def without_write(self: TransactionRows, chain: bytes, cell: RowCell) -> bool:
        return wrote(self, chain, cell) and not all(_is_wide(wanted.index) for _, wanted in self.ranges)

    patch.setattr(TransactionRows, "read", without_read)
    patch.setattr(TransactionRows, "wrote", without_write)


def rows_of_a_partition_come_in_the_order_of_their_primary_keys(patch: pytest.MonkeyPatch) -> None:
    """Not of their entities' keys first."""
    original = range_read.read_range

    def by_primary_key(slot: Slot, wanted: IndexRange, n_slots: int, layers: Any) -> Any:
        found = original(slot, wanted, n_slots, layers)
        return sorted(found, key=lambda entry: entry[1][::-1]) if _is_wide(wanted.index) else found

    patch.setattr(footprint, "read_range", by_primary_key)
    patch.setattr(current_cell, "read_range", by_primary_key)


# Calls on all partitions are one wait ------------------------------------------------------------------------


def the_first_failure_to_come_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CallsTogether, "failure", lambda self: next(iter(self.came), None))
    original = CallsTogether.take

    def take(self: Any, result: Result) -> bool:
        if not hasattr(self, "came"):
            self.came = []
        if result.failure is not None:
            self.came.append(result.failure)
        return original(self, result)

    patch.setattr(CallsTogether, "take", take)


def the_last_failure_counts(patch: pytest.MonkeyPatch) -> None:
    def failure(self: CallsTogether) -> Failure | None:
        return next((each.failure for each in reversed(self.results()) if each.failure is not None), None)

    patch.setattr(CallsTogether, "failure", failure)


def a_failure_does_not_wait_for_the_other_calls(patch: pytest.MonkeyPatch) -> None:
    """The transaction is aborted before all of its functions have ended, and may be reported as done too early."""
    original = CallsTogether.take
    patch.setattr(CallsTogether, "take", lambda self, result: original(self, result) or result.failure is not None)
    patch.setattr(CallsTogether, "results", lambda self: [each for each in self._results if each is not None])


def results_come_in_the_order_of_their_arrival(patch: pytest.MonkeyPatch) -> None:
    original = CallsTogether.take

    def take(self: Any, result: Result) -> bool:
        self.came = [*getattr(self, "came", []), result]
        return original(self, result)

    patch.setattr(CallsTogether, "take", take)
    patch.setattr(CallsTogether, "results", lambda self: self.came)


def what_functions_at_once_call_does_not_collide(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(waits, "may_leave_partition", lambda invocation: False)


def calls_that_functions_at_once_make_are_not_added_up(patch: pytest.MonkeyPatch) -> None:
    original = CallsTogether.take

    def take(self: CallsTogether, result: Result) -> bool:
        ended = original(self, result)
        self.called = result.count
        return ended

    patch.setattr(CallsTogether, "take", take)


def _is_wide(index: TableIndex) -> bool:
    return isinstance(index, PartitionIndex)


MUTATIONS: list[Mutation] = [
    groups_have_no_partition,
    partitions_are_counted_by_another_number_of_slots,
    a_partition_is_on_the_slot_of_its_number_as_a_key,
    partition_wide_ranges_are_not_validated,
    partition_wide_queries_do_not_see_own_writes,
    commits_do_not_reach_partition_wide_indexes,
    partition_wide_ranges_do_not_collide,
    rows_of_a_partition_come_in_the_order_of_their_primary_keys,
    the_first_failure_to_come_counts,
    the_last_failure_counts,
    a_failure_does_not_wait_for_the_other_calls,
    results_come_in_the_order_of_their_arrival,
    what_functions_at_once_call_does_not_collide,
    calls_that_functions_at_once_make_are_not_added_up,
]


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, BUSY, cluster=False)
