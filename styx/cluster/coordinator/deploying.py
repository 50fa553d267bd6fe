"""A deployment under way: a package that was accepted, is being stored and handed out, and then takes effect.

One at a time. Decides whether it may go on; the coordinator's shell does what it says. A version takes effect only if
every live worker can run it, and only if no entity would be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto

from styx.cluster.coordinator.links import WorkerLink
from styx.deployment.description import refusal
from styx.deployment.package_format import PackageHeader


class Stage(Enum):
    """Where it is."""

    CHECKING = auto()
    STORING = auto()
    HANDING_OUT = auto()
    SWITCHING = auto()


class Deploying:
    """`answer(done, text)` is called once. `header` is the new package's."""

    def __init__(self, package: bytes, header: PackageHeader, answer: Callable[[bool, str], None]) -> None:
        self.package = package
        self.header = header
        self.answer = answer
        self.stage = Stage.CHECKING
        self.version = 0

    def may_replace(self, active: PackageHeader | None, members: Iterable[WorkerLink]) -> str | None:
        """Why it may not take the place of `active`, judged by what state there is; None if it may."""
        if active is None:
            return None
        with_state = {o for link in members if link.heartbeat is not None for o in link.heartbeat.operators}
        return refusal(active.description, self.header.description, with_state)

    def handed_out(self, workers: Iterable[WorkerLink]) -> bool | str:
        """True if every worker can run it, False if some have not said so yet, or why one cannot."""
        links = list(workers)
        for link in links:
            if self.version in link.refused:
                return f"worker {link.connection.peer.name} cannot run it: {link.refused[self.version]}"
        return all(self.version in link.taken for link in links)
