"""The snapshot ledger: when a snapshot is one, what is kept for it, and in which order objects stand.

The chains of random histories are compared with the obvious model: every change ever stored, oldest first.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.coordinator.events import DeleteManifest, DeleteObjects, Effect, ReleaseLog
from styx.coordinator.snapshots import COMPACTION_OBJECTS_MIN, MANIFESTS_KEPT, SnapshotLedger
from styx.protocol import Compact, Compacted, Manifest, ObjectRef, SlotPart

SLOTS = 2


def part(slot: int, epoch: int, size: int | None = 10) -> SlotPart:
    """A slot's part; `size` None: it has not changed."""
    stored = None if size is None else ObjectRef(f"{slot}/{epoch}", size, b"")
    return SlotPart(slot, 100 * epoch + slot, [], 200 * epoch + slot, {slot: 300 * epoch + slot}, stored)


def started() -> SnapshotLedger:
    ledger = SnapshotLedger(SLOTS)
    ledger.start_from(None)
    return ledger


def taken(ledger: SnapshotLedger, epoch: int, *sizes: int | None) -> Manifest:
    """All parts of a snapshot arrive, slot 0's last; slots without a size have not changed."""
    ledger.begin(epoch, epoch)
    by_slot = [*sizes, *[None] * (SLOTS - len(sizes))]
    for slot in range(1, SLOTS):
        assert ledger.take_part(1, part(slot, epoch, by_slot[slot])) is None
    manifest = ledger.take_part(1, part(0, epoch, by_slot[0]))
    assert manifest is not None
    return manifest


def completed(ledger: SnapshotLedger, epoch: int, *sizes: int | None) -> list[Effect]:
    return ledger.complete(taken(ledger, epoch, *sizes))


def chain(manifest: Manifest, slot: int = 0) -> list[str]:
    return [ref.name for ref in manifest.slots[slot].objects]


# Complete or nothing -------------------------------------------------------------------------------------------


def test_there_is_a_manifest_when_every_part_is_there() -> None:
    ledger = started()
    ledger.begin(4, 17)
    assert ledger.take_part(2, part(1, 4)) is None
    manifest = ledger.take_part(2, part(0, 4, None))
    assert manifest is not None
    assert (manifest.generation, manifest.epoch, manifest.counter) == (2, 4, 17)
    assert [(slot.part, [ref.name for ref in slot.objects]) for slot in manifest.slots] == [
        (part(0, 4, None), []),
        (part(1, 4), ["1/4"]),
    ]


def test_a_part_that_arrives_twice_is_one_part() -> None:
    ledger = started()
    ledger.begin(4, 17)
    for _ in range(2):
        assert ledger.take_part(1, part(1, 4)) is None


def test_a_failed_snapshot_leaves_no_trace() -> None:
    ledger = started()
    completed(ledger, 1, 10)
    taken(ledger, 2, 10)
    ledger.abandon()
    assert ledger.under_way is None
    assert chain(taken(ledger, 3, 10)) == ["0/1", "0/3"]


def test_snapshots_do_not_overlap() -> None:
    ledger = started()
    ledger.begin(1, 1)
    with pytest.raises(AssertionError):
        ledger.begin(2, 2)


def test_a_new_generation_goes_on_from_its_manifest() -> None:
    ledger = started()
    first = taken(ledger, 1, 10)
    ledger.complete(first)
    completed(ledger, 2, 10)
    ledger.begin(3, 3)
    assert ledger.drop_newest().epoch == 2
    ledger.start_from(first)
    assert ledger.under_way is None
    assert chain(taken(ledger, 4, 10)) == ["0/1", "0/4"]


# What is released ----------------------------------------------------------------------------------------------


def test_the_first_snapshot_releases_nothing() -> None:
    assert completed(started(), 1, 10, 10) == []


def test_the_log_is_released_behind_the_older_of_two() -> None:
    ledger = started()
    completed(ledger, 1, 10, 10)
    assert completed(ledger, 2, 10, 10) == [ReleaseLog({0: 100, 1: 101}, {0: 300, 1: 301}, 200)]


