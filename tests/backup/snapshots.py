"""A store as a coordinator and its workers leave it, without any of them; and stores that misbehave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from styx.deployment.claim import NAME, Claim, encode_claim
from styx.deployment.package_format import PackageHeader, seal
from styx.deployment.versions import note_running, store_version
from styx.model.limits import Limits
from styx.protocol.manifest import Manifest, ObjectRef, PendingTransaction, SlotManifest, SlotPart
from styx.schema.description import AppDescription
from styx.snapshot.load import read_states
from styx.snapshot.manifest import write_manifest
from styx.snapshot.part import encode_delta, object_name, reference
from styx.state.slot_state import Delta
from styx.store import MemoryStore, StoreReader

SECRET = b"the cluster's own secret"
SLOTS = 2
PUBLISHED = b'{"paid":{"1":"{}"}}'
"""The types of events since the first version."""
PENDING = PendingTransaction(9, 700, 1_000, b"request", True, True, {b"key": b"outcome"}, [("again", 11, 2)])


class Cluster:
    """Stores snapshots as a coordinator does: the last two stay, and what only older ones need goes."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.version = 3
        self.chains: dict[int, list[ObjectRef]] = {slot: [] for slot in range(SLOTS)}
        self.manifests: list[Manifest] = []
        self.store.put(NAME, encode_claim(Claim("bank", SLOTS, 3, Limits())))
        for payload in (b"one", b"two", b"three"):
            store_version(self.store, package(payload))
        note_running(self.store, 1)
        note_running(self.store, 3, PUBLISHED)

    def snapshot(self, epoch: int, values: dict[str, bytes], whole: bool = False, generation: int = 4) -> Manifest:
        """Both slots change alike, in one object."""
        name = object_name(1, generation, epoch, 0)
        data, slots = b"", []
        for slot in range(SLOTS):
            rows: dict[Any, bytes | None] = {("ada", name): data for name, data in values.items()}
            last: dict[Any, bytes | None] = {("ada", "table\titems"): bytes([epoch])}
            states: Delta = {"account": dict(values), f"of-{slot}": dict(values)}
            part = encode_delta({**states, "cart/items": rows, "cart/<sequences>": last})
            ref = reference(name, part, len(data))
            data += part
            self.chains[slot] = [*([] if whole else self.chains[slot]), ref]
            pending = [PENDING] if slot == 0 else []
            parts = SlotPart(slot, 100 + slot, pending, 50, {0: 40, 2: 41}, ref, whole, events={"paid": 42})
            slots.append(SlotManifest(parts, self.chains[slot]))
        manifest = Manifest(generation, epoch, 1_000 + epoch, slots, self.version)
        self.store.put(name, data)
        write_manifest(self.store, manifest)
        self.manifests = [manifest, *self.manifests][:2]
        kept = {ref.name for each in self.manifests for slot in each.slots for ref in slot.objects}
        for old in self.store.list("slots/"):
            if old not in kept:
                self.store.delete(old)
        for name in self.store.list("manifests/")[:-2]:
            self.store.delete(name)
        return manifest


def package(payload: bytes, secret: bytes = SECRET) -> bytes:
    """Of an app that nobody unpickles."""
    header = PackageHeader(
        description=AppDescription(name="bank", operators={}),
        python="3.11",
        cloudpickle="3",
        styx="0",
        dependencies=[],
        modules=[],
        fingerprint=payload.hex(),
    )
    return seal(header, payload, secret)


def tables(store: StoreReader, manifest: Manifest) -> dict[int, dict[str, Mapping[Any, bytes]]]:
    """The state that a worker would load."""
    whole = MemoryStore()
    for name in store.list("slots/"):
        whole.put(name, store.get(name))
    states = read_states(manifest, range(SLOTS), whole)
    return {slot: state.at(manifest.epoch) for slot, state in states.items()}


class Reader:
    """Reads another store; `before` is called with each name that is about to be read. Cannot write."""

    def __init__(self, store: StoreReader, before: Callable[[str], None] = lambda _: None) -> None:
        self._store = store
        self._before = before

    def get(self, name: str) -> bytes:
        self._before(name)
        return self._store.get(name)

    def get_range(self, name: str, start: int, size: int) -> bytes:
        self._before(name)
        return self._store.get_range(name, start, size)

    def list(self, prefix: str) -> list[str]:
        return self._store.list(prefix)


def flipped(data: bytes, position: int) -> bytes:
    """With one bit changed."""
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


def renumbered(manifest: Manifest, generation: int) -> Manifest:
    """The same, of another generation."""
    return replace(manifest, generation=generation)
