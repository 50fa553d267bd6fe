"""Mutation proof for rows and ranges: each rule of theirs, broken on purpose, is caught by the simulator.

Two rules cannot be told apart by what transactions give: a range that is validated too strictly only sends transactions
to the lock phase, and one that collides too easily only to sequential mode. `tests/worker/` has these. It has those of
`ChangedEntries` as well, because rounds over rows that leave something out are rare here.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

import pytest

from styx.model.table_names import holds_rows
from styx.protocol.frames import Patch
from styx.relational.index_range import TOP, Group, IndexRange, Position, TableIndex
from styx.state.sorted_index import SortedIndex
from styx.state.table import Table
from styx.worker import current_cell, footprint, range_read, range_validation, validation
from styx.worker.footprint import Footprint, RowCell
from styx.worker.incremented_row import AnyRow, IncrementedRow
from styx.worker.local_cells import LocalCell, LocalCells, LocalRow
from styx.worker.lock_phase import SlotLockPhase
from styx.worker.range_read import Layers, read_range
from styx.worker.slot import Slot
from styx.worker.transaction_rows import Images, TransactionRows, images_of
from styx.worker.written_rows import WrittenIndex, WrittenRows
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

BUSY = {"rows": 1.0}


# Validation -----------------------------------------------------------------------------------------------


def ranges_are_not_validated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(validation, "conflicts_of_ranges", lambda slot, accesses, gone: set())


def only_what_a_row_was_is_an_image(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        range_validation,
        "images",
        lambda cell, index, n_slots: _moved(images_of(cell.key, cell.images()[:1], index, n_slots)),
    )


def only_what_a_row_becomes_is_an_image(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        range_validation,
        "images",
        lambda cell, index, n_slots: _moved(images_of(cell.key, cell.images()[1:], index, n_slots)),
    )


def _moved(images: Images) -> Images:
    return Images(images.entries, True)


def a_membership_minds_no_row_that_moves(patch: pytest.MonkeyPatch) -> None:
    original = images_of

    def images(cell: AnyRow, index: TableIndex, n_slots: int) -> Images:
        return Images(original(cell.key, cell.images(), index, n_slots).entries, False)

    patch.setattr(range_validation, "images", images)


def a_range_ends_before_the_last_row_given(patch: pytest.MonkeyPatch) -> None:
    original = range_read.range_that_was_read

    def shorter(wanted: IndexRange, found: Any) -> IndexRange:
        if wanted.first and found:
            return IndexRange(wanted.index, wanted.group, wanted.low, found[-1][0], wanted.membership)
        return original(wanted, found)

    patch.setattr(footprint, "range_that_was_read", shorter)


# What a query sees, and collisions ------------------------------------------------------------------------


def queries_do_not_see_own_writes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionRows, "seen", lambda self, wanted, chain: WrittenRows().of(wanted.index, self.n_slots))


def queries_see_what_concurrent_branches_wrote(patch: pytest.MonkeyPatch) -> None:
    def seen(self: TransactionRows, wanted: IndexRange, chain: bytes) -> WrittenIndex:
        index, rows = wanted.index, WrittenRows()
        for cell in self.written.get(index.table, {}).values():
            rows.write(index.table, cell.key, cell.final_value())
        return rows.of(index, self.n_slots)

    patch.setattr(TransactionRows, "seen", seen)
    ranges_do_not_collide(patch)


def ranges_do_not_collide(patch: pytest.MonkeyPatch) -> None:
    a_write_before_the_query_does_not_collide(patch)
    a_write_behind_the_query_does_not_collide(patch)


def a_write_before_the_query_does_not_collide(patch: pytest.MonkeyPatch) -> None:
    original = TransactionRows.read

    def read(self: TransactionRows, chain: bytes, wanted: IndexRange) -> bool:
        original(self, chain, wanted)
        return False

    patch.setattr(TransactionRows, "read", read)


def a_write_behind_the_query_does_not_collide(patch: pytest.MonkeyPatch) -> None:
    original = TransactionRows.wrote

    def wrote(self: TransactionRows, chain: bytes, cell: AnyRow) -> bool:
        original(self, chain, cell)
        return False

    patch.setattr(TransactionRows, "wrote", wrote)


def ranges_are_forgotten_after_a_wait(patch: pytest.MonkeyPatch) -> None:
    """What a chain read before its last query does not count."""
    original = TransactionRows.read

    def read(self: TransactionRows, chain: bytes, wanted: IndexRange) -> bool:
        self.ranges.clear()
        return original(self, chain, wanted)

    patch.setattr(TransactionRows, "read", read)


# Constraints ----------------------------------------------------------------------------------------------


def rows_read_by_their_keys_are_not_validated(patch: pytest.MonkeyPatch) -> None:
    """As an insert reads whether the row is there."""
    original = validation.conflicts

    def conflicts(slot: Slot, gone: Container[int]) -> list[int]:
        shared = slot.shared
        slot.shared = {entry: cells for entry, cells in shared.items() if not holds_rows(entry[0])}
        found = original(slot, gone)
        slot.shared = shared
        return found

    patch.setattr(validation, "conflicts", conflicts)


def parents_are_asked_for_without_a_range(patch: pytest.MonkeyPatch) -> None:
    _without_ranges(patch, lambda wanted: wanted.index.number == 0 and wanted.high == (*wanted.low, TOP))


def parents_are_looked_up_among_committed_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowCell, "looked_at", lambda self, chain: self.found(self.key))


def local_functions_look_up_committed_parents(patch: pytest.MonkeyPatch) -> None:
    def has(
        self: LocalCell, environment: Footprint, primary: TableIndex, entity: Group, position: Position, chain: bytes
    ) -> bool:
        slot, key = environment.here, entity + position
        assert slot is not None
        return slot.state.table(primary.table).read(slot.epoch, key) is not None

    patch.setattr(LocalCell, "has", has)


def _without_ranges(patch: pytest.MonkeyPatch, left_out: Callable[[IndexRange], bool]) -> None:
    original = TransactionRows.read

    def read(self: TransactionRows, chain: bytes, wanted: IndexRange) -> bool:
        return not (wanted.membership and left_out(wanted)) and original(self, chain, wanted)

    patch.setattr(TransactionRows, "read", read)


def unique_indexes_are_asked_about_committed_rows(patch: pytest.MonkeyPatch) -> None:
    original = TransactionRows.seen

    def seen(self: TransactionRows, wanted: IndexRange, chain: bytes) -> WrittenIndex:
        if wanted.index.name == "one_tag":
            return WrittenRows().of(wanted.index, self.n_slots)
        return original(self, wanted, chain)

    patch.setattr(TransactionRows, "seen", seen)


# The lock phase, and phase 3 ------------------------------------------------------------------------------


def queries_of_the_lock_phase_see_no_lower_writes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        current_cell, "read_range", lambda slot, wanted, n_slots, layers: read_range(slot, wanted, n_slots, layers[:1])
    )


def queries_of_the_lock_phase_see_no_own_writes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        current_cell, "read_range", lambda slot, wanted, n_slots, layers: read_range(slot, wanted, n_slots, layers[1:])
    )


def queries_of_the_lock_phase_see_lower_writes_over_own_ones(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        current_cell,
        "read_range",
        lambda slot, wanted, n_slots, layers: read_range(slot, wanted, n_slots, layers[::-1]),
    )


def what_a_run_before_wrote_is_seen(patch: pytest.MonkeyPatch) -> None:
    """An unchanged re-run that is given up leaves its rows to the queries of the general one."""
    patch.setattr(TransactionRows, "run_again", lambda self: self.scanned.clear())


def writes_stay_after_a_round_was_rolled_back(patch: pytest.MonkeyPatch) -> None:
    original = SlotLockPhase.next_round

    def next_round(self: SlotLockPhase, number: int, excluded: Container[int], patches: Iterable[Patch]) -> None:
        rows = self._slot.current_rows
        original(self, number, excluded, patches)
        self._slot.current_rows = rows

    patch.setattr(SlotLockPhase, "next_round", next_round)


def what_has_only_queried_does_not_run_again(patch: pytest.MonkeyPatch) -> None:
    original = SlotLockPhase._would_read_the_same

    def would_read_the_same(self: SlotLockPhase, footprint: Footprint) -> bool:
        if footprint.rows is not None:
            footprint.rows.scanned.clear()
        return original(self, footprint)

    patch.setattr(SlotLockPhase, "_would_read_the_same", would_read_the_same)


def local_functions_query_the_committed_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LocalCells, "read", lambda self, wanted, n_slots: read_range(self._slot, wanted, n_slots, ()))


def local_functions_query_what_was_undone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LocalRow, "undo", LocalCell.undo)


# Indexes --------------------------------------------------------------------------------------------------


def commits_do_not_reach_indexes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Table, "_move", lambda self, key, value: None)


def a_row_that_moves_stays_where_it_was(patch: pytest.MonkeyPatch) -> None:
    original = SortedIndex.move
    patch.setattr(SortedIndex, "move", lambda self, key, before, after: original(self, key, None, after))


def what_aborted_is_in_the_index(patch: pytest.MonkeyPatch) -> None:
    original = validation.commit

    def commit(slot: Slot, left: Any) -> None:
        original(slot, left)
        for table, cells in slot.cells_by_operator():
            indexes = slot.state.table(table)._indexes
            for cell in cells:
                if isinstance(cell, RowCell | IncrementedRow) and cell.written and cell.footprint.tid in left:
                    for index in indexes.values():
                        index.move(cell.key, None, cell.value)

    patch.setattr(validation, "commit", commit)


def rows_come_in_the_order_of_their_insertion(patch: pytest.MonkeyPatch) -> None:
    original = range_read._committed

    def committed(slot: Slot, wanted: IndexRange, n_slots: int, layers: Layers) -> Any:
        found = original(slot, wanted, n_slots, layers)
        order = {key: place for place, key in enumerate(slot.state.table(wanted.index.table)._entries)}
        return sorted(found, key=lambda entry: order[entry[1]])

    patch.setattr(range_read, "_committed", committed)


MUTATIONS: list[Mutation] = [
    ranges_are_not_validated,
    only_what_a_row_was_is_an_image,
    only_what_a_row_becomes_is_an_image,
    a_membership_minds_no_row_that_moves,
    a_range_ends_before_the_last_row_given,
    queries_do_not_see_own_writes,
    queries_see_what_concurrent_branches_wrote,
    ranges_do_not_collide,
    a_write_before_the_query_does_not_collide,
    a_write_behind_the_query_does_not_collide,
    ranges_are_forgotten_after_a_wait,
    rows_read_by_their_keys_are_not_validated,
    parents_are_asked_for_without_a_range,
    parents_are_looked_up_among_committed_rows,
    local_functions_look_up_committed_parents,
    unique_indexes_are_asked_about_committed_rows,
    queries_of_the_lock_phase_see_no_lower_writes,
    queries_of_the_lock_phase_see_no_own_writes,
    queries_of_the_lock_phase_see_lower_writes_over_own_ones,
    what_a_run_before_wrote_is_seen,
    writes_stay_after_a_round_was_rolled_back,
    what_has_only_queried_does_not_run_again,
    local_functions_query_the_committed_rows,
    local_functions_query_what_was_undone,
    commits_do_not_reach_indexes,
    a_row_that_moves_stays_where_it_was,
    what_aborted_is_in_the_index,
    rows_come_in_the_order_of_their_insertion,
]
NOTICED_BY: dict[Mutation, int] = {
    only_what_a_row_becomes_is_an_image: 326,
    unique_indexes_are_asked_about_committed_rows: 187,
}
"""Seeds that are tried first."""


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, BUSY, cluster=False, first=NOTICED_BY.get(mutation, 0))