def test_a_third_snapshot_retires_the_first() -> None:
    ledger = started()
    for epoch in (1, 2):
        completed(ledger, epoch, 10)
    effects = completed(ledger, 3, 10)
    assert DeleteManifest(1, 1) in effects
    assert not any(isinstance(effect, DeleteObjects) for effect in effects), "the newer ones are made of its objects"
    assert [manifest.epoch for manifest in ledger.manifests] == [3, 2]


def test_merged_objects_go_with_the_last_manifest_that_needs_them() -> None:
    ledger = started()
    for epoch in (1, 2, 3, 4):
        completed(ledger, epoch, 10)
    [compact] = ledger.compactions(1)
    ledger.compacted(merged(compact))
    deleted = [effect for epoch in (5, 6) for effect in completed(ledger, epoch) if isinstance(effect, DeleteObjects)]
    assert deleted == [DeleteObjects(["0/1", "0/2", "0/3", "0/4"])]
    assert ledger.referenced() == {merged_name(compact)}


# Compaction ----------------------------------------------------------------------------------------------------


def merged_name(compact: Compact) -> str:
    return "+".join(ref.name for ref in compact.objects)


def merged(compact: Compact) -> Compacted:
    """The merge went well; the object's name says what is in it, oldest first."""
    size = sum(ref.size for ref in compact.objects)
    ref = ObjectRef(merged_name(compact), size, b"")
    return Compacted(compact.generation, compact.slot, [ref.name for ref in compact.objects], ref)


def not_merged(compact: Compact) -> Compacted:
    return Compacted(compact.generation, compact.slot, [ref.name for ref in compact.objects], None)


def wanted(*sizes: int) -> list[int] | None:
    """Sizes of the objects that are merged when a chain has these."""
    ledger = started()
    for epoch, size in enumerate(sizes):
        completed(ledger, epoch, size)
    compacts = ledger.compactions(1)
    return [ref.size for ref in compacts[0].objects] if compacts else None


@pytest.mark.parametrize(
    ("sizes", "merge"),
    [
        ((10,) * (COMPACTION_OBJECTS_MIN - 1), None),
        ((10, 10, 10, 10), [10, 10, 10, 10]),
        ((10, 9, 1, 200, 2), None),  # too few behind the large one
        ((1_000, 10, 10, 10, 10), [10, 10, 10, 10]),  # the large one is left alone …
        ((80, 10, 10, 10, 10), [80, 10, 10, 10, 10]),  # … until the others are half its size
        ((81, 10, 10, 10, 10), [10, 10, 10, 10]),
    ],
)
def test_a_tail_of_comparable_objects_is_merged(sizes: tuple[int, ...], merge: list[int] | None) -> None:
    assert wanted(*sizes) == merge


def test_only_a_merge_of_all_there_is_may_forget_deletions() -> None:
    ledger = started()
    for epoch, size in enumerate((1_000, 10, 10, 10, 10)):
        completed(ledger, epoch, size, 10)
    assert {compact.slot: compact.whole for compact in ledger.compactions(1)} == {0: False, 1: True}


def test_a_slot_has_one_merge_at_a_time() -> None:
    ledger = started()
    for epoch in range(4):
        completed(ledger, epoch, 10)
    [compact] = ledger.compactions(1)
    completed(ledger, 4, 10)
    assert ledger.compactions(1) == []
    ledger.compacted(not_merged(compact))
    [again] = ledger.compactions(1)
    assert [ref.name for ref in again.objects] == [f"0/{epoch}" for epoch in range(5)]


def test_a_merge_that_ends_after_newer_snapshots_takes_its_own_place() -> None:
    ledger = started()
    for epoch in range(4):
        completed(ledger, epoch, 10)
    [compact] = ledger.compactions(1)
    completed(ledger, 4, 10)
    ledger.compacted(merged(compact))
    assert chain(taken(ledger, 5, 10)) == [merged_name(compact), "0/4", "0/5"]


