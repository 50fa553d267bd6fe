"""A worker's check of its state against another version of the app, in slices beside the epochs that run.

First it checks all state that exists when it begins. Entities that a snapshot takes up were changed since, and are
checked again. After a held snapshot nothing changes, so the check of the remaining entities is the last one. It reports
its findings; the coordinator decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from styx.model.app import App
from styx.model.limits import Limits
from styx.protocol.messages import CheckState, StateChecked
from styx.schema.parents import PARENTS_MAX, TooManyParents, new_references
from styx.schema.state_check import SLICE_ENTITIES, StateCheck
from styx.schema.state_findings import OFFENDERS_SHOWN, StateFindings
from styx.schema.unique_values import VALUES_MAX, TooManyValues, new_unique
from styx.state.slot_state import IDEMPOTENCY_TABLE
from styx.state.table import NEWEST
from styx.worker.invocation import Running
from styx.worker.slot import Slot
from styx.worker.standing import StateGuard

_WHOLE: Final = -1


class StateWatch:
    """The check of all state against `version`, whose code is `app`. The watchdog reads `running`, and interrupts the
    app's code in a check after the same time as a function, because requests wait meanwhile.
    """

    def __init__(
        self,
        version: int,
        app: App,
        n_slots: int,
        limits: Limits,
        slots: Iterable[Slot],
        running: Running,
        present: App,
    ) -> None:
        self._compared = sorted(new_unique(app, present))
        self._referring = new_references(app, present)
        self._version = version
        guard = StateGuard(app, n_slots, limits, running)
        self._check = StateCheck(app, n_slots, limits, guard, self._referring)
        self._told = False
        self._held: int | None = None
        self._changed: list[tuple[Slot, str, list[Any]]] = []
        for slot in slots:
            for operator, table in slot.state.at(NEWEST).items():
                self._check.add(slot.index, operator, table)

    @property
    def pending(self) -> bool:
        """Whether there are entities to check, or findings to report."""
        return not (self._told and self._check.done) or self._held is not None

    @property
    def urgent(self) -> bool:
        """Whether requests wait for the report of this check."""
        return self._held is not None

    def snapshot(self, epoch: int, slots: Iterable[Slot], hold: bool) -> None:
        """Notes the entities that a snapshot has just taken up. `hold`: nothing changes after this snapshot."""
        for slot in slots:
            for operator, changes in (slot.state.uploading or {}).items():
                if operator != IDEMPOTENCY_TABLE:
                    self._changed.append((slot, operator, list(changes)))
        if self._told:
            self._look_again()
            self._held = epoch if hold else None

    def _look_again(self) -> None:
        """Begins to check the changed entities. The first check of all state has been reported before, so that its
        report counts each entity once.
        """
        for slot, operator, keys in self._changed:
            self._check.add(slot.index, operator, slot.state.table(operator).at(NEWEST), keys)
        self._changed = []

    def go_on(self) -> None:
        """Continues after a held snapshot that failed: epochs run again."""
        self._held = None

    def run(self, generation: int, entities: int = SLICE_ENTITIES) -> list[StateChecked]:
        """Checks a slice of at most `entities`. Returns the report after the last slice, otherwise nothing."""
        if not self._check.run(entities) or (self._told and self._held is None):
            return []
        epoch = _WHOLE if self._held is None else self._held
        self._told, self._held = True, None
        self._look_again()
        return [StateChecked(generation, self._version, epoch, self._findings())]

    def _findings(self) -> StateFindings:
        """With what other workers' rows are to be held against."""
        findings, check = self._check.take(), self._check
        try:
            if self._compared:
                findings = replace(findings, values=check.unique_values(self._compared))
            if self._referring:
                needed, there = check.parents(PARENTS_MAX)
                findings = replace(findings, needed=needed, there=there)
        except TooManyValues:
            return _with_offender(
                findings,
                f"tables {', '.join(self._compared)}: one worker's rows have more than {VALUES_MAX:,} values in unique "
                "indexes over the app that are new, which cannot be compared with other workers': declare the index in "
                "a new table, and copy the rows",
            )
        except TooManyParents:
            return _with_offender(
                findings,
                f"tables {', '.join(sorted(self._referring))}: one worker has more than {PARENTS_MAX:,} parents of "
                "references that are new, which cannot be compared with other workers': declare the reference in a new "
                "table, and copy the rows",
            )
        return findings


def _with_offender(findings: StateFindings, why: str) -> StateFindings:
    return replace(findings, offenders=findings.offenders + 1, first=[why, *findings.first][:OFFENDERS_SHOWN])


def watch_of(
    wanted: CheckState,
    version: int,
    app: App,
    n_slots: int,
    limits: Limits,
    slots: Iterable[Slot],
    running: Running,
    present: App,
) -> StateWatch | None:
    """Makes the check that the coordinator has asked for; `app` is the code of `version`, the last one offered;
    `present` the one that runs.

    None if the coordinator asked for another version: it has changed its mind, and its next message says so.
    """
    return StateWatch(version, app, n_slots, limits, slots, running, present) if wanted.version == version else None
