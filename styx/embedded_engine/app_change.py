"""Which code a start runs: recorded epochs on the code that first ran them, and later epochs on the given app.

A start with another app than the last one's is a planned change, like a deployment in a cluster. The epochs recorded
after the snapshot run on the code and limits of the version that recorded them. Then a snapshot is taken behind which
nothing begins, and a new generation begins on it with the new version. An app that would lose entities, or that cannot
read them, is refused beforehand. `begin` and `check` read and write the store, on its thread; the engine carries out
their result.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from msgspec.structs import replace

from styx.coordinator.events import Started
from styx.deployment.package_format import PackageRefused
from styx.embedded_engine import app_record
from styx.embedded_engine.app_record import AppRecord
from styx.embedded_engine.losses import (
    NOTHING_CHANGED,
    Tables,
    losses,
    misplaced_anywhere,
    misplaced_here,
    not_converted_back,
    unknown_operators,
    unstable_partition_key,
)
from styx.errors import ConfigurationError, EngineFailed
from styx.model.app import App
from styx.model.limits import Limits
from styx.model.table_names import owner_of
from styx.protocol.manifest import Manifest
from styx.schema.cron_entries import without_crons
from styx.schema.event_description import describe_events, published_of, refusal_of_events
from styx.schema.state_check import Table, check_tables
from styx.schema.state_findings import StateFindings
from styx.sequencer.epoch_record import EpochPlan
from styx.snapshot.load import Unusable, read_states
from styx.state.table import NEWEST
from styx.store.base import Store
from styx.watchdog.watchdog import Watchdog
from styx.watchdog.watched import WatchedCheck
from styx.worker.invocation import Running
from styx.worker.standing import StateGuard

ACCEPT: Final = "accept_changed_replay=True (styx dev --accept-changed-replay)"
"""How a user says that recorded epochs may be run on other code than the one that ran them."""

SLOW_SECONDS: Final = 5.0
"""When recorded epochs have run for so long on the code that ran them, a person is told what can be done."""

_log = logging.getLogger("styx.embedded")


class Stage(Enum):
    """How far the change is."""

    NONE = "the app runs that recorded what there is, or nothing is recorded"
    REPLAYING = "recorded epochs run on the version that recorded them"
    CHECKING = "the state is looked at"
    SWITCHING = "the snapshot on which the new version begins is being taken"
    DONE = "the new version runs"


class AppChange:
    """Of one start. `store` None: in memory, where nothing is kept.

    `changed`: the app is another one than the last start's. `recorded_code_ran`: recorded epochs run on the code that
    was kept. `begun`: what runs now is what is to be served. `replayed`: how many of them were not empty. `notes` are
    what a person should know of the state, a line each.
    """

    def __init__(self, app: App, limits: Limits, n_slots: int, store: Store | None, accept: bool) -> None:
        self.stage = Stage.NONE
        self.version = 0
        self.changed = False
        self.begun = True
        self.recorded_code_ran = False
        self.replayed = 0
        self.notes: list[str] = []
        self._converted = set[str]()
        self.accept = accept
        self._app = app
        self._limits = limits
        self._n_slots = n_slots
        self._store = store
        self._old: AppRecord | None = None
        self._new: AppRecord | None = None
        self._why_not = ""
        self._running = 0
        self._slow: threading.Timer | None = None
        self._runs: dict[int, tuple[App, Limits]] = {0: (app, limits)}

    def begins(self, version: int, run: Callable[[App, Limits], None]) -> None:
        """A generation of this version of the app begins: `run` gets what it runs."""
        self._running = version
        self.begun = version == self.version
        run(*self._runs[version])

    # Before anything is written ----------------------------------------------------------------------------

    def begin(self, started: Started, requests: bool, marked: bool) -> Started:
        """What the coordinator starts from; `requests`: there are some in the log, which may have to be run again;
        `marked`: there are generations' markers, which say what version ran.

        Raises `ConfigurationError` if the app would lose entities.
        """
        store = self._store
        if store is None:
            return started
        if started.generation <= 0 and not started.manifests:
            self.version = 1
            app_record.write_record(store, app_record.record_of(self._app, self._limits, 1))
            self._runs[1] = self._app, self._limits
            return _of_version(started, 1)
        if not marked and not started.manifests:
            # Everything is damaged that would say so. Recovery is about to refuse it, and may not make it worse.
            started = _of_version(started, max(app_record.versions(store), default=0))
        old = self._old = app_record.read_record(store, started.app_version)
        same_code = old is not None and app_record.is_code_of(old, self._app)
        if old is not None and same_code:
            unstable = [o for o, digest in app_record.placements(self._app).items() if digest != old.placements[o]]
            if unstable and requests:
                self._refuse_losses(old, started.manifests, values=False)
                raise ConfigurationError(unstable_partition_key(unstable[0]))
            if old.limits == self._limits and not unstable:
                self.version = old.version
                self._runs[old.version] = self._app, self._limits
                return started
        self._begin_change(started, store, old)
        return started

    def _begin_change(self, started: Started, store: Store, old: AppRecord | None) -> None:
        self.stage, self.changed = Stage.REPLAYING, old is not None
        number = max([started.app_version, *app_record.versions(store)]) + 1
        self.version = number
        new = self._new = app_record.record_of(self._app, self._limits, number)
        self._runs[started.app_version] = self._runs[number] = self._app, self._limits
        # What another version stored is converted when it is loaded, and can be read only then.
        readable = bool(started.manifests) and started.manifests[0].app_version == started.app_version
        self._refuse_losses(old, started.manifests, readable)
        if old is None or self.accept:
            return
        if _is_same_code(old, new):
            self._runs[old.version] = self._app, old.limits
            return
        code = self._recorded_code(old)
        if code is not None:
            self.recorded_code_ran = True
            self._runs[old.version] = code, old.limits
            # A thread's: a function that never ends holds up the event loop.
            self._slow = threading.Timer(SLOW_SECONDS, _tell_slow)
            self._slow.daemon = True
            self._slow.start()

    def _recorded_code(self, old: AppRecord) -> App | None:
        if old.code is None:
            self._why_not = old.problem
        elif old.python != app_record.python_version():
            self._why_not = f"it was kept by {old.python}, and this is {app_record.python_version()}"
        else:
            try:
                from styx.deployment.package import unpack_code

                return unpack_code(old.code)
            except (PackageRefused, ConfigurationError) as error:
                self._why_not = str(error)
        return None

    def _refuse_losses(self, old: AppRecord | None, manifests: list[Manifest], values: bool) -> None:
        """Looks at the newest snapshot, before anything is written, and at its values if `values`; all of it, with what
        is behind the snapshot, `check` sees.
        """
        if not manifests or self._store is None:
            return
        try:
            states = read_states(manifests[0], range(self._n_slots), self._store)
        except (Unusable, EngineFailed):
            return  # recovery says what is damaged, or finds an older snapshot
        self._check(old, {slot: state.at(NEWEST) for slot, state in states.items()}, values)

    def _check(self, old: AppRecord | None, tables: Tables, values: bool = True) -> None:
        tables = {slot: without_crons(by) for slot, by in tables.items()}
        if old is None:
            reason = misplaced_anywhere(self._app, tables, self._n_slots)
        else:
            reason = losses(old, self._app, tables, self._n_slots) or not_converted_back(old, self._app, tables)
            reason = reason or refusal_of_events(old.published, describe_events(self._app.events))
        if reason is not None:
            raise ConfigurationError(reason)
        if not values:
            return
        findings = checked(self._app, self._n_slots, self._limits, _of_app(self._app, tables))
        refusal = findings.refusal()
        if refusal is not None:
            raise ConfigurationError(f"{refusal}\n{NOTHING_CHANGED}")
        self.notes = findings.notes()
        self._converted = set(findings.migrated)

    def runs_again(self, plans: list[EpochPlan], carried: bool) -> None:
        """These epochs are about to be run; `carried`: so may be transactions that the snapshot holds."""
        self.replayed = sum(
            any(b.count or b.resumed or (carried and not b.idle) for b in plan.batches.values()) for plan in plans
        )

    # While state is loaded, and after the replay -----------------------------------------------------------

    def check_loaded(self, tables: Tables) -> None:
        """What a snapshot holds was loaded. Raises `ConfigurationError` if it would not be found."""
        app, _ = self._runs[self._running]
        given = app is self._app and self._old is None
        left = {slot: without_crons(by) for slot, by in tables.items()}
        reason = (misplaced_anywhere if given else misplaced_here)(app, left, self._n_slots)
        if reason is not None:
            raise ConfigurationError(reason)

    def check(self, tables: Tables) -> None:
        """Recorded epochs have been run, and what there is is `tables`; writes the new version's record.

        Raises `ConfigurationError` if the app would lose or could not read entities, `EngineFailed` if recorded epochs
        ran on what they must not.
        """
        self.end()
        new, old = self._new, self._old
        assert new is not None
        assert self._store is not None
        if old is not None:
            ran_on_other_code = not self.recorded_code_ran and not _is_same_code(old, new)
            if self.replayed and ran_on_other_code and not self.accept:
                raise EngineFailed(self._no_recorded_code())
        self._check(old, tables)
        left = {slot: without_crons(by) for slot, by in tables.items()}
        for name, count in sorted(unknown_operators(self._app, left).items()):
            _log.warning("the data has %d entries of %r, which app %r lacks", count, name, self._app.name)
        converted = self._converted.union(() if old is None else old.converted)
        published = published_of(new.description.events, None if old is None else old.published)
        app_record.write_record(self._store, replace(new, converted=sorted(converted), published=published))

    def _no_recorded_code(self) -> str:
        """Why recorded epochs cannot be run on the code that ran them."""
        return (
            f"{self.replayed} recorded epochs ran on other code than this, and that code could not be kept "
            f"({self._why_not}). Nothing is lost: start once with the code from before and stop it cleanly, and then "
            f"with this code; or run them on this code, with {ACCEPT}, which says where a reply would be another one."
        )

    def end(self) -> None:
        """Recorded epochs have been run, or will not be."""
        if self._slow is not None:
            self._slow.cancel()

    def forget_older(self) -> None:
        """The new version runs: the others' records are of no use any more. On the store's thread."""
        if self._store is None:
            return
        for version in app_record.versions(self._store):
            if version != self.version:
                app_record.delete_record(self._store, version)


def _tell_slow() -> None:
    _log.warning(
        "the code has changed since the crash, and what was recorded before it has been run for %g s on the code that "
        "ran it. If that code never ends, kill this process and run it on the code as it is now: %s",
        SLOW_SECONDS,
        ACCEPT,
    )


def _is_same_code(old: AppRecord, new: AppRecord) -> bool:
    """Whether two records are of the same code."""
    return old.fingerprint == new.fingerprint and old.modules == new.modules


def _of_version(started: Started, version: int) -> Started:
    """The same beginning, of this version from its first epoch on."""
    return dataclasses.replace(started, app_version=version, app_since=-1)


def _of_app(app: App, tables: Tables) -> Tables:
    """Without what no operator of the app has, and without what is the engine's own."""
    return {slot: {name: by[name] for name in by if owner_of(name) in app.operators} for slot, by in tables.items()}


def checked(app: App, n_slots: int, limits: Limits, slots: Mapping[int, Mapping[str, Table]]) -> StateFindings:
    """As `check_tables`, on the thread that calls it."""
    running = Running()
    watchdog = Watchdog(WatchedCheck(running, limits, threading.get_ident()))
    watchdog.start()
    try:
        return check_tables(app, n_slots, limits, slots, StateGuard(app, n_slots, limits, running))
    finally:
        watchdog.stop()
