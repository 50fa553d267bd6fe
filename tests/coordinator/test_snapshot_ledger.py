"""The snapshot ledger: when a snapshot is one, what is kept for it, and in which order objects stand.

The chains of random histories are compared with the obvious model: every change ever stored, oldest first.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.coordinator.events import DeleteManifest, DeleteObjects, Effect, ReleaseLog
from styx.coordinator.snapshot_ledger import (
    CHAIN_MAX,
    CHAIN_MIN,
    CHANGES_BY_WHOLE,
    MANIFESTS_KEPT,
    WHOLE_SHARE,
    SnapshotLedger,
)
from styx.protocol.manifest import Manifest, ObjectRef, SlotPart

SLOTS = 2


def part(slot: int, epoch: int, size: int | None = 10, whole: bool = False) -> SlotPart:
    """A slot's part; `size` None: it has not changed, or has nothing (`whole`)."""
    stored = None if size is None else ObjectRef(f"{slot}/{epoch}", size, b"")
    return SlotPart(slot, 100 * epoch + slot, [], 200 * epoch + slot, {slot: 300 * epoch + slot}, stored, whole)


def started(slots: int = SLOTS) -> SnapshotLedger:
    ledger = SnapshotLedger(slots)
    ledger.start_from(None)
    return ledger


def taken(ledger: SnapshotLedger, epoch: int, *sizes: int | None, whole: Collection[int] = ()) -> Manifest:
    """All parts of a snapshot arrive, slot 0's last; slots without a size have not changed."""
    ledger.begin(epoch, epoch)
    by_slot = [*sizes, *[None] * (SLOTS - len(sizes))]
    first, *others = [part(slot, epoch, size, slot in whole) for slot, size in enumerate(by_slot)]
    assert ledger.take_parts(1, others) is None
    manifest = ledger.take_parts(1, [first])
    assert manifest is not None
    return manifest


def completed(ledger: SnapshotLedger, epoch: int, *sizes: int | None, whole: Collection[int] = ()) -> list[Effect]:
    return ledger.complete(taken(ledger, epoch, *sizes, whole=whole))


def chain(manifest: Manifest, slot: int = 0) -> list[str]:
    return [ref.name for ref in manifest.slots[slot].objects]


# Complete or nothing -------------------------------------------------------------------------------------------


def test_there_is_a_manifest_when_every_part_is_there() -> None:
    ledger = started()
    ledger.begin(4, 17)
    assert ledger.take_parts(2, [part(1, 4)]) is None
    manifest = ledger.take_parts(2, [part(0, 4, None)])
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
        assert ledger.take_parts(1, [part(1, 4)]) is None


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
    assert completed(ledger, 2, 10, 10) == [ReleaseLog(1, {0: 100, 1: 101}, {0: 300, 1: 301}, 200)]


def test_a_third_snapshot_retires_the_first() -> None:
    ledger = started()
    for epoch in (1, 2):
        completed(ledger, epoch, 10)
    effects = completed(ledger, 3, 10)
    assert DeleteManifest(1, 1) in effects
    assert not any(isinstance(effect, DeleteObjects) for effect in effects), "the newer ones are made of its objects"
    assert [manifest.epoch for manifest in ledger.manifests] == [3, 2]


def test_a_chain_goes_with_the_last_manifest_that_needs_it() -> None:
    ledger = started()
    for epoch in (1, 2, 3):
        completed(ledger, epoch, 10)
    completed(ledger, 4, 20, whole={0})
    deleted = [effect for epoch in (5, 6) for effect in completed(ledger, epoch) if isinstance(effect, DeleteObjects)]
    assert deleted == [DeleteObjects(["0/1", "0/2", "0/3"])]
    assert ledger.referenced() == {"0/4"}


# Chains begin anew ---------------------------------------------------------------------------------------------


