"""The dump of a worker's events that a failed pass leaves: the file's format, and how it is written.

A dump holds what the log of events (`styx.host.event_log`) has of the worker's generation. If no event was dropped, a
fresh core that gets them fails in the same way (`proof.replayed_events`): a failure that comes again at each recovery
is of this kind. Loaded state is not in a dump: the store still has the snapshot of it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from styx.host.event_log import EventLog, Step
from styx.model.limits import Limits
from styx.version import __version__
from styx.worker.worker import Worker

TEXT_CHARS_MAX: Final = 200


class DumpedEvent(msgspec.Struct, array_like=True):
    """`encoded` is None for an event that cannot be encoded: it is there as `text` only."""

    type: str
    text: str
    encoded: bytes | None


class Dump(msgspec.Struct):
    """`whole`: the events go back to the beginning of the generation. `failure` is the error's text and notes."""

    release: str
    failure: str
    app: str
    n_slots: int
    limits: Limits
    worker: int
    whole: bool
    events: list[DumpedEvent]


def dump_of(log: EventLog, worker: Worker, step: Step, error: BaseException) -> bytes:
    """The events of `worker`, which `step` takes, as an encoded `Dump`."""
    events, whole = log.of(step)
    failure = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    dumped = [_dumped(event) for event in events]
    name, limits = worker.app.name, worker.limits
    return msgspec.msgpack.encode(Dump(__version__, failure, name, worker.n_slots, limits, worker.id, whole, dumped))


def write_dump(path: Path, dump: bytes) -> None:
    """Only its owner may read it, as it holds requests; what stood there before is replaced. Raises `OSError`."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with open(number, "wb") as file:
            file.write(dump)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _dumped(event: object) -> DumpedEvent:
    name, text = type(event).__name__, repr(event)[:TEXT_CHARS_MAX]
    try:
        return DumpedEvent(name, text, msgspec.msgpack.encode(event))
    except (TypeError, ValueError, msgspec.MsgspecError):
        return DumpedEvent(name, text, None)
