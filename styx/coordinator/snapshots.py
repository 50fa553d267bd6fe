"""Snapshots as the coordinator sees them: parts that arrive, manifests that are kept, objects that nobody needs.

A snapshot is complete when its manifest is stored, not before. The last two manifests are kept, so that a
damaged object of the newest costs nothing: the log is released only behind the older one. Decides only. Paper
section 7.1.
"""

from __future__ import annotations

from styx.coordinator.events import DeleteManifest, DeleteObjects, Effect, ReleaseLog
from styx.protocol import Compact, Compacted, Manifest, ObjectRef, SlotManifest, SlotPart

MANIFESTS_KEPT = 2
COMPACTION_OBJECTS_MIN = 4
"""A slot's objects are merged when at least so many of comparable size stand at the end of its chain."""


class SnapshotLedger:
    """Manifests newest first, the current chain of objects of every slot, and the snapshot that is under way."""

    def __init__(self, n_slots: int) -> None:
        self._n_slots = n_slots
        self.manifests: list[Manifest] = []
        self.under_way: tuple[int, int] | None = None
        self._app_version = 0
        self._parts: dict[int, SlotPart] = {}
        self._chains: dict[int, list[ObjectRef]] = {}
        self._compacting: set[int] = set()

    def start_from(self, manifest: Manifest | None) -> None:
        """A generation goes on from this manifest; whatever was under way is not part of anything."""
        self.under_way = None
        self._parts = {}
        self._compacting = set()
        self._chains = {slot: [] for slot in range(self._n_slots)}
        for slot in manifest.slots if manifest is not None else ():
            self._chains[slot.part.slot] = list(slot.objects)

    def begin(self, epoch: int, counter: int, app_version: int = 0) -> None:
        """Parts of the snapshot after `epoch` will arrive."""
        assert self.under_way is None
        self.under_way = (epoch, counter)
        self._app_version = app_version
        self._parts = {}

    def abandon(self) -> None:
        """The snapshot under way has failed."""
        self.under_way = None
        self._parts = {}

    def take_part(self, generation: int, part: SlotPart) -> Manifest | None:
        """The manifest to store, once every slot's part is there."""
        assert self.under_way is not None
        self._parts[part.slot] = part
        if len(self._parts) < self._n_slots:
            return None
        slots = []
        for slot in range(self._n_slots):
            newest = self._parts[slot].stored
            slots.append(SlotManifest(self._parts[slot], self._chains[slot] + ([] if newest is None else [newest])))
        epoch, counter = self.under_way
        return Manifest(generation, epoch, counter, slots, self._app_version)

    def complete(self, manifest: Manifest) -> list[Effect]:
        """The manifest is stored: what is older than the last two goes, and the log behind them."""
        self.under_way = None
        for slot in manifest.slots:
            if slot.part.stored is not None:
                self._chains[slot.part.slot].append(slot.part.stored)
        before = self.referenced()
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

    # Compaction --------------------------------------------------------------------------------------------

    def compactions(self, generation: int) -> list[Compact]:
        """Merges worth starting now, one a slot."""
        wanted = []
        for slot, chain in self._chains.items():
            start = _tail_to_merge(chain)
            if start is not None and slot not in self._compacting:
                self._compacting.add(slot)
                wanted.append(Compact(generation, slot, chain[start:], whole=start == 0))
        return wanted

    def compacted(self, message: Compacted) -> None:
        """The merged object takes the place of what it replaces, in the same place of the chain."""
        self._compacting.discard(message.slot)
        chain = self._chains[message.slot]
        names = [ref.name for ref in chain]
        if message.merged is None or message.replaced[0] not in names:
            return
        start = names.index(message.replaced[0])
        end = start + len(message.replaced)
        assert names[start:end] == message.replaced, "a compaction replaces objects that do not stand together"
        chain[start:end] = [message.merged]


def _tail_to_merge(chain: list[ObjectRef]) -> int | None:
    """Where the tail worth merging starts: older objects join while they are at most twice what is merged already.

    Sizes along a chain then grow geometrically, and each byte is rewritten a logarithmic number of times.
    """
    if len(chain) < COMPACTION_OBJECTS_MIN:
        return None
    start = len(chain) - 1
    total = chain[start].size
    while start > 0 and chain[start - 1].size <= 2 * total:
        start -= 1
        total += chain[start].size
    return start if len(chain) - start >= COMPACTION_OBJECTS_MIN else None


def _release(oldest: Manifest) -> ReleaseLog:
    parts = [slot.part for slot in oldest.slots]
    replies: dict[int, int] = {}
    for part in parts:
        for partition, offset in part.replies.items():
            replies[partition] = min(offset, replies.get(partition, offset))
    return ReleaseLog(
        {part.slot: part.next_offset for part in parts},
        replies,
        min(part.epochs_offset for part in parts),
    )