def worn(*sizes: int) -> bool:
    """Whether a chain of objects of these sizes is to begin anew."""
    ledger = started()
    for epoch, size in enumerate(sizes):
        completed(ledger, epoch, size)
    return ledger.worn() == [0]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((10,) * (CHAIN_MIN - 1), False),
        ((10,) * CHAIN_MIN, True),
        ((10 * CHAIN_MIN, *(10,) * (CHANGES_BY_WHOLE * CHAIN_MIN - 1)), False),
        ((10 * CHAIN_MIN, *(10,) * (CHANGES_BY_WHOLE * CHAIN_MIN)), True),
        ((1_000_000, *(1,) * (CHAIN_MAX - 2)), False),
        ((1_000_000, *(1,) * (CHAIN_MAX - 1)), True),
    ],
)
def test_a_chain_is_worn_when_its_changes_weigh_so_much_more_than_its_beginning(
    sizes: tuple[int, ...], expected: bool
) -> None:
    assert worn(*sizes) is expected


def test_everything_ends_the_chain_before_it() -> None:
    ledger = started()
    for epoch in range(3):
        completed(ledger, epoch, 10, 10)
    manifest = taken(ledger, 3, 30, 10, whole={0})
    assert (chain(manifest), chain(manifest, 1)) == (["0/3"], ["1/0", "1/1", "1/2", "1/3"])
    ledger.complete(manifest)
    assert chain(taken(ledger, 4, 10)) == ["0/3", "0/4"]


def test_a_slot_that_has_nothing_left_has_no_chain() -> None:
    ledger = started()
    completed(ledger, 0, 10)
    assert chain(taken(ledger, 1, None, whole={0})) == []


def test_a_chain_goes_on_when_the_snapshot_that_would_have_ended_it_fails() -> None:
    ledger = started()
    completed(ledger, 0, 10)
    taken(ledger, 1, 10, whole={0})
    ledger.abandon()
    assert chain(taken(ledger, 2, 10)) == ["0/0", "0/2"]


class Life:
    """Snapshots of a ledger that asks for everything as it likes: the sizes of each slot's changes, and of all it has.

    `longest` chain and `written` bytes of the newest snapshot.
    """

    def __init__(self, changes: list[int], everything: list[int]) -> None:
        self.ledger = started(len(changes))
        self.changes = changes
        self.everything = everything
        self.epoch = 0
        self.longest = self.written = 0

    def fill(self) -> None:
        """The first snapshot: everything is a change."""
        changes, self.changes = self.changes, self.everything
        self.snapshot()
        self.changes = changes

    def snapshot(self) -> list[int]:
        whole, slots = self.ledger.worn(), range(len(self.changes))
        sizes = [self.everything[slot] if slot in whole else self.changes[slot] for slot in slots]
        self.ledger.begin(self.epoch, self.epoch)
        manifest = self.ledger.take_parts(1, [part(slot, self.epoch, sizes[slot], slot in whole) for slot in slots])
        assert manifest is not None
        self.ledger.complete(manifest)
        self.longest = max(len(slot.objects) for slot in manifest.slots)
        self.written = sum(sizes)
        self.epoch += 1
        return whole


