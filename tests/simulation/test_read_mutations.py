"""Mutation proof of the rules of reads outside the log: each one, broken on purpose, is caught by the simulator, whose
reads are held against the serial execution at the end of their epochs.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from proof.simulation import random_plan, simulate
from styx.model.key_range import KeyRange
from styx.protocol.reads import ReadPart
from styx.state.key_order import KeyOrder
from styx.state.table import NEWEST, Table
from styx.state.versions import Images, TableVersions, Versions
from styx.worker import reads
from styx.worker.epoch import Epoch
from styx.worker.epoch_view import SlotView
from styx.worker.events import Step
from styx.worker.reads import Reads
from styx.worker.worker import Worker
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

PACE = {"outside": 0.2}


def versions_are_not_kept_in_the_lock_phase(patch: pytest.MonkeyPatch) -> None:
    keep, decided = TableVersions.keep, Epoch.lock_decided
    locking = [False]

    def lock_decided(self: Epoch, decision: Any) -> None:
        locking[0] = True
        decided(self, decision)
        locking[0] = False

    def kept(self: TableVersions, epoch: int, key: Any, before: bytes | None) -> None:
        if not locking[0]:
            keep(self, epoch, key, before)

    patch.setattr(Epoch, "lock_decided", lock_decided)
    patch.setattr(TableVersions, "keep", kept)


def versions_are_not_kept_in_phase_3(patch: pytest.MonkeyPatch) -> None:
    keep, end = TableVersions.keep, Epoch._end_local
    ending = [False]

    def end_local(self: Epoch) -> None:
        ending[0] = True
        end(self)
        ending[0] = False

    def kept(self: TableVersions, epoch: int, key: Any, before: bytes | None) -> None:
        if not ending[0]:
            keep(self, epoch, key, before)

    patch.setattr(Epoch, "_end_local", end_local)
    patch.setattr(TableVersions, "keep", kept)


def the_newest_image_counts_instead_of_the_first_behind_the_epoch(patch: pytest.MonkeyPatch) -> None:
    def value_at(self: TableVersions, epoch: int, key: Any, newest: Any) -> bytes | None:
        for written, images in reversed(self._kept):
            if written > epoch and key in images:
                return images[key]
        found: bytes | None = newest.get(key)
        return found

    patch.setattr(TableVersions, "value_at", value_at)


def the_last_write_of_an_epoch_leaves_the_image(patch: pytest.MonkeyPatch) -> None:
    keep = TableVersions.keep

    def kept(self: TableVersions, epoch: int, key: Any, before: bytes | None) -> None:
        keep(self, epoch, key, before)
        self._open_images[key] = before

    patch.setattr(TableVersions, "keep", kept)


def a_query_sees_newer_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SlotView, "_overwritten", lambda self, wanted: ())


def a_query_sees_rows_of_the_wrong_epoch(patch: pytest.MonkeyPatch) -> None:
    def behind(self: TableVersions, epoch: int) -> list[Images]:
        return [images for written, images in self._kept if written > epoch]

    patch.setattr(TableVersions, "behind", behind)


def a_listing_has_newer_entries(patch: pytest.MonkeyPatch) -> None:
    listed = SlotView.listed

    def newest(self: SlotView, *asked: Any) -> Any:
        with pytest.MonkeyPatch.context() as within:
            within.setattr(Table, "value_at", lambda table, epoch, key: table.read(NEWEST, key))
            return listed(self, *asked)

    patch.setattr(SlotView, "listed", newest)


def a_listing_lacks_what_has_gone_since(patch: pytest.MonkeyPatch) -> None:
    listed = SlotView.listed

    def there(self: SlotView, *asked: Any) -> Any:
        with pytest.MonkeyPatch.context() as within:
            within.setattr(Table, "images_behind", lambda table, epoch: [])
            return listed(self, *asked)

    patch.setattr(SlotView, "listed", there)


def a_listing_begins_with_the_key_that_it_goes_on_behind(patch: pytest.MonkeyPatch) -> None:
    listed = SlotView.listed

    def from_there(self: SlotView, table: str, wanted: KeyRange, first: int) -> Any:
        start = wanted.behind if wanted.start is None else wanted.start
        return listed(self, table, wanted._replace(start=start, behind=None), first)

    patch.setattr(SlotView, "listed", from_there)


def a_commit_does_not_keep_the_order_of_keys(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KeyOrder, "_move", lambda self, key, there: None)


def what_was_dropped_is_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reads, "_reaches", lambda self, reading: True)


def versions_begin_amid_a_commit(patch: pytest.MonkeyPatch) -> None:
    original = Versions.begin
    patch.setattr(Versions, "begin", lambda self, oldest: original(self, oldest - 1))


def a_part_is_read_at_the_newest_epoch(patch: pytest.MonkeyPatch) -> None:
    original = Reads.ask_part

    def ask_part(self: Reads, its_id: Any, part: ReadPart) -> None:
        newest = max(part.epoch, reads.closed_epoch(self._worker))
        original(self, its_id, replace(part, epoch=newest))

    patch.setattr(Reads, "ask_part", ask_part)


def a_part_does_not_wait_for_its_epoch(patch: pytest.MonkeyPatch) -> None:
    original = Reads._take

    def take(self: Reads, reading: Any, at_least: int) -> None:
        original(self, reading, -1 if reading.part is not None else at_least)

    patch.setattr(Reads, "_take", take)


def an_open_epoch_counts_as_closed(patch: pytest.MonkeyPatch) -> None:
    def closed_epoch(worker: Worker) -> int:
        return -2 if worker.reached in (Step.LOADING, Step.LOADED) else worker.epoch

    patch.setattr(reads, "closed_epoch", closed_epoch)


def a_token_is_ignored(patch: pytest.MonkeyPatch) -> None:
    original = Reads.ask

    def ask(self: Reads, wanted: Any) -> None:
        original(self, replace(wanted, at_least=-1))

    patch.setattr(Reads, "ask", ask)


MUTATIONS: dict[Mutation, int] = {
    versions_are_not_kept_in_the_lock_phase: 0,
    versions_are_not_kept_in_phase_3: 1,
    the_newest_image_counts_instead_of_the_first_behind_the_epoch: 1,
    the_last_write_of_an_epoch_leaves_the_image: 1,
    a_query_sees_newer_rows: 1,
    a_query_sees_rows_of_the_wrong_epoch: 1,
    a_listing_has_newer_entries: 1,
    a_listing_lacks_what_has_gone_since: 74,
    a_listing_begins_with_the_key_that_it_goes_on_behind: 1,
    a_commit_does_not_keep_the_order_of_keys: 1,
    what_was_dropped_is_read: 6,
    versions_begin_amid_a_commit: 8,
    a_part_is_read_at_the_newest_epoch: 4,
    a_part_does_not_wait_for_its_epoch: 11,
    an_open_epoch_counts_as_closed: 0,
    a_token_is_ignored: 0,
}
"""Each with the seed that is tried first."""


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, PACE, cluster=False, first=MUTATIONS[mutation])


def test_nothing_is_caught_without_a_mutation() -> None:
    reports = [simulate(replace(random_plan(seed), **PACE)) for seed in range(3)]
    assert sum(report.outside for report in reports) > 100
    assert sum(report.listings for report in reports) > 50
