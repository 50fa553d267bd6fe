"""What a person wants to know of an embedded engine's start and of its snapshots. Reads; changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from styx.embedded_engine.engine import EmbeddedEngine


class Start(NamedTuple):
    """How an engine started: in how many seconds, from which epoch's snapshot, up to which epoch; None: none."""

    seconds: float
    snapshot_epoch: int | None
    epoch: int | None

    @property
    def replayed(self) -> int:
        """Epochs that were run again from the log."""
        if self.epoch is None:
            return 0
        return self.epoch - (-1 if self.snapshot_epoch is None else self.snapshot_epoch)


def start_of(engine: EmbeddedEngine) -> Start:
    """The facts of a start that has just ended."""
    epoch = engine.worker.epoch
    return Start(engine.counters.recovery_s, snapshot_epoch(engine), epoch if epoch >= 0 else None)


def snapshot_epoch(engine: EmbeddedEngine) -> int | None:
    """The epoch up to which the newest stored snapshot reaches, None if there is none."""
    manifests = engine.coordinator.ledger.manifests
    return manifests[0].epoch if manifests else None
