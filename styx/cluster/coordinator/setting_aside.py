"""What an operator has set aside through the coordinator, so that a cluster that a request holds up goes on.

The next generation refuses the request. A worker that is held up takes part in none, so its registration is ended: the
others go on at once, and it registers anew when it can. Decides nothing about the request; `styx.cluster.asides` does.
"""

from __future__ import annotations

import time
from typing import Final

from styx.cluster.asides import put_aside
from styx.cluster.background import Background
from styx.cluster.coordinator.departures import Answering
from styx.cluster.coordinator.links import Links
from styx.cluster.wire import SetAside
from styx.errors import ConfigurationError, EngineFailed
from styx.kafka.address import KafkaAddress
from styx.set_aside.places import listing, read
from styx.store.base import Store

HELD_UP_SECONDS: Final = 2.0
"""A worker of which its watchdog has said nothing for so long is held up no more."""


class SettingAside:
    """For one life of the coordinator."""

    def __init__(self, links: Links, log: KafkaAddress, store: Store, background: Background) -> None:
        self._links = links
        self._log = log
        self._store = store
        self._background = background

    def ask(self, message: SetAside, answer: Answering) -> None:
        """Does it, or says what it would do; without a place, says what has been set aside."""

        def run() -> tuple[bool, str]:
            if not message.place:
                return True, listing(read(self._store))
            try:
                return True, put_aside(message.place, self._log, self._store, message.dry_run)
            except (ConfigurationError, EngineFailed) as error:
                return False, str(error)

        def ended(found: tuple[bool, str]) -> None:
            done, text = found
            if done and message.place and not message.dry_run:
                text += self._begin_anew(message.place)
            answer(done, text)

        self._background.submit(
            "setting a request aside", run, ended, lambda error: answer(False, f"log or store out of reach: {error}")
        )

    def _begin_anew(self, place: str) -> str:
        now_s = time.monotonic()
        held_up = [link for link in self._links.workers.values() if now_s - link.busy_at_s <= HELD_UP_SECONDS]
        for link in held_up:
            link.connection.abort(f"it is held up, and the request {place} is set aside")
        if not held_up:
            return "; this takes effect with the next generation, when a worker fails at it or is started again"
        names = ", ".join(sorted(link.connection.peer.name for link in held_up))
        return (
            f". The others go on without {names}, which was held up and comes back when its function ends; if it does "
            "not, end that process (SIGTERM) and start it again"
        )
