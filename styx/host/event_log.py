"""The dump of a process's last events that a failed pass leaves (`styx.host.passes`).

A dump holds the worker's events since its generation began. If none of
these was dropped, a fresh core that gets them fails in the same way (`proof.replayed_events`): a failure that comes
again at each recovery is of this kind. Loaded state is not in a dump: the store still has the snapshot of it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from styx.model.limits import Limits
from styx.protocol.messages import Reached, Recover
from styx.sequencer.epoch_record import EpochPlan
from styx.version import __version__
from styx.worker.events import CoordinatorSaid, Event, StateLoaded
from styx.worker.worker import Worker

TEXT_CHARS_MAX: Final = 200

Step = Callable[[Any], object]
"""Gives a core an event and carries out its effects."""
Item = tuple[Step, Any, int]
"""(the step that takes it, the event, its bytes)."""


class DumpedEvent(msgspec.Struct, array_like=True):
    """`encoded` is None for an event that cannot be encoded: it is there as `text` only."""

    type: str
    text: str
    encoded: bytes | None


class DumpedLoad(msgspec.Struct):
    """`StateLoaded` without the slots, which the snapshot has."""

    plans: list[EpochPlan]
    answered: dict[int, bytes | int]
    answered_until: Reached
    outcomes: Mapping[bytes, bytes]
    aside: list[tuple[int, int]]


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


def dump_of(items: Iterable[Item], worker: Worker, step: Step, error: BaseException) -> bytes:
    """The events of `worker`, which `step` takes, as an encoded `Dump`."""
    events: list[Event] = [event for taker, event, _ in items if taker == step]
    begins = [index for index, event in enumerate(events) if _begins(event)]
    failure = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    dumped = [_dumped(event) for event in events[begins[-1] if begins else 0 :]]
    name, limits = worker.app.name, worker.limits
    dump = Dump(__version__, failure, name, worker.n_slots, limits, worker.id, bool(begins), dumped)
    return msgspec.msgpack.encode(dump)


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


def _begins(event: Event) -> bool:
    return isinstance(event, CoordinatorSaid) and isinstance(event.message, Recover)


def _dumped(event: Event) -> DumpedEvent:
    name, said = type(event).__name__, event
    if isinstance(event, StateLoaded):
        said = DumpedLoad(event.plans, event.answered, event.answered_until, event.outcomes, [*event.aside])  # type: ignore[assignment]
    text = repr(said)[:TEXT_CHARS_MAX]
    try:
        return DumpedEvent(name, text, msgspec.msgpack.encode(said))
    except (TypeError, ValueError, msgspec.MsgspecError):
        return DumpedEvent(name, text, None)
