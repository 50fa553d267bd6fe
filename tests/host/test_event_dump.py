"""The dump of the last events: what it says, and who may read it."""

from __future__ import annotations

import os
import stat
import tempfile
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from styx.host import passes
from styx.host.event_dump import Dump, WorkerCore, _pieces, dump_of, event_text, temporary_path, write_dump
from styx.host.event_log import EventLog, KeptLoad
from styx.host.passes import settle
from styx.model.limits import Limits
from styx.protocol.messages import Join, Recover
from styx.state.slot_state import SlotState
from styx.worker.events import CheckFurther, CoordinatorSaid, Event, Halted, LoadedSlot, StateLoaded
from tests.protocol.scripted_app import app

CORE = WorkerCore(3, 2, Limits())
RECOVER = CoordinatorSaid(Recover(1, {0: 0}, None))


def step(event: Any) -> None:
    """The worker's."""


def another(event: Any) -> None:
    """The coordinator's."""


def dump(*events: Event) -> Dump:
    error = ValueError("broken")
    error.add_note("at its wits' end")
    log = EventLog()
    settle(deque([(another if isinstance(event, CheckFurther) else step, event, 0) for event in events]), log)
    return msgspec.msgpack.decode(dump_of(app.name, CORE, log.of(step), error), type=Dump)


def test_a_dump_says_whose_it_is_and_what_failed() -> None:
    made = dump(RECOVER)
    assert (made.app, made.core) == (app.name, CORE)
    assert made.failure == "ValueError: broken\nat its wits' end"


def test_it_begins_with_the_worker_s_generation() -> None:
    made = dump(CoordinatorSaid(Join(0, 0)), RECOVER, CoordinatorSaid(Join(1, 0)), CheckFurther(1))
    assert ([event.type for event in made.events], made.whole) == (["CoordinatorSaid", "CoordinatorSaid"], True)


def test_it_is_not_whole_if_the_beginning_was_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "EVENTS_MAX", 1)
    assert not dump(RECOVER, CoordinatorSaid(Join(1, 0))).whole


def test_each_process_has_a_file_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/folder")
    assert temporary_path("a/../b c-coordinator") == Path("/folder/styx-a____b_c-coordinator.events")

    def nowhere() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    assert temporary_path("app") is None


def test_state_is_left_out_and_what_the_log_said_is_there() -> None:
    slot = LoadedSlot(SlotState(), 7, [])
    (event,) = dump(StateLoaded(1, 4, 9, {0: slot}, [], {5: b"r"}, (4, 1), {b"k": b"o"}, {(0, 3)})).events
    assert event.encoded is not None
    load = msgspec.msgpack.decode(event.encoded, type=KeptLoad)
    assert load == KeptLoad(1, [], {5: b"r"}, (4, 1), {b"k": b"o"}, {(0, 3)})


def test_an_event_that_cannot_be_encoded_is_there_as_text() -> None:
    (event,) = dump(Halted(object())).events  # type: ignore[arg-type]
    assert (event.type, event.encoded) == ("Halted", None)
    assert event.text.startswith("Halted(halted=<object")


class Arrived(NamedTuple):
    offset: int
    payload: bytes


@pytest.mark.parametrize(
    "value",
    [
        RECOVER,
        StateLoaded(1, 4, 9, {}, [], {5: b"r", 6: 7}, (4, 1), {b"k": b"o"}, {(0, 3)}),
        [Arrived(1, b"x"), ((), (1,), (1, 2), [], set(), frozenset(), frozenset({"it's"}), {}, None, 1.5)],
    ],
    ids=["message", "load", "values"],
)
def test_the_text_of_a_small_event_is_its_repr(value: object) -> None:
    assert event_text(value, 1_000) == repr(value)
    assert event_text(value, len(repr(value))) == repr(value)
    assert event_text(value, 20) == repr(value)[:20] + "…"


def test_the_text_of_a_large_event_looks_at_its_beginning_only() -> None:
    looked_at: list[int] = []

    class Part:
        def __repr__(self) -> str:
            looked_at.append(1)
            return "part"

    for many in ([Part()] * 10_000, dict.fromkeys(range(10_000), Part()), {"slots": [[Part()] * 10_000]}):
        assert len(event_text(Halted(many), 100)) == 101  # type: ignore[arg-type]
    assert len(looked_at) < 100
    assert len("".join(_pieces(b"x" * 1_000_000, 100, 0))) < 110
    nested: list[Any] = []
    for _ in range(10_000):
        nested = [nested]
    assert event_text(nested, 1_000) == "[" * 21 + "…" + "]" * 21


def test_others_cannot_read_a_dump_nor_have_it_written_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "failure.events"
    write_dump(path, b"one")
    write_dump(path, b"2")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"2", 0o600)
    for make in (lambda name: name.symlink_to(path), lambda name: name.hardlink_to(path), os.mkfifo, _open_to_all):
        other = tmp_path / "other"
        make(other)
        write_dump(other, b"three")
        assert (other.read_bytes(), stat.S_IMODE(other.lstat().st_mode)) == (b"three", 0o600)
        assert path.read_bytes() == b"2"
        other.unlink()
    (tmp_path / "folder" / "full").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        write_dump(tmp_path / "folder", b"four")
    assert {each.name for each in tmp_path.iterdir()} == {"failure.events", "folder"}, "nothing half is left"


def _open_to_all(path: Path) -> None:
    path.write_bytes(b"old")
    path.chmod(0o666)
