"""A case: two snapshots of a deployment and all that was recorded between them, copied to a directory of its own.

The deployment goes on deleting snapshots and releasing its log, while a case can be judged as often as one likes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from styx.audit.records import Budget
from styx.backup.places import for_each, persistently
from styx.model.limits import Limits
from styx.protocol.manifest import Manifest
from styx.store.base import NotFound, StoreReader

PLANS: Final = "plans"
"""The file with the epochs, an `EpochPlan` each."""
_NAME: Final = "case"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What was captured. `before` is None for the beginning of the log. `replies_by_slot`: a slot's replies are in the
    partition of its number; if not, `reply_partitions` says how many there are. `events` names the events whose logs
    were copied. `aside` are requests that an operator has set aside, as (slot, offset).
    """

    app: str
    version: int
    n_slots: int
    limits: Limits
    before: Manifest | None
    after: Manifest
    replies_by_slot: bool
    reply_partitions: int
    recorded_workers: int
    epochs: int
    events: list[str]
    aside: list[tuple[int, int]]
    notes: list[str]

    @property
    def since(self) -> tuple[int, int]:
        """(epoch, counter) behind which it begins."""
        return (-1, 0) if self.before is None else (self.before.epoch, self.before.counter)

    def reply_partition(self, slot: int, reply_to: int) -> str:
        """The file with a reply of this slot, to this partition of its requester."""
        return replies_name(slot if self.replies_by_slot else reply_to % self.reply_partitions)


def requests_name(slot: int) -> str:
    """The file with a slot's requests, an `Arrival` each."""
    return f"requests-{slot}"


def replies_name(partition: int) -> str:
    """The file with the replies of a partition, as they stand in the log."""
    return f"replies-{partition}"


def events_name(event: str, slot: int) -> str:
    """The file with a slot's events of one name: the id and the JSON of each."""
    return f"events-{event}-{slot}"


def write_case(directory: Path, case: Case) -> None:
    """Behind all other files of the case."""
    (directory / _NAME).write_bytes(msgspec.msgpack.encode(case))


def read_case(directory: Path) -> Case:
    """Raises `OSError` if there is none."""
    return msgspec.msgpack.decode((directory / _NAME).read_bytes(), type=Case)


class CopiedObjects:
    """Objects of snapshots in a directory, by the names that they have in the store. Two snapshots share most of them,
    and so do two cases.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(exist_ok=True)

    def copy(self, store: StoreReader, manifest: Manifest, budget: Budget) -> None:
        """Copies what the snapshot consists of and is not here yet. Raises `NotFound` and `OSError`."""

        def copy(name: str) -> None:
            data = persistently(lambda: store.get(name))
            budget.spend(len(data))
            file = self._file(name)
            unfinished = file.with_name(f"{file.name}.unfinished")
            unfinished.write_bytes(data)
            unfinished.rename(file)

        for_each((name for name in _names(manifest) if not self._file(name).exists()), copy)

    def keep(self, manifests: list[Manifest]) -> None:
        """Deletes what none of these snapshots consists of."""
        wanted = {self._file(name).name for manifest in manifests for name in _names(manifest)}
        for file in self._directory.iterdir():
            if file.name not in wanted:
                file.unlink()

    def get_range(self, name: str, start: int, size: int) -> bytes:
        """As `StoreReader.get_range`."""
        try:
            with self._file(name).open("rb") as file:
                return os.pread(file.fileno(), size, start)
        except FileNotFoundError:
            raise NotFound(name, str(self._directory)) from None

    def _file(self, name: str) -> Path:
        return self._directory / name.replace("/", "_")


def _names(manifest: Manifest) -> set[str]:
    return {ref.name for slot in manifest.slots for ref in slot.objects}
