"""A workload's requests for the echo: each reply must be the request's arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from benchmarks.driver.workload import Audit, Generator, Loading, Planned, Workload
from styx.client.base import Client
from styx.messages import Reply

SHOWN_MAX: Final = 5
"""Wrong replies that one client describes; further ones are counted."""


class Echoed:
    """A `Workload` that sends what `workload` would send."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self.name = workload.name
        self.app = workload.app
        self.app_target = workload.app_target
        self.settings = workload.settings

    def initial(self) -> Iterable[Loading]:
        """See `Workload.initial`: an echo has no state."""
        return ()

    def generator(self, client: int, clients: int, seed: int) -> Generator:
        """See `Workload.generator`."""
        return EchoGenerator(self._workload.generator(client, clients, seed))

    async def audit(self, client: Client, witnesses: list[Any]) -> Audit:
        """See `Workload.audit`: there is nothing left to look at but what the clients have seen."""
        right = sum(witness["right"] for witness in witnesses)
        wrong = sum(witness["wrong"] for witness in witnesses)
        shown = [text for witness in witnesses for text in witness["shown"]]
        more = [f"and {wrong - len(shown)} more"] if wrong > len(shown) else []
        return Audit([f"{right + wrong} replies: each has its own request's arguments"], [*shown, *more])


class EchoGenerator:
    """The requests of `generator`, whose replies it never sees: it would take them for an application's."""

    def __init__(self, generator: Generator) -> None:
        self.next = generator.next
        self._right = 0
        self._wrong = 0
        self._shown: list[str] = []

    def answered(self, planned: Planned, reply: Reply) -> None:
        """See `Generator.answered`."""
        if reply.error is None and reply.result == list(planned.arguments):
            self._right += 1
            return
        self._wrong += 1
        if len(self._shown) < SHOWN_MAX:
            answer = reply.result if reply.error is None else reply.error
            self._shown.append(f"the arguments {planned.arguments} came back as {answer}")

    def unknown(self, planned: Planned) -> None:
        """See `Generator.unknown`; the driver counts it."""

    def witness(self) -> dict[str, Any]:
        """See `Generator.witness`."""
        return {"right": self._right, "wrong": self._wrong, "shown": self._shown}
