"""A worker process's resources for its whole life, over all its registrations: log, store, addresses of peers, and
whether the process was told to end.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, NamedTuple

from styx.cluster.wire import WORKER, Code
from styx.cluster.worker.epoch_watch import EpochWatch
from styx.cluster.worker.metrics import WorkerCounters
from styx.cluster.worker.peers import address_of
from styx.deployment.package import read_header, unpack
from styx.host.background import Background
from styx.kafka.address import KafkaAddress
from styx.kafka.reader import KafkaReader
from styx.kafka.topics import Topics
from styx.model.app import App
from styx.process.runtime import FACT, RUNTIME
from styx.reports.function_reports import FunctionReports
from styx.store.base import Store
from styx.transport import Hello, Security


class Departure:
    """The departure of a worker. `leaving`: it should get rid of its slots. `released` is set once it has no slots and
    gets none any more.
    """

    def __init__(self) -> None:
        self.leaving = False
        self.released = asyncio.Event()

    def let_go(self) -> None:
        """Notes that the coordinator has given the slots to other workers, as this process or an operator had asked."""
        self.leaving = True
        self.released.set()


_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_STATM: Final = Path("/proc/self/statm")


class OwnApp(NamedTuple):
    """The app that a process was started with, and the fingerprint of its package."""

    app: App
    fingerprint: str


class Node:
    """The resources of a worker process. `own` is None for a process that was started without an app."""

    def __init__(
        self,
        name: str,
        security: Security,
        log: KafkaAddress,
        store: Store,
        background: Background,
        own: OwnApp | None = None,
    ) -> None:
        self.name = name
        self.security = security
        self.log = log
        self.store = store
        self.background = background
        self.incarnation = secrets.token_hex(8)
        self.counters = WorkerCounters()
        self.watch = EpochWatch()
        self.reports = FunctionReports(asyncio.get_running_loop().call_later)
        self.departure = Departure()
        self.listens_at = ""
        self.coordinator = ""
        self.refused: Callable[[], int] = lambda: 0
        """How many connections its listener has refused."""
        self.topics: Topics
        self._own = own
        self._reader: KafkaReader | None = None
        self._ending: set[asyncio.Task[None]] = set()

    def hello(self) -> Hello:
        """The introduction to the coordinator, and to peers that dial this worker."""
        return Hello(
            cluster=self.security.cluster,
            role=WORKER,
            name=self.name,
            incarnation=self.incarnation,
            address=address_of(self.listens_at, self.incarnation),
            facts={FACT: RUNTIME},
        )

    def hello_to_peers(self, number: int) -> Hello:
        """The introduction to peers that this worker dials, with the number of its present registration."""
        return Hello(
            cluster=self.security.cluster,
            role=WORKER,
            name=self.name,
            incarnation=self.incarnation,
            facts={"worker": str(number)},
        )

    def app_of(self, code: Code) -> App:
        """The app in a package, or the process's own app if the code is the same. Raises `PackageRefused`."""
        own = self._own
        if own is not None and read_header(code.package, self.security.secret).fingerprint == own.fingerprint:
            return own.app
        return unpack(code.package, self.security.secret)

    def let_go(self, ending: Coroutine[Any, Any, None]) -> None:
        """Runs a coroutine in the background, without waiting for its end."""
        task = asyncio.get_running_loop().create_task(ending)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def reader(self) -> KafkaReader:
        """A reader of the log, for a background thread; kept open for the next recovery."""
        if self._reader is None:
            self._reader = KafkaReader(self.log, self.topics)
        return self._reader

    @property
    def strangers(self) -> int:
        """The number of records in the log that were skipped because the engine did not append them."""
        return 0 if self._reader is None else self._reader.strangers

    def memory(self) -> int:
        """Resident bytes of the process; 0 on a system that does not report them."""
        try:
            return int(_STATM.read_text().split()[1]) * _PAGE_BYTES
        except OSError:
            return 0
