"""Mutation proof for constraints: each rule of theirs, broken on purpose, is caught by the model in plain Python, or by
the test of the rule.

Serial replay cannot catch these, since it runs the same statements. What statements read and see beside others is in
`tests/simulation/test_range_mutations.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from styx.model import row_statements
from styx.model.row_statements import RowStatements
from styx.model.row_store import RowStore
from styx.relational.row_type import RowType
from styx.relational.table import Table
from tests.model import test_row_constraints, test_row_statements
from tests.plain_form import plain_form
from tests.relational.test_random_rows import hold_against_the_model

pytestmark = plain_form

Mutation = Callable[[pytest.MonkeyPatch], None]
Judge = Callable[[], None]
SEEDS: Final = 4


def _during(patch: pytest.MonkeyPatch, method: str, broken: Callable[[pytest.MonkeyPatch], None]) -> None:
    """`broken` holds while this method of `RowStatements` runs."""
    original = getattr(RowStatements, method)

    def run(self: RowStatements, *arguments: Any) -> Any:
        with pytest.MonkeyPatch.context() as inner:
            broken(inner)
            return original(self, *arguments)

    patch.setattr(RowStatements, method, run)


def _nothing(*arguments: Any) -> None:
    pass


def _no_checks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Table, "check", _nothing)


def _no_unique_checks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowStatements, "_check_unique", _nothing)


def _no_parents(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowStatements, "_check_parent", _nothing)


# Checks ---------------------------------------------------------------------------------------------------


def checks_are_skipped_on_insert(patch: pytest.MonkeyPatch) -> None:
    _during(patch, "insert", _no_checks)


def checks_are_skipped_on_put(patch: pytest.MonkeyPatch) -> None:
    _during(patch, "put", _no_checks)


def checks_are_skipped_on_update(patch: pytest.MonkeyPatch) -> None:
    _during(patch, "update", _no_checks)


def only_the_first_check_counts(patch: pytest.MonkeyPatch) -> None:
    original = Table.check

    def check(self: Table, row: Any, data: bytes) -> None:
        checks = self.checks
        self.checks = checks[:1]
        try:
            original(self, row, data)
        finally:
            self.checks = checks

    patch.setattr(Table, "check", check)


def checks_may_change_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowType, "has_bytes", lambda self, row, data: True)


# Unique indexes -------------------------------------------------------------------------------------------


def unique_indexes_are_skipped_on_put(patch: pytest.MonkeyPatch) -> None:
    _during(patch, "put", _no_unique_checks)


def unique_indexes_are_skipped_on_update(patch: pytest.MonkeyPatch) -> None:
    _during(patch, "update", _no_unique_checks)


def a_row_is_in_its_own_way(patch: pytest.MonkeyPatch) -> None:
    """The place in a unique index is asked for as if the row were another one."""
    original = RowStatements._check_unique
    patch.setattr(
        RowStatements, "_check_unique", lambda self, table, index, key, row: original(self, table, index, (), row)
    )


def unique_indexes_are_asked_before_the_cascade(patch: pytest.MonkeyPatch) -> None:
    """Columns are set where a reference is met, while others of its rows are still to go."""
    original = RowStatements._cascade

    def cascade(self: RowStatements, reference: Any, key: Any) -> Any:
        for other in reference.parent.referenced_by:
            if other.on_delete.startswith("set"):
                self._set_children(other, key)
        return original(self, reference, key)

    patch.setattr(RowStatements, "_cascade", cascade)


# References -----------------------------------------------------------------------------------------------


def parents_are_not_asked_for_on_put(patch: pytest.MonkeyPatch) -> None:
    _during(patch, "put", _no_parents)


def parents_are_not_asked_for_on_update(patch: pytest.MonkeyPatch) -> None:
    _during(patch, "update", _no_parents)


def restrict_is_asked_before_the_cascade(patch: pytest.MonkeyPatch) -> None:
    """Of each row, before those that go with the same parent have gone."""
    original = RowStatements._cascade

    def cascade(self: RowStatements, reference: Any, key: Any) -> Any:
        for child_key, _ in self._children(reference, key):
            for other in reference.child.referenced_by:
                if other.on_delete == "restrict":
                    self._check_restrict(other, child_key)
        return original(self, reference, key)

    patch.setattr(RowStatements, "_cascade", cascade)


def restrict_is_asked_before_the_row_goes(patch: pytest.MonkeyPatch) -> None:
    """A row that refers to itself, or to one that the statement deletes as well, would restrict."""
    original = RowStatements.delete_existing

    def delete_existing(self: RowStatements, table: Table, keys: Any) -> None:
        for reference in table.referenced_by:
            if reference.on_delete == "restrict":
                for key in keys:
                    self._check_restrict(reference, key)
        original(self, table, keys)

    patch.setattr(RowStatements, "delete_existing", delete_existing)


def restrict_is_not_asked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowStatements, "_check_restrict", _nothing)


def what_is_set_is_not_checked(patch: pytest.MonkeyPatch) -> None:
    _during(patch, "_set_children", _no_checks)


def what_is_set_may_be_there_twice(patch: pytest.MonkeyPatch) -> None:
    _during(patch, "_set_children", _no_unique_checks)


def what_is_set_needs_no_parent(patch: pytest.MonkeyPatch) -> None:
    _during(patch, "_set_children", _no_parents)


def a_default_that_is_there_already_needs_no_parent(patch: pytest.MonkeyPatch) -> None:
    """A column that has its default is not changed, but its parent has gone."""
    original = RowStatements._replace
    patch.setattr(
        RowStatements, "_replace", lambda self, table, key, old, row, broken=None: original(self, table, key, old, row)
    )


def a_cascade_goes_one_step(patch: pytest.MonkeyPatch) -> None:
    original = RowStatements._cascade

    def cascade(self: RowStatements, reference: Any, key: Any) -> list[Any]:
        original(self, reference, key)
        return []

    patch.setattr(RowStatements, "_cascade", cascade)


# Keys -----------------------------------------------------------------------------------------------------


def a_row_that_is_there_is_overwritten(patch: pytest.MonkeyPatch) -> None:
    _during(patch, "insert", lambda inner: inner.setattr(RowStore, "read", _nothing))


def a_missing_row_is_updated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(row_statements, "NoSuchRow", KeyError)


def a_number_that_a_row_brought_is_given_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowStore, "pass_serial", _nothing)


def a_number_is_given_twice(patch: pytest.MonkeyPatch) -> None:
    def next_serial(self: RowStore, table: Table) -> int:
        highest = [key[-1] for key, _ in self.scan(_whole(self, table))]
        return max(highest, default=0) + 1

    patch.setattr(RowStore, "next_serial", next_serial)


def _whole(store: RowStore, table: Table) -> Any:
    return table.plan({}).range_of(store.entity, {})


# What catches them ----------------------------------------------------------------------------------------


def the_model() -> None:
    for seed in range(SEEDS):
        hold_against_the_model(seed)


def changing_checks() -> None:
    for change, row in (
        (test_row_constraints._strips, test_row_constraints.Mutable(2, " a")),
        (test_row_constraints._collects, test_row_constraints.Mutable(2, "b")),
    ):
        test_row_constraints.test_a_check_only_looks_at_the_row(change, row)


def brought_numbers() -> None:
    for statement in ("insert", "put", "keep", "replace"):
        test_row_statements.test_numbers_go_on_behind_a_row_that_brings_its_own(statement)


MUTATIONS: list[tuple[Mutation, Judge]] = [
    (checks_are_skipped_on_insert, the_model),
    (checks_are_skipped_on_put, the_model),
    (checks_are_skipped_on_update, the_model),
    (only_the_first_check_counts, the_model),
    (checks_may_change_rows, changing_checks),
    (unique_indexes_are_skipped_on_put, the_model),
    (unique_indexes_are_skipped_on_update, the_model),
    (a_row_is_in_its_own_way, the_model),
    (unique_indexes_are_asked_before_the_cascade, test_row_constraints.test_a_row_that_goes_is_in_no_ones_way),
    (parents_are_not_asked_for_on_put, the_model),
    (parents_are_not_asked_for_on_update, the_model),
    (restrict_is_asked_before_the_cascade, test_row_constraints.test_rows_of_one_cascade_do_not_restrict_each_other),
    (restrict_is_asked_before_the_row_goes, the_model),
    (restrict_is_not_asked, the_model),
    (what_is_set_is_not_checked, test_row_constraints.test_what_set_null_makes_is_checked),
    (what_is_set_may_be_there_twice, test_row_constraints.test_what_is_set_is_unique),
    (what_is_set_needs_no_parent, the_model),
    (a_default_that_is_there_already_needs_no_parent, the_model),
    (a_cascade_goes_one_step, the_model),
    (a_row_that_is_there_is_overwritten, the_model),
    (a_missing_row_is_updated, the_model),
    (a_number_that_a_row_brought_is_given_again, brought_numbers),
    (a_number_is_given_twice, test_row_statements.test_a_serial_key_is_the_entitys_next_number),
]


@pytest.mark.slow
@pytest.mark.parametrize(("mutation", "judge"), MUTATIONS, ids=lambda each: each.__name__)
def test_is_caught(mutation: Mutation, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    try:
        judge()
    except (AttributeError, TypeError, NameError) as error:
        pytest.fail(f"{mutation.__name__} breaks itself, and no rule: {error}")
    except (Exception, pytest.fail.Exception):  # noqa: BLE001 - also of a statement that should have passed
        return
    pytest.fail(f"nothing noticed: {mutation.__name__}")