def test_few_slots_begin_anew_at_once_and_all_in_turn() -> None:
    slots = 2 * WHOLE_SHARE + 1
    life = Life([10] * slots, [400] * slots)
    life.fill()
    rewritten: list[int] = []
    for _ in range(CHANGES_BY_WHOLE * 400 // 10 + WHOLE_SHARE):
        whole = life.snapshot()
        assert len(whole) <= 3
        assert set(whole).isdisjoint(rewritten), "others are longer by now"
        rewritten += whole
    assert len(rewritten) == slots


@pytest.mark.parametrize("changes", [15, 25, 49, 75, 100])
def test_where_much_changes_as_many_begin_anew_as_cost_no_more_than_the_changes(changes: int) -> None:
    slots = 4 * WHOLE_SHARE
    life = Life([changes] * slots, [100] * slots)
    life.fill()
    for _ in range(10 * CHAIN_MIN):
        life.snapshot()
        assert life.longest <= CHAIN_MIN + (CHANGES_BY_WHOLE + 1) * 100 // changes
        assert life.written <= 2 * changes * slots


def test_what_has_changed_in_older_snapshots_does_not_count() -> None:
    slots = 2 * WHOLE_SHARE
    life = Life([5] * slots, [200] * slots)
    life.snapshot()
    life.changes = [100] * slots
    life.snapshot()
    life.changes = [5] * slots
    life.snapshot()
    for _ in range(2 * CHAIN_MIN):
        assert len(life.snapshot()) <= 2


def test_chains_have_a_longest_length_whatever_others_write() -> None:
    """A slot that hardly changes has its turn among those that are worn at all times; an object is kept for as long as
    a single slot needs it.
    """
    slots = WHOLE_SHARE
    life = Life([300] * (slots - 1) + [1], [1000] * slots)
    life.fill()
    for _ in range(CHAIN_MAX + 2 * WHOLE_SHARE):
        life.snapshot()
        assert life.longest < CHAIN_MAX + WHOLE_SHARE


def test_a_snapshot_after_one_that_failed_is_of_changes_only() -> None:
    """A store that does not take everything, because it is too large say, takes every other snapshot."""
    ledger = started()
    for epoch in range(CHAIN_MIN):
        completed(ledger, epoch, 10)
    assert ledger.worn() == [0]
    taken(ledger, CHAIN_MIN, 10, whole={0})
    ledger.abandon()
    assert ledger.worn() == []
    completed(ledger, CHAIN_MIN + 1, 10)
    assert ledger.worn() == [0]


class History:
    """A random life of a ledger, with the model beside it: all changes of each slot up to each snapshot.

    Names of objects tell when they were made, so that a chain is what its slot's last part that was everything, and all
    after it, were.
    """

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.ledger = started()
        self.changes: dict[int, list[str]] = {slot: [] for slot in range(SLOTS)}
        self.at_epoch: dict[int, dict[int, list[str]]] = {-1: {slot: [] for slot in range(SLOTS)}}
        self.stored: set[str] = set()
        self.epoch = 0

    def snapshot(self) -> None:
        sizes = [self.rng.choice([None, 1, 5, 50]) for _ in range(SLOTS)]
        whole = {slot for slot in range(SLOTS) if self.rng.random() < 0.2}
        manifest = taken(self.ledger, self.epoch, *sizes, whole=whole)
        if self.rng.random() < 0.2:
            self.ledger.abandon()
        else:
            self.complete(manifest, sizes, whole)
        self.epoch += 1

    def complete(self, manifest: Manifest, sizes: list[int | None], whole: set[int]) -> None:
        for slot, size in enumerate(sizes):
            if slot in whole:
                self.changes[slot] = []
            if size is not None:
                self.changes[slot].append(f"{slot}/{self.epoch}")
                self.stored.add(f"{slot}/{self.epoch}")
        self.at_epoch[self.epoch] = {slot: list(changes) for slot, changes in self.changes.items()}
        for effect in self.ledger.complete(manifest):
            if isinstance(effect, DeleteObjects):
                assert self.stored >= set(effect.names)
                self.stored -= set(effect.names)

    def recovery(self) -> None:
        """A new generation, now and then on the older snapshot."""
        manifests = self.ledger.manifests
        if len(manifests) > 1 and self.rng.random() < 0.3:
            self.ledger.drop_newest()
        newest = manifests[0] if manifests else None
        self.ledger.start_from(newest)
        kept = self.at_epoch[-1 if newest is None else newest.epoch]
        self.changes = {slot: list(changes) for slot, changes in kept.items()}
        self.stored &= self.ledger.referenced()

    def check(self) -> None:
        assert len(self.ledger.manifests) <= MANIFESTS_KEPT
        for manifest in self.ledger.manifests:
            for slot in range(SLOTS):
                names = chain(manifest, slot)
                assert set(names) <= self.stored, "a manifest that is kept refers to a deleted object"
                assert names == self.at_epoch[manifest.epoch][slot], "changes are missing, doubled or out of order"


@given(st.randoms(use_true_random=False))
def test_chains_hold_every_change_in_order_and_nothing_needed_is_deleted(rng: Random) -> None:
    history = History(rng)
    for _ in range(40):
        rng.choices([history.snapshot, history.recovery], [8, 1])[0]()
        history.check()
