"""The host of a cluster's control plane: what a coordinator begins from, and the control plane's effects, carried out.

Effects of the protocol behind the control plane go to the protocol's own host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from styx.coordinator.control_events import (
    Admit,
    Announce,
    Answer,
    AsidePut,
    Disconnect,
    Effect,
    Event,
    HandOut,
    NoteRunning,
    Package,
    PackageStored,
    PutAside,
    ReadVersionBefore,
    RolloutEnded,
    RunningNoted,
    RuntimeStored,
    Serve,
    StandBy,
    StorePackage,
    StoreRuntime,
    TurnAway,
    VersionFound,
    VersionRead,
)
from styx.coordinator.control_plane import ControlPlane
from styx.coordinator.events import Started
from styx.deployment import versions
from styx.errors import ConfigurationError, EngineFailed
from styx.host.coordinator_host import CoordinatorHost
from styx.host.ports import Connections, Objects
from styx.log.base import LogReader
from styx.process.runtime import read_runtime, write_runtime
from styx.schema.event_description import Published, decode_published, encode_published
from styx.snapshot.manifest import read_beginning
from styx.store.base import StoreReader


class ControlBeginning(NamedTuple):
    """What a cluster's coordinator begins from. `package` is that of the version that `started` names, None if no
    version ever ran, or the store lacks it. `runtime` ran the epochs that are to be run again, empty without any.
    `published` are the types of events that versions have had.
    """

    started: Started
    damaged: list[str]
    package: bytes | None
    runtime: str
    published: Published


def read_control_beginning(store: StoreReader, log: LogReader) -> ControlBeginning:
    """As `read_beginning`, with the version that runs. Raises `OSError`."""
    started, damaged, generations = read_beginning(store, log)
    if not (started.generation or started.manifests):
        # The first version stands in the store alone, until the first generation's marker names it.
        started.app_version = versions.newest_that_ran(store)
    package = versions.load_version(store, started.app_version) if started.app_version else None
    published = versions.load_published(store, started.app_version) if package is not None else b""
    stored_epoch = max((manifest.epoch for manifest in started.manifests[:1]), default=-1)
    runtime = read_runtime(store) if generations.last_epoch > stored_epoch else ""
    return ControlBeginning(started, damaged, package, runtime, decode_published(published))


class ControlPorts(NamedTuple):
    """What the control plane's effects need. `opened` checks a package's signature and reads its header, or says why it
    cannot be used. `put_aside` sets the request at a place aside, or (True) only looks at it, and says what it is; it
    raises `ConfigurationError`, `EngineFailed` or `OSError`.
    """

    connections: Connections
    objects: Objects
    opened: Callable[[bytes], Package | str]
    put_aside: Callable[[str, bool], str]


class ControlHost:
    """Of `plane`; `protocol` hosts what is behind it. What it began comes back through `give`."""

    def __init__(
        self,
        plane: ControlPlane,
        protocol: CoordinatorHost,
        ports: ControlPorts,
        give: Callable[[Event], None],
    ) -> None:
        self.plane = plane
        self._protocol = protocol
        connections, self._objects, self._opened, self._aside = ports
        self._give = give
        self._do: dict[type, Callable[[Any], None]] = {
            Admit: connections.admit,
            TurnAway: connections.turn_away,
            Disconnect: connections.disconnect,
            HandOut: connections.hand_out,
            StandBy: connections.stand_by,
            Serve: connections.serve,
            Announce: connections.announce,
            Answer: connections.answer,
            RolloutEnded: connections.rollout_ended,
            StoreRuntime: self._store_runtime,
            StorePackage: self._store_package,
            NoteRunning: self._note_running,
            ReadVersionBefore: self._read_version_before,
            PutAside: self._put_aside,
        }

    def begin(self, found: ControlBeginning) -> None:
        """The coordinator begins, with the version that runs."""
        if found.package is not None:
            package = self._opened(found.package)
            if isinstance(package, str):
                raise EngineFailed(f"version {found.started.app_version} of the app cannot be used: {package}")
            self._give(VersionFound(found.started.app_version, package, found.published))
        self._give(found.started)

    def step(self, event: Event) -> None:
        """Gives the control plane an event and begins what is then wanted."""
        for effect in self.plane.step(event):
            self.do(effect)

    def do(self, effect: Effect) -> None:
        """Begins what the control plane, or the protocol, wants done."""
        do = self._do.get(type(effect), self._protocol.do)
        do(effect)

    def _store_runtime(self, effect: StoreRuntime) -> None:
        store = self._objects.store
        self._objects.submit(
            "storing what the workers run on",
            lambda: write_runtime(store, effect.runtime),
            lambda _: self._give(RuntimeStored()),
            lambda error: self._give(RuntimeStored(f"the store does not take what the workers run on: {error}")),
        )

    def _store_package(self, effect: StorePackage) -> None:
        store = self._objects.store
        self._objects.submit(
            "storing a version of the app",
            lambda: versions.store_version(store, effect.package.content),
            lambda version: self._give(PackageStored(version)),
            lambda error: self._give(PackageStored(0, f"the store is out of reach: {error}")),
        )

    def _note_running(self, effect: NoteRunning) -> None:
        store, published = self._objects.store, encode_published(effect.published)
        self._objects.submit(
            f"noting that version {effect.version} runs",
            lambda: versions.note_running(store, effect.version, published),
            lambda _: self._give(RunningNoted(effect.version)),
            lambda error: self._give(RunningNoted(effect.version, f"the store is out of reach: {error}")),
        )

    def _read_version_before(self, effect: ReadVersionBefore) -> None:
        store, before = self._objects.store, effect.version

        def read(content: bytes | None) -> None:
            self._give(VersionRead(before, None if content is None else self._opened(content)))

        self._objects.submit(
            f"loading the version before {before}",
            lambda: versions.load_version_before(store, before),
            read,
            lambda error: self._give(VersionRead(before, f"the store is out of reach: {error}")),
        )

    def _put_aside(self, effect: PutAside) -> None:
        def run() -> tuple[bool, str, bool]:
            try:
                return True, self._aside(effect.place, effect.dry_run), False
            except (ConfigurationError, EngineFailed) as error:
                return False, str(error), isinstance(error, EngineFailed)

        self._objects.submit(
            "setting a request aside",
            run,
            lambda found: self._give(AsidePut(effect, *found)),
            lambda error: self._give(AsidePut(effect, False, f"log or store out of reach: {error}", failed=True)),
        )
