"""The coordinator process: takes over the deployment, listens for workers, and begins anew when the log was lost.

Taking over means starting the coordinator's producer, which fences every older coordinator. A coordinator that is
fenced ends, because another one has taken over.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from styx.cluster.coordinator.journal import ClusterJournal
from styx.cluster.coordinator.log_reach import check_begun, check_reach
from styx.cluster.coordinator.metrics import CoordinatorCounters, exposition
from styx.cluster.coordinator.session import CoordinatorSession
from styx.cluster.options import (
    FUNCTION_SECONDS_MAX,
    CoordinatorOptions,
    ProcessOptions,
    too_long_functions,
)
from styx.cluster.wire import COORDINATOR, Deployment, coordinator_producer
from styx.coordinator.take_over import ORDER, TakeOver
from styx.deployment import versions
from styx.deployment.claim import Claim, claim
from styx.deployment.package import pack, read_header
from styx.deployment.package_format import PackageRefused
from styx.errors import ConfigurationError, EngineFailed
from styx.host.background import Background, on_running_loop
from styx.host.control_host import ControlBeginning, read_control_beginning
from styx.kafka.appender import Appender
from styx.kafka.appends import RECORD_BYTES_MAX
from styx.kafka.errors import Fenced
from styx.kafka.reader import KafkaReader
from styx.kafka.topics import ROUTING_KEY, ensure_topics, topics_of
from styx.model.app import App
from styx.schema.description import AppDescription, routing_table
from styx.snapshot.manifest import read_manifests
from styx.store.base import Store
from styx.transport import Connection, Hello, Listener, listen

BEGIN_RETRY_SECONDS: Final = 0.5
"""Before beginning anew after the log or the store was out of reach."""
TICK_SILENCE_SECONDS: Final = 5.0
"""A clock that has not ticked for longer has stopped."""

_log = logging.getLogger("styx.coordinator")


class CoordinatorProcess:
    """`run` ends when it is cancelled; raises `ConfigurationError`, or `EngineFailed` for what no retry can mend."""

    def __init__(self, options: ProcessOptions, coordinator: CoordinatorOptions, app: App | None = None) -> None:
        self.session: CoordinatorSession | None = None
        self.address = ""
        self.away: str | None = "it begins"
        self.counters = CoordinatorCounters()
        self.metrics: Callable[[], str] = exposition(self).text
        """Gives Prometheus' text for `/metrics`."""
        self.app_name = coordinator.app
        self.topics = topics_of(coordinator.app)
        _check(coordinator)
        self._options = options
        self._coordinator = coordinator
        self._package = b"" if app is None else pack(app, options.security.secret)
        self._listening = asyncio.Event()
        self._listener: Listener | None = None

    async def run(self) -> None:
        """Coordinates for as long as it is let."""
        options = self._options
        hello = Hello(cluster=options.security.cluster, role=COORDINATOR, name=options.name, incarnation=options.name)
        listener = await listen(options.host, options.port, options.security, hello, self._accept)
        self._listener = listener
        self.address = listener.address
        self._listening.set()
        try:
            while True:
                try:
                    await self._life()
                except OSError as error:
                    if self.away != str(error):
                        _log.warning("waiting for log or store: %s", error)
                    self.away = str(error)
                    await asyncio.sleep(BEGIN_RETRY_SECONDS)
        finally:
            await listener.close()

    async def listening(self) -> str:
        """The address, once others can connect to it."""
        await self._listening.wait()
        return self.address

    @property
    def refused(self) -> int:
        """Connections refused so far."""
        return 0 if self._listener is None else self._listener.refused

    async def last_snapshot(self) -> bool:
        """Stops in order, behind a last snapshot; returns whether all that has run is stored."""
        session = self.session
        return False if session is None else await session.stop_orderly()

    def stuck(self) -> str | None:
        """What shows that it does not go on by itself; None while it does, or waits for log or store."""
        if self.session is None:
            return None
        silent_s = time.monotonic() - self.session.ticked_at_s
        return None if silent_s <= TICK_SILENCE_SECONDS else f"its clock has not ticked for {silent_s:.1f} s"

    def _accept(self, connection: Connection) -> None:
        if self.session is None:
            connection.abort("the coordinator is beginning")
        else:
            self.session.accept(connection)

    async def _life(self) -> None:
        """From taking over to losing the log."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def failed(error: BaseException) -> None:
            if not over.done():
                over.set_exception(error)

        options, wanted = self._options, self._coordinator
        background = Background(lambda what, error: failed(_noted(error, what)), on_running_loop())
        appender = Appender(
            options.log, transactional_id=coordinator_producer(wanted.app), on_failure=lambda e: failed(_explained(e))
        )
        try:
            store = await background.run(options.open_store)
            own = Claim(wanted.app, wanted.n_slots, wanted.reply_partitions, wanted.limits)
            claimed = await background.run(lambda: claim(store, own))
            deployment = Deployment(
                claimed.app, claimed.n_slots, claimed.reply_partitions, claimed.limits or wanted.limits
            )
            found = await self._take_over(deployment, store, background, appender)
            session = self._session(deployment, store, background, appender, found.runtime, failed)
            self.away = None
            self.session = session
            session.start(found)
            if self._package:
                session.deploy(self._package, self._deployed)
            await over
        finally:
            if self.session is not None:
                self.session.stop()
                self.session = None
            appender.abort()
            background.abandon()

    async def _take_over(
        self, deployment: Deployment, store: Store, background: Background, appender: Appender
    ) -> ControlBeginning:
        log, found = self._options.log, None
        for step in ORDER:
            if step is TakeOver.CHECK_LOG:
                manifests, _ = await background.run(lambda: read_manifests(store))
                await check_reach(log, self.topics, manifests)
            elif step is TakeOver.MAKE_TOPICS:
                copies = self._coordinator.replication
                await ensure_topics(log, self.topics, deployment.n_slots, deployment.reply_partitions, copies)
            elif step is TakeOver.REHEARSE:
                await self._rehearse(store, background)
            elif step is TakeOver.FENCE:
                await appender.start([self.topics.epochs, self.topics.directory])
            else:
                found = await background.run(lambda: self._read(store))
        assert found is not None
        self._check_package(found.started.app_version, found.package)
        return found

    def _deployed(self, done: bool, text: str) -> None:
        # Once: what was deployed since must not be undone by losing the log for a moment.
        self._package = b""
        (_log.info if done else _log.error)("the app that the coordinator was started with: %s", text)

    def _read(self, store: Store) -> ControlBeginning:
        reader = KafkaReader(self._options.log, self.topics)
        try:
            found = read_control_beginning(store, reader)
        finally:
            reader.close()
        for name in found.damaged:
            _log.warning("the manifest %s is damaged: its checksum does not match; trying the one before it", name)
        check_begun(found.started, self.topics)
        return found

    async def _rehearse(self, store: Store, background: Background) -> None:
        """Raises what would end this coordinator in any case, before it takes over from one that works."""
        newest = max(await background.run(lambda: versions.versions(store)), default=0)
        if newest:
            package = await background.run(lambda: versions.load_version(store, newest))
        else:
            found = await background.run(lambda: self._read(store))
            newest, package = found.started.app_version, found.package
        self._check_package(newest, package)

    def _check_package(self, version: int, package: bytes | None) -> None:
        if not version:
            return
        if package is None:
            raise EngineFailed(
                f"the store lacks version {version} of the app, which the log says was running: start with the store "
                "that this deployment was made with, or restore it from a copy"
            )
        try:
            read_header(package, self._options.security.secret)
        except PackageRefused as error:
            raise ConfigurationError(
                f"version {version} of the app, which the store holds, cannot be used: {error}. "
                "Start with the secret that this deployment was made with: styx up keeps it in the file "
                ".styx/run/APP/secret of the directory where it was run"
            ) from None

    def _session(
        self,
        deployment: Deployment,
        store: Store,
        background: Background,
        appender: Appender,
        recorded: str,
        failed: object,
    ) -> CoordinatorSession:
        assert callable(failed)

        def announce(description: AppDescription) -> None:
            appender.append(self.topics.directory, 0, [(ROUTING_KEY, routing_table(description).encode(), [])])

        return CoordinatorSession(
            self._coordinator,
            deployment,
            self._options.security.secret,
            self._options.log,
            store,
            background,
            ClusterJournal(
                deployment.app,
                deployment.n_slots,
                self._options.log,
                self.topics,
                appender,
                self._coordinator.keep_log,
                failed,
            ),
            announce,
            self.counters,
            failed,
            recorded,
        )


def _check(options: CoordinatorOptions) -> None:
    if options.workers is not None and not 1 <= options.workers <= options.n_slots:
        raise ConfigurationError(
            f"{options.n_slots} slots can be shared by 1 to {options.n_slots} workers, not by {options.workers}"
        )
    largest = 2 * max(options.limits.value_bytes_max, options.limits.request_bytes_max)
    if largest > RECORD_BYTES_MAX:
        raise ConfigurationError(
            f"values and requests of up to {largest // 2} bytes do not fit into log records of {RECORD_BYTES_MAX}: "
            f"lower the limits to {RECORD_BYTES_MAX // 2}"
        )

    if options.limits.function_seconds_max > FUNCTION_SECONDS_MAX:
        raise ConfigurationError(too_long_functions(options.limits.function_seconds_max))


def _explained(error: BaseException) -> BaseException:
    if isinstance(error, Fenced):
        return EngineFailed("another coordinator of this deployment has taken over; this one ends")
    return OSError(f"the log refuses appends: {error}")


def _noted(error: BaseException, what: str) -> BaseException:
    error.add_note(f"while {what}")
    return error
