"""`python -m proof.replayed_events DUMP MODULE:APP OBJECTS`: gives a fresh core the events that a failed one left.

The core is a worker's or a coordinator's. OBJECTS is the `objects` folder of a data directory: the snapshot that a
worker's generation began on is read from there. The core fails as it failed there, under a debugger if wanted.
Functions that the watchdog ended are not among the events: a dump behind such an end may go another way.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from styx.cli.app_target import load_app
from styx.coordinator import control_events
from styx.coordinator.control_plane import ControlPlane
from styx.coordinator.coordinator import Coordinator
from styx.host.event_dump import CoordinatorCore, Dump, WorkerCore
from styx.host.event_log import KeptLoad
from styx.model.app import App
from styx.model.execution import with_own_generators
from styx.snapshot.load import Behind, state_of
from styx.store.base import Store
from styx.store.directory import DirectoryStore
from styx.worker.events import Effect, Event, LoadState, StateLoaded
from styx.worker.given_replies import GivenReplies
from styx.worker.notes import Notes
from styx.worker.worker import Worker

_OF_WORKER: Final = {each.__name__: each for each in (*get_args(Event), KeptLoad)}
_OF_COORDINATOR: Final = {each.__name__: each for each in get_args(control_events.Event)}
_decode: Final = msgspec.msgpack.Decoder(Dump).decode


class NotReplayable(Exception):
    """The dump lacks a part of what led to the failure."""


def replay(data: bytes, app: App, store: Store) -> Worker | Coordinator:
    """Returns the core behind the last event; raises what it raises, and `NotReplayable`."""
    dump = _decode(data)
    if not dump.whole:
        raise NotReplayable("its first events were dropped: there were too many, or they were too large")
    if dump.app != app.name:
        raise NotReplayable(f"it is of app {dump.app!r}, and this is {app.name!r}")
    for number, dumped in enumerate(dump.events):
        if dumped.encoded is None:
            raise NotReplayable(f"event {number} could not be encoded: {dumped.text}")
    return (
        _coordinator(dump, dump.core)
        if isinstance(dump.core, CoordinatorCore)
        else _worker(dump, dump.core, app, store)
    )


def _events(dump: Dump, types: Mapping[str, Any]) -> Iterator[Any]:
    for dumped in dump.events:
        assert dumped.encoded is not None
        yield msgspec.msgpack.decode(dumped.encoded, type=types[dumped.type])


def _worker(dump: Dump, made_of: WorkerCore, app: App, store: Store) -> Worker:
    worker = Worker(made_of.worker, app, made_of.n_slots, made_of.limits, Notes())
    wanted: LoadState | None = None
    for event in _events(dump, _OF_WORKER):
        if isinstance(event, KeptLoad):
            assert wanted is not None, "a load that was not asked for"
            event = _loaded(wanted, event, store)  # noqa: PLW2901 - what the core took
        effects: list[Effect] = with_own_generators(worker.step, event)
        wanted = next((effect for effect in effects if isinstance(effect, LoadState)), wanted)
    return worker


def _coordinator(dump: Dump, made_of: CoordinatorCore) -> Coordinator:
    core, runtime = made_of.made(), made_of.recorded_runtime
    step: Callable[[Any], object] = core.step if runtime is None else ControlPlane(core, dump.app, runtime).step
    for event in _events(dump, _OF_COORDINATOR):
        step(event)
    return core


def _loaded(wanted: LoadState, kept: KeptLoad, store: Store) -> StateLoaded:
    given = GivenReplies(kept.answered, kept.answered_until)
    loaded = state_of(wanted, store, lambda: Behind(kept.plans, given))
    loaded.outcomes, loaded.aside = kept.outcomes, kept.aside
    return loaded


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("dump", "app", "objects"):
        parser.add_argument(name)
    options = parser.parse_args()
    replay(Path(options.dump).read_bytes(), load_app(options.app), DirectoryStore(Path(options.objects)))
    sys.exit("the core has taken all events and has not failed")


if __name__ == "__main__":
    main()
