"""One cluster, one runtime: which workers may register, by the interpreter and the form of the engine that they run on.

Error texts of Python itself differ between two of them, and a reply's text is part of the reply: workers of several, or
a replay on another one than that of the first run, could contradict what was answered. Another runtime is taken only by
a coordinator that began where nothing is to be replayed, for its first worker. Keeps it in the store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from styx.cluster.background import Background
from styx.process.runtime import FACT
from styx.store.base import NotFound, Store, StoreReader
from styx.transport import Connection

NAME: Final = "runtime"
"""The object that says what recorded epochs ran on."""
TOLD_MAX: Final = 1_000
"""Workers that were turned away, by name and runtime, of which the log is told; others are only told themselves."""

_log = logging.getLogger("styx.coordinator")


def read_runtime(store: StoreReader) -> str:
    """What the last workers ran on; empty if that is not known. Raises `OSError`."""
    try:
        return store.get(NAME).decode("utf-8", "replace")
    except NotFound:
        return ""


class Runtimes:
    """Of one life of a coordinator. `recorded` is the runtime of epochs that are to be replayed, empty without any.

    `turn_away(connection, reason)` is called for a worker that may not register.
    """

    def __init__(
        self, store: Store, background: Background, recorded: str, turn_away: Callable[[Connection, str], None]
    ) -> None:
        self.present = recorded
        self._store = store
        self._background = background
        self._turn_away = turn_away
        self._stored = bool(recorded)
        self._waiting: list[tuple[Connection, Callable[[Connection], None]]] = []
        self._told: set[tuple[str, str]] = set()

    def admit(self, connection: Connection, accept: Callable[[Connection], None]) -> None:
        """Calls `accept` once it stands in the store what the workers run on, or turns this one away."""
        runtime = connection.peer.facts.get(FACT, "")
        if self.present and runtime != self.present:
            self._refuse(connection, runtime)
        elif self._stored:
            accept(connection)
        else:
            self._waiting.append((connection, accept))
            if not self.present:
                self.present = runtime
                self._background.submit(
                    "storing what the workers run on",
                    lambda: self._store.put(NAME, runtime.encode()),
                    lambda _: self._put(),
                    self._failed,
                )

    def _put(self) -> None:
        self._stored = True
        waiting, self._waiting = self._waiting, []
        for connection, accept in waiting:
            if not connection.closed:
                accept(connection)

    def _failed(self, error: OSError) -> None:
        # They try again, and so does this.
        waiting, self._waiting = self._waiting, []
        self.present = ""
        for connection, _ in waiting:
            self._turn_away(connection, f"the store does not take what the workers run on: {error}")

    def _refuse(self, connection: Connection, runtime: str) -> None:
        reason = (
            f"this cluster runs on {self.present}, and the worker on {runtime or 'an unknown runtime'}: two word some "
            "errors differently. Use the same Python and the same form everywhere (STYX_PLAIN, scripts/compile). To "
            "change the form, stop the coordinator (SIGTERM) until it says that the snapshot is stored, replace all "
            "workers, and start it again; the minor version of Python is the app's package's, and stays"
        )
        about = (connection.peer.name, runtime)
        if about not in self._told and len(self._told) < TOLD_MAX:
            self._told.add(about)
            _log.error("worker %s is turned away: %s", connection.peer.name, reason)
        self._turn_away(connection, reason)
