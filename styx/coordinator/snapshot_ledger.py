"""The ledger of snapshots: parts that arrive, manifests that are kept, objects that no manifest needs.

A snapshot is complete when its manifest is stored, not before. The last two manifests are kept, so that a damaged
object of the newest loses nothing: the log is released only behind the older one. Paper section 7.1.
"""

from __future__ import annotations

from typing import Final

from styx.coordinator.events import DeleteManifest, DeleteObjects, Effect, ReleaseLog
from styx.protocol.manifest import Manifest, ObjectRef, SlotManifest, SlotPart

NO_COMMON_VERSION: Final = (
    "The newest snapshot that can be read is older than the last deployment, and what was recorded between the two ran "
    "on another version of the app: it cannot be replayed. Nothing was changed. Restore the object store from a copy."
)
MANIFESTS_KEPT = 2
CHAIN_MIN: Final = 4
"""Shorter chains of objects are left alone, however small the first one is."""
CHAIN_MAX: Final = 128
"""Longer ones begin anew, however large the first object is: a manifest names them all, and a recovery reads them."""
CHANGES_BY_WHOLE: Final = 3
"""A chain begins anew when what was added to it weighs so many times as much as its first object: a recovery reads
four times the state at most, or a little more, and a byte that changes is written one and a third times.
"""
WHOLE_SHARE: Final = 16
"""One in so many slots, rounded up, may store everything in one snapshot, whatever it costs."""


class SnapshotLedger:
    """Manifests newest first, the current chain of objects of every slot, and the snapshot that is under way."""

    def __init__(self, n_slots: int) -> None:
        self._n_slots = n_slots
        self.manifests: list[Manifest] = []
        self.under_way: tuple[int, int] | None = None
        self._app_version = 0
        self._parts: dict[int, SlotPart] = {}
        self._chains: dict[int, list[ObjectRef]] = {}
        self._failed = False

    @property
    def newest(self) -> Manifest | None:
        """The newest manifest; None without one."""
        return self.manifests[0] if self.manifests else None

    def reaches_back_to(self, app_version: int, since: int) -> bool:
        """Everything recorded behind the newest snapshot ran on this version of the app, which began `since` one."""
        if self.manifests and self.manifests[0].app_version == app_version:
            return True
        return self.stored_epoch == since

    @property
    def stored_epoch(self) -> int:
        """The last epoch in the newest snapshot, -1 without one."""
        return self.manifests[0].epoch if self.manifests else -1

    def start_from(self, manifest: Manifest | None) -> None:
        """A generation goes on from this manifest; whatever was under way is not part of anything."""
        self.under_way = None
        self._parts = {}
        self._chains = {slot: [] for slot in range(self._n_slots)}
        for slot in manifest.slots if manifest is not None else ():
            self._chains[slot.part.slot] = slot.objects

    def begin(self, epoch: int, counter: int, app_version: int = 0) -> None:
        """Parts of the snapshot after `epoch` will arrive."""
        assert self.under_way is None
        self.under_way = (epoch, counter)
        self._app_version = app_version
        self._parts = {}

    def abandon(self) -> None:
        """The snapshot under way has failed; if it was everything that the store did not take, the next one is not."""
        self.under_way = None
        self._failed = True
        self._parts = {}

    def take_parts(self, generation: int, parts: list[SlotPart]) -> Manifest | None:
        """The manifest to store, once every slot's part is there."""
        assert self.under_way is not None
        self._parts.update((part.slot, part) for part in parts)
        if len(self._parts) < self._n_slots:
            return None
        slots = []
        for slot in range(self._n_slots):
            part = self._parts[slot]
            older = [] if part.whole else self._chains[slot]
            slots.append(SlotManifest(part, older + ([] if part.stored is None else [part.stored])))
        epoch, counter = self.under_way
        return Manifest(generation, epoch, counter, slots, self._app_version)

    def complete(self, manifest: Manifest) -> list[Effect]:
        """The manifest is stored: what is older than the last two goes, and the log behind them."""
        self.under_way = None
        self._failed = False
        before = self.referenced()
        self._chains = {slot.part.slot: slot.objects for slot in manifest.slots}
        self.manifests.insert(0, manifest)
        retired, self.manifests = self.manifests[MANIFESTS_KEPT:], self.manifests[:MANIFESTS_KEPT]
        effects: list[Effect] = [DeleteManifest(old.generation, old.epoch) for old in retired]
        unused = sorted(before - self.referenced())
        if unused:
            effects.append(DeleteObjects(unused))
        if len(self.manifests) == MANIFESTS_KEPT:
            effects.append(_release(self.manifests[-1]))
        return effects

    def drop_newest(self) -> Manifest:
        """The newest manifest cannot be used."""
        return self.manifests.pop(0)

    def referenced(self) -> frozenset[str]:
        """Names of all objects that a kept manifest or the next one refers to."""
        kept = {ref.name for manifest in self.manifests for slot in manifest.slots for ref in slot.objects}
        return frozenset(kept.union(ref.name for chain in self._chains.values() for ref in chain))

    # Chains that have become long ---------------------------------------------------------------------------

    def worn(self) -> list[int]:
        """The slots whose next part is to be everything they have, so that their chains begin anew; longest first, so
        that every one has its turn.

        Not all of them at once, though their chains grow alike: so many as cost what the last snapshot's changes did.
        """
        if self._failed:
            return []
        taken: list[int] = []
        left = self._changed_bytes()
        for slot in sorted(filter(self._is_worn, self._chains), key=lambda slot: -len(self._chains[slot])):
            left -= max(ref.size for ref in self._chains[slot])
            if left < 0 and len(taken) >= self._n_slots / WHOLE_SHARE:
                break
            taken.append(slot)
        return taken

    def _changed_bytes(self) -> int:
        parts = [slot.part for manifest in self.manifests[:1] for slot in manifest.slots]
        return sum(part.stored.size for part in parts if part.stored is not None and not part.whole)

    def _is_worn(self, slot: int) -> bool:
        """Storing everything anew costs half of what has been stored since it was done last."""
        chain = self._chains[slot]
        if len(chain) < CHAIN_MIN:
            return False
        return len(chain) >= CHAIN_MAX or sum(ref.size for ref in chain[1:]) >= CHANGES_BY_WHOLE * chain[0].size


def _release(oldest: Manifest) -> ReleaseLog:
    parts = [slot.part for slot in oldest.slots]
    replies: dict[int, int] = {}
    for part in parts:
        for partition, offset in part.replies.items():
            replies[partition] = min(offset, replies.get(partition, offset))
    return ReleaseLog(
        oldest.epoch,
        {part.slot: part.next_offset for part in parts},
        replies,
        min(part.epochs_offset for part in parts),
    )
