"""A deployment under way: a package that was accepted, is being stored and handed out, and then takes effect.

One at a time. Decides whether it may go on; the coordinator's shell does what it says. A version takes effect only if
every live worker can run it, and only if no entity would be lost: what workers say of their operators refuses most of
what would at once, and the check of all state, which the protocol sees to, decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto

from styx.cluster.coordinator.links import WorkerLink
from styx.coordinator.coordinator import Coordinator, Phase
from styx.deployment.package_format import PackageHeader
from styx.schema.description import refusal, refusal_to_go_back
from styx.schema.state_findings import StateFindings

Answering = Callable[[bool, str], None]
"""Gives whoever ordered it (done, text)."""
Awaited = Callable[[], bool]
"""Whoever wants to know whether it could be deployed is still there."""


class Stage(Enum):
    """Where it is."""

    CHECKING = auto()
    STORING = auto()
    HANDING_OUT = auto()
    SWITCHING = auto()


class Deploying:
    """`answer(done, text)` is called once. `header` is the new package's. With `awaited` it is not to take effect
    (`only_check`), and `version` is a number below 0. `back`: it ran before the present one. `notes` are what an
    operator should know of the state, a line each.
    """

    def __init__(
        self,
        package: bytes,
        header: PackageHeader,
        answer: Answering,
        awaited: Awaited | None,
        back: bool,
    ) -> None:
        self.package = package
        self.header = header
        self.answer = answer
        self._awaited = awaited
        self._back = back
        self.stage = Stage.CHECKING
        self.version = 0
        self.notes: list[str] = []

    @property
    def only_check(self) -> bool:
        """It is only to be found out whether it could take effect."""
        return self._awaited is not None

    @property
    def given_up(self) -> bool:
        """That is not awaited any more."""
        return self._awaited is not None and not self._awaited()

    @property
    def handed(self) -> bool:
        """Workers have been sent it, and one that registers now must be."""
        return self.stage in (Stage.HANDING_OUT, Stage.SWITCHING)

    def found(self, findings: StateFindings) -> str | None:
        """What the check of all state has found; why it may not take effect, None if it may."""
        refusal = findings.refusal()
        if refusal is not None and self.notes:
            return f"state that was changed while it was deployed: {refusal}"
        self.notes = findings.notes()
        return refusal

    def done(self) -> str:
        """What to tell when it has taken effect, or could."""
        first = "it can be deployed" if self.only_check else f"version {self.version} runs"
        return "\n".join([first, *self.notes])

    def may_replace(self, active: PackageHeader | None, members: Iterable[WorkerLink]) -> str | None:
        """Why it may not take the place of `active`, judged by what state there is; None if it may."""
        if active is None:
            return None
        with_state = {o for link in members if link.heartbeat is not None for o in link.heartbeat.operators}
        reason = refusal(active.description, self.header.description, with_state)
        if reason is None and self._back:
            return refusal_to_go_back(active.description, self.header.description, with_state)
        return reason

    def handed_out(self, workers: Iterable[WorkerLink]) -> bool | str:
        """True if every worker can run it, False if some have not said so yet, or why one cannot."""
        links = list(workers)
        for link in links:
            if self.version in link.refused:
                return f"worker {link.connection.peer.name} cannot run it: {link.refused[self.version]}"
        return all(self.version in link.taken for link in links)


def settled(core: Coordinator, members: Iterable[WorkerLink]) -> bool:
    """Every member has said which operators have state in this generation."""
    beats = [link.heartbeat for link in members]
    return core.phase is Phase.RUNNING and all(
        beat is not None and beat.generation == core.generation and beat.step not in ("loading", "loaded")
        for beat in beats
    )
