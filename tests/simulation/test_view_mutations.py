"""Mutation proof for views: each way in which a view can miss a change of a row, made on purpose, is caught."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from styx import App, Context, Operator
from styx.model.app_view import AppView
from styx.model.consequence import ImpliedCall
from styx.model.group_rows import add_share
from styx.model.row_statements import RowStatements
from styx.model.row_store import RowStore
from styx.model.table_names import holds_view
from styx.relational import view
from styx.relational.index_range import IndexRange, RowKey
from styx.relational.table import Table
from styx.relational.view import Share, View
from styx.schema import conversion
from styx.testing import SerializabilityViolation, embedded_cluster
from styx.worker.transaction_rows import TransactionRows
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

    def imply(self: RowStatements, table: Table, key: RowKey, data: bytes | None, old: Any, *more: Any) -> None:
        if data is not None or not table.references:
            original(self, table, key, data, old, *more)

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


def a_value_that_leaves_a_group_stays_ranked(patch: pytest.MonkeyPatch) -> None:
    original = View.shares

    def shares(self: View, old: Any, new: Any) -> list[Share]:
        return [
            share._replace(ranked=tuple(each for each in share.ranked if each[2] > 0))
            for share in original(self, old, new)
        ]

    patch.setattr(View, "shares", shares)


def a_value_that_changes_in_its_group_keeps_its_rank(patch: pytest.MonkeyPatch) -> None:
    original = View.shares

    def shares(self: View, old: Any, new: Any) -> list[Share]:
        found = original(self, old, new)
        return found if old is None or new is None or len(found) != 1 else [found[0]._replace(ranked=())]

    patch.setattr(View, "shares", shares)


def a_call_says_nothing_of_ranks(patch: pytest.MonkeyPatch) -> None:
    original = AppView.calls

    def calls(self: AppView, key: RowKey, old: Any, new: Any) -> list[ImpliedCall]:
        return [call._replace(params=call.params[:1]) for call in original(self, key, old, new)]

    patch.setattr(AppView, "calls", calls)


def an_end_is_read_without_its_range(patch: pytest.MonkeyPatch) -> None:
    """As if whoever reads the least value need not know of a lesser one that comes."""
    original = TransactionRows.read

    def read(self: TransactionRows, chain: bytes, wanted: IndexRange) -> bool:
        return " by " not in wanted.index.table and original(self, chain, wanted)

    patch.setattr(TransactionRows, "read", read)


def rows_of_other_partitions_count(patch: pytest.MonkeyPatch) -> None:
    """As if an entity knew only its slot."""

    def add(store: RowStore, view: View, place: RowKey, group: RowKey, share: Share) -> None:
        add_share(store, view, (0,) if view.scope == "partition" else place, group, share)

    patch.setattr("styx.model.row_statements.add_share", add)


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
    a_value_that_leaves_a_group_stays_ranked,
    a_value_that_changes_in_its_group_keeps_its_rank,
    a_call_says_nothing_of_ranks,
    rows_of_other_partitions_count,
]
CLUSTER_MUTATIONS: list[Mutation] = [views_over_all_entities_are_not_made_anew]


NOTICED_BY: dict[Mutation, int] = {
    what_a_cascade_deletes_stays_counted: 11,
}
"""Seeds that are tried first."""


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, BUSY, cluster=False, first=NOTICED_BY.get(mutation, 0))


class Row(msgspec.Struct):
    id: int
    rank: int


shop = Operator("shop")
ranked: Any = shop.table("rows", Row, key="id")
ends: Any = ranked.view("ends", min="rank")


@shop.register
async def set_rank(ctx: Context, id: int, rank: int) -> None:
    await ctx.rows(ranked).put(Row(id, rank))


@shop.register
async def least(ctx: Context) -> int | None:
    group: Any = await ctx.rows(ends).get(())
    found: int | None = group.min_rank
    return found


async def _least_values_amid_changes() -> None:
    """Changes of values whose groups keep their counts and sums, and reads of the least one, in the same epochs."""
    async with embedded_cluster(App("shop", [shop])) as cluster:
        await cluster.call(shop, "k", set_rank, 1, 0)
        calls = [
            cluster.request(shop, "k", least) if at % 2 else cluster.request(shop, "k", set_rank, 1, at)
            for at in range(1, 61)
        ]
        await asyncio.gather(*calls)


def test_the_least_value_is_that_of_the_serial_order() -> None:
    asyncio.run(_least_values_amid_changes())


def test_the_history_shows_an_end_that_was_read_without_its_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """No seed notices it often: what changes an end mostly changes the count or a sum as well."""
    an_end_is_read_without_its_range(monkeypatch)
    with pytest.raises(SerializabilityViolation):
        asyncio.run(_least_values_amid_changes())


@pytest.mark.slow
@pytest.mark.parametrize("mutation", CLUSTER_MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_of_a_cluster_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, BUSY, cluster=True)
