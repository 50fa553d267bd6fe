"""Outside calls of one generation of a worker: the journal of their records in Kafka, and who runs them.

What still runs when the generation ends is not waited for: the next one runs it again unless its outcome was logged.
Paper section 7.5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from styx.externals.record import ExternalRecord, encode_external
from styx.externals.runner import Externals
from styx.worker.events import RunExternal

if TYPE_CHECKING:
    from styx.cluster.worker.generation import Generation
    from styx.cluster.worker.session import WorkerSession


class ClusterExternals:
    """`take` brings what the log holds; before that nothing is run."""

    def __init__(self, session: WorkerSession, generation: Generation) -> None:
        self._generation = generation
        self._topic = session.node.topics.externals
        self._outcomes: dict[bytes, bytes] = {}
        self._runner = Externals(
            asyncio.get_running_loop(),
            self,
            session.deployment.limits,
            lambda ended: session.give(generation, ended),
            lambda what, error: session.broken(generation, -1, f"{what} failed: {error}"),
            session.node.reports.outside,
        )

    def take(self, outcomes: dict[bytes, bytes]) -> None:
        """The logged outcomes by key."""
        self._outcomes = outcomes

    def run(self, wanted: RunExternal) -> None:
        """As `Externals.run`."""
        self._runner.run(wanted)

    def stop(self) -> None:
        """As `Externals.stop`."""
        self._runner.stop()
        self._outcomes = {}

    def outcome(self, key: bytes) -> bytes | None:
        """As `Journal.outcome`."""
        return self._outcomes.get(key)

    def append(self, slot: int, record: ExternalRecord, durable: Callable[[], None]) -> None:
        """As `Journal.append`. What cannot be appended ends the generation, and is begun again in the next."""

        def appended(future: asyncio.Future[int]) -> None:
            if not future.cancelled() and future.exception() is None:
                if record.outcome is not None:
                    self._outcomes[record.key] = record.outcome
                durable()

        future = self._generation.appender.append(self._topic, slot, [(None, encode_external(record), [])])
        future.add_done_callback(appended)
