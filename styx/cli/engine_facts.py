"""Facts for people about an embedded engine's start and its snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from styx.embedded_engine.engine import EmbeddedEngine


class Start(NamedTuple):
    """How an engine started: in how many seconds, from which epoch's snapshot, up to which epoch; None: none.

    `replayed` epochs of the log were run again. `changed`: on another app than the last start's; `recorded_code`: they
    were run on the code that had run them. `notes` are of the state that was checked then.
    """

    seconds: float
    snapshot_epoch: int | None
    epoch: int | None
    replayed: int = 0
    changed: bool = False
    recorded_code: bool = False
    notes: tuple[str, ...] = ()


def start_of(engine: EmbeddedEngine) -> Start:
    """The facts of a start that has just ended."""
    epoch, counters, change = engine.worker.epoch, engine.counters, engine.app_change
    return Start(
        counters.recovery_s,
        counters.recovered_from,
        epoch if epoch >= 0 else None,
        counters.replayed or 0,
        change.changed,
        change.recorded_code_ran,
        tuple(change.notes),
    )


def snapshot_epoch(engine: EmbeddedEngine) -> int | None:
    """The epoch up to which the newest stored snapshot reaches, None if there is none."""
    manifests = engine.coordinator.ledger.manifests
    return manifests[0].epoch if manifests else None
