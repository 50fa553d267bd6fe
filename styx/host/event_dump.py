"""The dump of the last events that a failed core leaves: the file's format, and how it is written.

A dump holds what the log of events (`styx.host.event_log`) has of the core, and what the core was made of. If no event
was dropped, a fresh core that gets them fails in the same way (`proof.replayed_events`): a failure that comes again at
each recovery is of this kind. Loaded state is not in a dump: the store still has the snapshot of it.
"""

from __future__ import annotations

import dataclasses
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from styx.coordinator.coordinator import Coordinator
from styx.model.limits import Limits
from styx.version import __version__

TEXT_CHARS_MAX: Final = 200
"""The length of an event's text in a dump."""
TEXT_DEPTH_MAX: Final = 20
"""Values within values are shown so deep, then as an ellipsis."""
_BRACKETS: Final[dict[type, tuple[str, str]]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    dict: ("{", "}"),
}
_UNFIT_FOR_A_FILE: Final = re.compile(r"[^A-Za-z0-9-]")


class DumpedEvent(msgspec.Struct, array_like=True):
    """`encoded` is None for an event that cannot be encoded: it is there as `text` only."""

    type: str
    text: str
    encoded: bytes | None


class WorkerCore(msgspec.Struct, tag="worker"):
    """What a fresh worker is made of."""

    worker: int
    n_slots: int
    limits: Limits


class CoordinatorCore(msgspec.Struct, tag="coordinator"):
    """What a fresh coordinator is made of: as `Coordinator` and `ControlPlane` take it; `recorded_runtime` None: there
    is no control plane.
    """

    n_slots: int
    workers: int | None
    snapshot_interval_s: float
    silence_max_s: float | None = None
    grace_s: float | None = None
    recorded_runtime: str | None = None

    def made(self) -> Coordinator:
        """A fresh one."""
        return Coordinator(self.n_slots, self.workers, self.snapshot_interval_s, self.silence_max_s, self.grace_s)


Core = WorkerCore | CoordinatorCore


class Dump(msgspec.Struct):
    """`whole`: the events go back to the beginning of the core, or of a worker's generation. `failure` is the error's
    text and notes.
    """

    release: str
    failure: str
    app: str
    core: Core
    whole: bool
    events: list[DumpedEvent]


def leave_dump(path: Path, app: str, core: Core, events: tuple[list[Any], bool], error: Exception) -> None:
    """Writes what `EventLog.of` gives. A note of the error says where it is, or why it could not be written."""
    try:
        write_dump(path, dump_of(app, core, events, error))
    except Exception as another:  # noqa: BLE001 - the first error counts, whatever comes of the dump
        error.add_note(f"its last events could not be written to {path}: {another}")
    else:
        error.add_note(f"its last events are in {path}: developers of the engine can replay them")


def dump_of(app: str, core: Core, events: tuple[list[Any], bool], error: BaseException) -> bytes:
    """What `EventLog.of` gives, as an encoded `Dump`."""
    failure = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    dumped, whole = [_dumped(event) for event in events[0]], events[1]
    return msgspec.msgpack.encode(Dump(__version__, failure, app, core, whole, dumped))


def temporary_path(name: str) -> Path | None:
    """The dump's file in the folder for temporary files: one for all processes of this name on this machine, so that
    restarts do not add up.
    """
    try:
        return Path(tempfile.gettempdir()) / f"styx-{_UNFIT_FOR_A_FILE.sub('_', name)}.events"
    except FileNotFoundError:  # no folder can be written to
        return None


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


def event_text(event: object, chars_max: int) -> str:
    """`repr(event)`, up to so many characters and an ellipsis. It takes no longer for an event of gigabytes."""
    pieces: list[str] = []
    left = chars_max
    for piece in _pieces(event, chars_max, 0):
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            return "".join(pieces)[:chars_max] + "…"
    return "".join(pieces)


def _pieces(value: Any, chars_max: int, depth: int) -> Iterator[str]:
    """The parts of the value's text. A long str or bytes gives more than `chars_max` characters, and not all."""
    kind, names = type(value), _field_names(value)
    if kind in (str, bytes):
        yield repr(value[: chars_max + 1])
    elif depth > TEXT_DEPTH_MAX:
        yield "…"
    elif names is not None:
        yield f"{kind.__name__}("
        for number, name in enumerate(names):
            yield f", {name}=" if number else f"{name}="
            yield from _pieces(getattr(value, name), chars_max, depth + 1)
        yield ")"
    elif not value or kind not in _BRACKETS:
        yield repr(value)
    elif kind is dict:
        for number, (key, item) in enumerate(value.items()):
            yield ", " if number else "{"
            yield from _pieces(key, chars_max, depth + 1)
            yield ": "
            yield from _pieces(item, chars_max, depth + 1)
        yield "}"
    else:
        opening, closing = _BRACKETS[kind]
        for number, item in enumerate(value):
            yield ", " if number else opening
            yield from _pieces(item, chars_max, depth + 1)
        yield ",)" if kind is tuple and len(value) == 1 else closing


def _field_names(value: Any) -> Sequence[str] | None:
    """Of a record: a Struct, a dataclass or a named tuple."""
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value)]
    return getattr(value, "_fields", None) if isinstance(value, tuple) else None


def _dumped(event: object) -> DumpedEvent:
    name, text = type(event).__name__, event_text(event, TEXT_CHARS_MAX)
    try:
        return DumpedEvent(name, text, msgspec.msgpack.encode(event))
    except (TypeError, ValueError, msgspec.MsgspecError):
        return DumpedEvent(name, text, None)
