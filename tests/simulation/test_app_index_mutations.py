"""Mutation proof for app-wide indexes: each rule of theirs, broken on purpose, is caught by the simulator."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pytest

from styx.model import app_index
from styx.model.app import App
from styx.model.app_index import AppIndex
from styx.model.consequence import ImpliedCall
from styx.schema.conversion import Conversion
from styx.schema.entries import new_entries
from styx.snapshot import load
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

BUSY = {"rows": 1.0}


def an_old_entry_stays(patch: pytest.MonkeyPatch) -> None:
    calls = AppIndex.calls

    def only_new(self: AppIndex, key: Any, old: Any, new: Any) -> Iterable[ImpliedCall]:
        return [call for call in calls(self, key, old, new) if call.params[1] > 0]

    patch.setattr(AppIndex, "calls", only_new)


def a_change_of_a_row_implies_nothing(patch: pytest.MonkeyPatch) -> None:
    calls = AppIndex.calls
    patch.setattr(AppIndex, "calls", lambda self, key, old, new: [] if old and new else calls(self, key, old, new))


def a_value_may_stand_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AppIndex, "_check_alone", lambda self, store, place, held: None)


def an_entry_is_set_and_does_not_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(app_index, "_counted", lambda net, by: max(by, 0))


def rows_of_other_slots_give_no_entries(patch: pytest.MonkeyPatch) -> None:
    def of_wanted(
        app: App, slots: Mapping[int, Any], changes: Mapping[int, Conversion], wanted: Collection[int], n_slots: int
    ) -> Any:
        return new_entries(app, {slot: slots[slot] for slot in list(wanted)[:1]}, changes, wanted, n_slots)

    patch.setattr(load, "new_entries", of_wanted)


NOTICED_BY: dict[Mutation, int] = {
    an_entry_is_set_and_does_not_count: 11,
}
"""Seeds that are tried first."""


@pytest.mark.parametrize(
    "mutation",
    [
        an_old_entry_stays,
        a_change_of_a_row_implies_nothing,
        a_value_may_stand_twice,
        an_entry_is_set_and_does_not_count,
    ],
)
def test_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, BUSY, cluster=False, first=NOTICED_BY.get(mutation, 0))


def test_simulator_catches_with_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    rows_of_other_slots_give_no_entries(monkeypatch)
    assert_caught(rows_of_other_slots_give_no_entries, BUSY, cluster=True, first=20)
