"""A worker's effects, each carried out over ports, and the events that they come back as."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from styx.host.ports import Objects, WorkerPorts
from styx.host.worker_host import WorkerHost
from styx.messages import ReplyRecord
from styx.protocol.frames import Frame
from styx.protocol.messages import EpochStarted
from styx.sequencer.epoch_record import ExternalRecord
from styx.worker.events import (
    AppendEpochRecord,
    AppendExternal,
    AppendVerdicts,
    Effect,
    EmitReplies,
    ExternalAppended,
    ExternalReturned,
    LoadState,
    NotResumed,
    RecordDurable,
    RepliesDurable,
    ReplyDiffers,
    ReportEnds,
    ReportPoison,
    RunExternal,
    SendFrame,
    SlotContent,
    SlotPartsStored,
    StateLoaded,
    StateUnusable,
    StoreSlots,
    SyncReplies,
    Tell,
)
from tests.host.world import WorkerWorld

REPLY = ReplyRecord("r0", 1, 1, 0, 1, b"\x01", None)
INTENT, OUTCOME = (AppendExternal(2, 0, ExternalRecord(1, b"key", outcome)) for outcome in (None, b"mine"))
CALL = RunExternal(2, 1, 0, b"key", print)
LOAD = LoadState(2, [0], None)


@pytest.fixture
def world() -> WorkerWorld:
    return WorkerWorld()


@pytest.fixture
def host(world: WorkerWorld) -> WorkerHost:
    ports = WorkerPorts(world, world, Objects(world.store, world.submit), world, world, world, world)
    return WorkerHost(world, ports, world.given.append)


def test_every_effect_is_carried_out(host: WorkerHost) -> None:
    assert set(host._do) == set(get_args(Effect))


@pytest.mark.parametrize(
    "effect",
    [
        SendFrame(1, Frame(2, 9, 0, [])),
        ReportEnds(),
        EmitReplies(0, [REPLY]),
        ReplyDiffers(0, REPLY, b"", None),
        NotResumed(0, 1),
        ReportPoison(0, 5, "no request"),
    ],
    ids=lambda effect: type(effect).__name__,
)
def test_what_has_no_answer(host: WorkerHost, world: WorkerWorld, effect: Effect) -> None:
    host.do(effect)
    assert (world.asked, world.given) == ([effect], [])


def test_a_message_to_the_coordinator(host: WorkerHost, world: WorkerWorld) -> None:
    host.do(Tell(EpochStarted(2, 9)))
    assert world.asked == [EpochStarted(2, 9)]


@pytest.mark.parametrize(
    ("effect", "arguments", "answer"),
    [
        (AppendEpochRecord(2, 9, b"record"), (), RecordDurable(2, 9)),
        (AppendVerdicts(2, 9, b"verdicts"), (), RecordDurable(2, 9)),
        (INTENT, (None,), ExternalAppended(2, b"key", None)),
        (OUTCOME, (b"first",), ExternalAppended(2, b"key", b"first")),
        (CALL, (b"outcome",), ExternalReturned(2, b"key", b"outcome")),
        (LOAD, (StateUnusable(2, "damaged"),), StateUnusable(2, "damaged")),
        (LOAD, (StateLoaded(2, 9, 4, {}, [], {}),), StateLoaded(2, 9, 4, {}, [], {})),
    ],
    ids=["record", "verdicts", "intent", "outcome", "call", "unusable", "state"],
)
def test_an_answer_comes_when_it_is_done(
    host: WorkerHost, world: WorkerWorld, effect: Effect, arguments: tuple[Any, ...], answer: Any
) -> None:
    host.do(effect)
    assert (world.asked, world.given) == ([effect], [])
    assert world.happens(*arguments) == [answer]


def test_replies_are_waited_for(host: WorkerHost, world: WorkerWorld) -> None:
    host.do(SyncReplies(2, 9))
    assert (world.asked, world.given) == (["replies"], [])
    assert world.happens() == [RepliesDurable(2, 9)]


def test_parts_count_when_the_store_has_them(host: WorkerHost, world: WorkerWorld) -> None:
    host.do(StoreSlots(2, 9, 0, [SlotContent(0, {"entity": {"a": b"1"}}, False, 3, [])]))
    assert (world.store.list(""), world.given) == ([], [])
    (answer,) = world.happens()
    assert isinstance(answer, SlotPartsStored)
    assert answer.parts is not None
    (part,) = answer.parts
    assert (part.slot, part.next_offset, part.epochs_offset, part.replies) == (0, 3, 7, {0: 5})
    assert part.stored is not None
    assert world.store.list("") == [part.stored.name]


def test_a_store_that_is_given_up_has_no_parts(host: WorkerHost, world: WorkerWorld) -> None:
    world.store_fails = True
    host.do(StoreSlots(2, 9, 0, [SlotContent(0, {"entity": {"a": b"1"}}, False, 3, [])]))
    assert world.happens() == [SlotPartsStored(2, 9, None)]


def test_ends_of_the_logs_are_those_of_when_it_was_asked_for(
    host: WorkerHost, world: WorkerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is appended while the parts are on their way is replayed, and not skipped."""
    host.do(StoreSlots(2, 9, 0, [SlotContent(0, {}, False, 3, [])]))
    monkeypatch.setattr(world, "ends", None)
    (answer,) = world.happens()
    assert answer.parts[0].epochs_offset == 7
