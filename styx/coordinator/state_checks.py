"""The coordinator's side of the check of stored state against another version of the app: the members' findings.

Every member checks twice: all of its state, in the background; and, when the change's held snapshot is taken, the
entities that were changed meanwhile. One version at a time. The coordinator decides what follows from the findings.
"""

from __future__ import annotations

from collections.abc import Collection

from styx.protocol.messages import CheckState, StateChecked
from styx.schema.state_findings import StateFindings, together

WHOLE = -1
"""The epoch of a report on everything, which is no snapshot's."""


class StateChecks:
    """`version` is checked, None: none is; `switch`: to run it if it fits. `passed`: all that there was fits."""

    def __init__(self) -> None:
        self.version: int | None = None
        self.switch = False
        self.passed = False
        self._held_epoch = self._fits_at = WHOLE
        self._reports: dict[int, StateFindings] = {}

    def want(self, version: int, switch: bool) -> None:
        """Checks this version from now on, and no other one."""
        self.version, self.switch = version, switch

    def drop(self) -> bool:
        """Nothing is checked any more; whether something was."""
        checked, self.version = self.version is not None, None
        self._anew()
        return checked

    def begin(self, generation: int) -> CheckState:
        """From the start, in a generation whose members know nothing of it yet; what to tell them."""
        self._anew()
        return CheckState(generation, self.version)

    def _anew(self) -> None:
        self.passed = False
        self._held_epoch = WHOLE
        self._reports = {}

    def hold(self, epoch: int) -> None:
        """The snapshot of this epoch is the change's, and is held until everybody has reported on it."""
        assert self.passed
        self._held_epoch = epoch
        self._reports = {}

    def release(self) -> None:
        """That snapshot has failed; another one will be held."""
        self._held_epoch = WHOLE

    @property
    def awaited(self) -> bool:
        """Reports on the held snapshot are missing."""
        return self._held_epoch != WHOLE

    def allow(self, epoch: int) -> bool:
        """All state that the snapshot of this epoch has fits the version, or nothing is to be checked."""
        return self.version is None or (self.passed and not self.awaited and epoch == self._fits_at)

    def take(self, worker: int, message: StateChecked, members: Collection[int]) -> StateFindings | None:
        """What all members have found, once this was the last one's report."""
        expected = self._held_epoch if self.passed else WHOLE
        if message.version != self.version or message.epoch != expected or (self.passed and not self.awaited):
            return None  # of a check that was given up
        self._reports[worker] = message.findings
        if not self._reports.keys() >= set(members):
            return None
        found = together(self._reports[member] for member in sorted(members))
        if self.passed:
            self._fits_at, self._held_epoch = self._held_epoch, WHOLE
        self.passed = not found.offenders
        self._reports = {}
        return found
