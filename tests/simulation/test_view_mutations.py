"""Mutation proof for views: each way in which a view can miss a change of a row, made on purpose, is caught."""

from __future__ import annotations

from typing import Any

import pytest

from styx.model.app_view import AppView
from styx.model.consequence import ImpliedCall
from styx.model.row_statements import RowStatements
from styx.model.table_names import holds_view
from styx.relational import view
from styx.relational.index_range import RowKey
from styx.relational.table import Table
from styx.relational.view import Share, View
from styx.schema import conversion
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

BUSY = {"rows": 1.0}


def a_row_that_moves_stays_in_its_old_group(patch: pytest.MonkeyPatch) -> None:
    original = View.shares

    def shares(self: View, old: Any, new: Any) -> list[Share]:
        return original(self, old if new is None else None, new)

    patch.setattr(View, "shares", shares)


def a_deleted_row_is_taken_away_whether_it_counted_or_not(patch: pytest.MonkeyPatch) -> None:
    original = View.shares

    def shares(self: View, old: Any, new: Any) -> list[Share]:
        where = self.where
        if new is None:
            self.where = None
        try:
            return original(self, old, new)
        finally:
            self.where = where

    patch.setattr(View, "shares", shares)


def what_a_cascade_deletes_stays_counted(patch: pytest.MonkeyPatch) -> None:
    original = RowStatements._imply

    def imply(self: RowStatements, table: Table, key: RowKey, data: bytes | None) -> None:
        if data is not None or not table.references:
            original(self, table, key, data)

    patch.setattr(RowStatements, "_imply", imply)


def a_row_that_stays_in_its_group_is_added_again(patch: pytest.MonkeyPatch) -> None:
    original = View.shares

    def shares(self: View, old: Any, new: Any) -> list[Share]:
        after = None if new is None else self.share(new)
        return original(self, old, new) if after is None or old is None else [after]

    patch.setattr(View, "shares", shares)


def sums_do_not_change_with_their_columns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(view, "added", lambda one, other: 0)


def a_group_elsewhere_is_not_told_of_what_leaves_it(patch: pytest.MonkeyPatch) -> None:
    original = AppView.calls

    def calls(self: AppView, key: RowKey, old: Any, new: Any) -> list[ImpliedCall]:
        return list(original(self, key, old, new)) if new is not None else []

    patch.setattr(AppView, "calls", calls)


def views_over_all_entities_are_not_made_anew(patch: pytest.MonkeyPatch) -> None:
    """As if a version had them already, while their tables go as those that nobody declares."""
    patch.setattr(conversion, "views_gone", lambda app, tables: frozenset(filter(holds_view, tables)))


MUTATIONS: list[Mutation] = [
    a_row_that_moves_stays_in_its_old_group,
    a_deleted_row_is_taken_away_whether_it_counted_or_not,
    what_a_cascade_deletes_stays_counted,
    a_row_that_stays_in_its_group_is_added_again,
    sums_do_not_change_with_their_columns,
    a_group_elsewhere_is_not_told_of_what_leaves_it,
]
CLUSTER_MUTATIONS: list[Mutation] = [views_over_all_entities_are_not_made_anew]


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, BUSY, cluster=False)


@pytest.mark.slow
@pytest.mark.parametrize("mutation", CLUSTER_MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_of_a_cluster_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, BUSY, cluster=True)
