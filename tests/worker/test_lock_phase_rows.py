"""Rounds of one slot's lock phase over rows: what is left out would have run as it did.

Random transactions on two entities put, take and query rows. Some of them then leave. The outcomes are compared with
those of a lock phase that runs every part again, and each mutation of the rule makes some of them differ.
"""

from __future__ import annotations

from random import Random

import pytest

from styx.model.limits import Limits
from styx.relational.index_range import RowKey, TableIndex
from styx.worker import changed_entries
from styx.worker.changed_entries import ChangedEntries
from styx.worker.footprint import Writes
from styx.worker.invocation import Running
from styx.worker.lock_phase import SlotLockPhase
from styx.worker.transaction_rows import Images, images_of
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation
from tests.worker.execution import Execution

pytestmark = plain_form

EVERYTHING = 10**9
HISTORIES = 120
TRANSACTIONS = 7
VALUES = 4


def _runs_all() -> type[SlotLockPhase]:
    """A lock phase that leaves out no part. Interpreted, so it cannot be of a compiled one."""

    class RunsAll(SlotLockPhase):
        def _would_read_the_same(self, footprint: object) -> bool:
            return False

    return RunsAll


def _script(rng: Random) -> str:
    """Steps that all depend on queries: what a transaction puts is a number that it has found."""
    low = rng.randrange(VALUES)
    steps = [f"{rng.choice(['rows', 'sum'])} {low} {rng.randint(low, VALUES)}"]
    if rng.random() < 0.7:
        n, value = rng.randrange(3), rng.randrange(VALUES + 1)
        change = rng.choice([f"row {n} {value}", f"row {n} {value}", f"take {n}"])
        steps.insert(rng.randrange(2), f"if {rng.randint(1, 2)} ({change}) (row {n} {rng.randrange(VALUES)})")
    return "; ".join(["rows 0 9", *steps])


def _differs(seed: int) -> bool:
    """Whether leaving parts out changes an outcome of the history."""
    rng = Random(seed)
    transactions = {tid: (rng.choice(["a0", "b0"]), _script(rng)) for tid in range(1, TRANSACTIONS + 1)}
    leaving = [rng.sample(sorted(transactions), 1) for _ in range(2)]
    found = []
    for kind in (SlotLockPhase, _runs_all()):
        execution = Execution(1, limits=Limits())
        execution.run(transactions)
        lock = kind(execution.slots[0], transactions.keys(), (), Running())
        lock.run(EVERYTHING)
        gone = set[int]()
        for number, tids in enumerate(leaving, 1):
            gone.update(tids)
            lock.next_round(number, gone, ())
            lock.run(EVERYTHING)
        stay = sorted(transactions.keys() - gone)
        found.append([(tid, lock.outcomes[tid].result, lock.outcomes[tid].writes) for tid in stay])
    return found[0] != found[1]


@plain_form
def test_what_is_left_out_would_have_run_as_it_did() -> None:
    assert not [seed for seed in range(HISTORIES) if _differs(seed)]


def test_parts_are_left_out_that_query_the_table_which_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {False: 0, True: 0}
    original = ChangedEntries.matter_to

    def matter_to(self: ChangedEntries, *of: object) -> bool:
        found: bool = original(self, *of)  # type: ignore[arg-type]
        counts[found] += 1
        return found

    monkeypatch.setattr(ChangedEntries, "matter_to", matter_to)
    for seed in range(50):
        _differs(seed)
    assert min(counts.values()) > 50


# Mutations ------------------------------------------------------------------------------------------------


def no_changed_row_matters(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChangedEntries, "matter_to", lambda self, ranges, current, slot, n_slots: False)


def what_a_changed_row_was_does_not_matter(patch: pytest.MonkeyPatch) -> None:
    _with_images(patch, slice(1, None))


def what_a_changed_row_is_does_not_matter(patch: pytest.MonkeyPatch) -> None:
    _with_images(patch, slice(1))


def _with_images(patch: pytest.MonkeyPatch, kept: slice) -> None:
    def images(key: RowKey, values: list[bytes | None], index: TableIndex, n_slots: int) -> Images:
        return Images(images_of(key, values[kept], index, n_slots).entries, True)

    patch.setattr(changed_entries, "images_of", images)


def a_changed_row_that_stays_where_it_was_matters_to_no_query(patch: pytest.MonkeyPatch) -> None:
    """Also to a query of the primary key, whose entry never moves: no row that is put again would matter to it."""

    def images(key: RowKey, values: list[bytes | None], index: TableIndex, n_slots: int) -> Images:
        found = images_of(key, values, index, n_slots)
        return found if None in values else Images([], False)

    patch.setattr(changed_entries, "images_of", images)


def what_a_part_wrote_before_is_not_what_a_row_was(patch: pytest.MonkeyPatch) -> None:
    original = ChangedEntries.compare

    def compare(self: ChangedEntries, was: Writes, now: Writes) -> None:
        before = None if self.before is None else dict(self.before)
        original(self, was, now)
        self.before = before

    patch.setattr(ChangedEntries, "compare", compare)


def what_a_part_wrote_that_has_left_is_not_what_a_row_was(patch: pytest.MonkeyPatch) -> None:
    original = ChangedEntries.gone

    def gone(self: ChangedEntries, was: Writes) -> None:
        before = None if self.before is None else dict(self.before)
        original(self, was)
        self.before = before

    patch.setattr(ChangedEntries, "gone", gone)


MUTATIONS: list[Mutation] = [
    no_changed_row_matters,
    what_a_changed_row_was_does_not_matter,
    what_a_changed_row_is_does_not_matter,
    a_changed_row_that_stays_where_it_was_matters_to_no_query,
    what_a_part_wrote_before_is_not_what_a_row_was,
    what_a_part_wrote_that_has_left_is_not_what_a_row_was,
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_mutation_makes_histories_differ(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert any(_differs(seed) for seed in range(HISTORIES))
