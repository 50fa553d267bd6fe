"""`python -m proof.replayed_events DUMP MODULE:APP OBJECTS`: gives a fresh core the events that a failed worker left.

OBJECTS is the `objects` folder of a data directory: the snapshot that the worker's generation began on
is read from there. The core fails as it failed there, under a debugger if wanted. Functions that the watchdog ended are
not among the events: a dump behind such an end may go another way.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final, get_args

import msgspec

from styx.cli.app_target import load_app
from styx.host.event_dump import Dump
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

_TYPES: Final = {each.__name__: each for each in (*get_args(Event), KeptLoad)}
_decode: Final = msgspec.msgpack.Decoder(Dump).decode


class NotReplayable(Exception):
    """The dump has not all that led to the failure."""


def replay(data: bytes, app: App, store: Store) -> Worker:
    """Returns the worker behind the last event; raises what it raises, and `NotReplayable`."""
    dump = _decode(data)
    if not dump.whole:
        raise NotReplayable("its first events were dropped: there were too many, or they were too large")
    if dump.app != app.name:
        raise NotReplayable(f"it is of app {dump.app!r}, and this is {app.name!r}")
    worker = Worker(dump.worker, app, dump.n_slots, dump.limits, Notes())
    wanted: LoadState | None = None
    for number, dumped in enumerate(dump.events):
        if dumped.encoded is None:
            raise NotReplayable(f"event {number} could not be encoded: {dumped.text}")
        event = msgspec.msgpack.decode(dumped.encoded, type=_TYPES[dumped.type])
        if isinstance(event, KeptLoad):
            assert wanted is not None, "a load that was not asked for"
            event = _loaded(wanted, event, store)
        effects: list[Effect] = with_own_generators(worker.step, event)
        wanted = next((effect for effect in effects if isinstance(effect, LoadState)), wanted)
    return worker


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