def test_a_merge_of_a_chain_that_is_gone_is_forgotten() -> None:
    ledger = started()
    for epoch in range(4):
        completed(ledger, epoch, 10)
    [compact] = ledger.compactions(1)
    ledger.start_from(None)
    ledger.compacted(merged(compact))
    assert chain(taken(ledger, 5, 10)) == ["0/5"]


def test_objects_that_do_not_stand_together_cannot_be_replaced() -> None:
    ledger = started()
    for epoch in range(4):
        completed(ledger, epoch, 10)
    with pytest.raises(AssertionError, match="do not stand together"):
        ledger.compacted(Compacted(1, 0, ["0/0", "0/2"], ObjectRef("merged", 1, b"")))


class History:
    """A random life of a ledger, with the model beside it: all changes of each slot up to each snapshot.

    Names of objects tell what is in them, so that a chain's names joined are the changes it holds, in order.
    """

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.ledger = started()
        self.changes: dict[int, list[str]] = {slot: [] for slot in range(SLOTS)}
        self.at_epoch: dict[int, dict[int, list[str]]] = {-1: {slot: [] for slot in range(SLOTS)}}
        self.stored: set[str] = set()
        self.merging: list[Compact] = []
        self.epoch = 0

    def snapshot(self) -> None:
        sizes = [self.rng.choice([None, 1, 5, 50]) for _ in range(SLOTS)]
        manifest = taken(self.ledger, self.epoch, *sizes)
        if self.rng.random() < 0.3:
            self.merge_ends()  # while the manifest is on its way
        if self.rng.random() < 0.2:
            self.ledger.abandon()
        else:
            self.complete(manifest, sizes)
        self.epoch += 1

    def complete(self, manifest: Manifest, sizes: list[int | None]) -> None:
        for slot, size in enumerate(sizes):
            if size is not None:
                self.changes[slot].append(f"{slot}/{self.epoch}")
                self.stored.add(f"{slot}/{self.epoch}")
        self.at_epoch[self.epoch] = {slot: list(changes) for slot, changes in self.changes.items()}
        for effect in self.ledger.complete(manifest):
            if isinstance(effect, DeleteObjects):
                assert self.stored >= set(effect.names)
                self.stored -= set(effect.names)
        self.merging += self.ledger.compactions(1)

    def merge_ends(self) -> None:
        if self.merging:
            compact = self.merging.pop(self.rng.randrange(len(self.merging)))
            assert self.stored >= {ref.name for ref in compact.objects}, "a merge reads what has been deleted"
            if self.rng.random() < 0.8:
                self.stored.add(merged_name(compact))
                self.ledger.compacted(merged(compact))
            else:
                self.ledger.compacted(not_merged(compact))

    def recovery(self) -> None:
        """A new generation, now and then on the older snapshot."""
        manifests = self.ledger.manifests
        if len(manifests) > 1 and self.rng.random() < 0.3:
            self.ledger.drop_newest()
        newest = manifests[0] if manifests else None
        self.ledger.start_from(newest)
        self.merging = []
        kept = self.at_epoch[-1 if newest is None else newest.epoch]
        self.changes = {slot: list(changes) for slot, changes in kept.items()}
        self.stored &= self.ledger.referenced()

    def check(self) -> None:
        assert len(self.ledger.manifests) <= MANIFESTS_KEPT
        for manifest in self.ledger.manifests:
            for slot in range(SLOTS):
                names = chain(manifest, slot)
                assert set(names) <= self.stored, "a manifest that is kept refers to a deleted object"
                held = [change for name in names for change in name.split("+")]
                assert held == self.at_epoch[manifest.epoch][slot], "changes are missing, doubled or out of order"


@given(st.randoms(use_true_random=False))
def test_chains_hold_every_change_in_order_and_nothing_needed_is_deleted(rng: Random) -> None:
    history = History(rng)
    for _ in range(40):
        rng.choices([history.snapshot, history.merge_ends, history.recovery], [8, 4, 1])[0]()
        history.check()
