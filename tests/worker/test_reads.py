"""Reads outside the log on one worker, at every step of the protocol: each gives the state at the end of its epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple, cast

import pytest

from benchmarks.micro.engine_loop import EngineLoop
from proof.chaos_app import app as chaos_app
from proof.random_looks import random_look
from proof.random_requests import CONTENDED, MIXED, Profile, random_load, random_near, random_request
from proof.random_rows import random_row_look, random_rows
from proof.random_sweeps import random_survey, random_sweep
from styx.errors import BadKey
from styx.messages import Request, decode_reply, encode_request
from styx.model.app import App
from styx.model.freshness import Freshness
from styx.model.limits import Limits
from styx.model.request import AppRouter
from styx.protocol.reads import READ_NUMBERS, PartFailed, PartReturned
from styx.testing.history import check_history
from styx.testing.reads import ReadSeen
from styx.values.codec import decode_plain, encode_strict
from styx.worker import reads
from styx.worker.events import Proceed, ReportLeft, Step
from styx.worker.reads import TOO_OLD, ReadEnded, Reads, ReadWanted, closed_epoch, least_epoch
from styx.worker.worker import Worker
from tests.plain_form import plain_form

N_SLOTS = 2


class Stepping(EngineLoop):
    """An engine whose every step is looked at: `looks` are called behind each of them, in the step that it left."""

    def __init__(self, app: App, n_slots: int = N_SLOTS, limits: Limits | None = None) -> None:
        self.looks: list[Callable[[], None]] = []
        super().__init__(app, n_slots, limits)
        self.reads = Reads(self.worker)

    def _settle(self) -> None:
        worker, events, do = self.worker, self._events, self._host.do
        while events or worker.runnable:
            for effect in worker.step(events.popleft() if events else Proceed()):
                if not isinstance(effect, ReportLeft):
                    do(effect)
            for look in self.looks:
                look()


class Reader:
    """Asks reads of an engine, and keeps what has come of them, by id."""

    def __init__(self, engine: Stepping) -> None:
        self.engine = engine
        self.asked: dict[int, ReadWanted] = {}
        self.ended: dict[int, ReadEnded] = {}
        self.steps: dict[int, Step] = {}

    def ask(self, request: Request, at_least: int = -1, at: int | None = None) -> int:
        its_id = len(self.asked)
        wanted = self.asked[its_id] = ReadWanted(its_id, request, READ_NUMBERS + its_id, 1_000 * its_id, at_least, at)
        self.engine.reads.ask(wanted)
        return its_id

    def run(self, invocations: int = 1_000, rounds: int = 1_000) -> None:
        reads = self.engine.reads
        while reads.runnable and rounds:
            rounds -= 1
            for ended in reads.run(invocations):
                assert isinstance(ended, ReadEnded), "there is no other worker"
                self.ended[ended.id] = ended
                self.steps[ended.id] = self.engine.worker.reached

    def seen(self) -> Iterator[ReadSeen]:
        """The reads that have ended and have read something."""
        for its_id, ended in self.ended.items():
            wanted, end = self.asked[its_id], ended.end
            place = ended.epoch, wanted.number, wanted.timestamp_us, wanted.request
            if isinstance(end, PartReturned):
                yield ReadSeen(*place, end.value, None)
            elif end.code != TOO_OLD:
                yield ReadSeen(*place, None, (end.code, end.kind, end.message))


def random_write(rng: Random, profile: Profile, name: str, n_slots: int = N_SLOTS) -> Request:
    """A request that may write, of any kind."""
    kind = rng.random()
    if kind < 0.4:
        return random_rows(rng, name)
    if kind < 0.5:
        return random_sweep(rng, name)
    if kind < 0.55:
        return random_load(rng, profile, n_slots, name)
    return random_near(rng, profile, n_slots, name) if kind < 0.7 else random_request(rng, profile, name)


def placed(request: Request, n_slots: int = N_SLOTS) -> tuple[int, bytes]:
    """A request and its slot, 0 for one that is wrong in itself."""
    key = tuple(request.key) if isinstance(request.key, list) else request.key
    try:
        slot = AppRouter(chaos_app, n_slots).place(request.operator, key)[1]
    except BadKey:
        slot = 0
    return slot, encode_request(request)


def _look(rng: Random, profile: Profile) -> Request:
    kind = rng.random()
    if kind < 0.4:
        return random_row_look(rng, "look")
    return random_survey(rng, "look") if kind < 0.6 else random_look(rng, profile, "look")


@pytest.mark.parametrize("profile", [CONTENDED, MIXED])
@pytest.mark.parametrize("seed", range(6))
def test_each_read_is_the_serial_execution_at_the_end_of_its_epoch(seed: int, profile: Profile) -> None:
    rng = Random(f"reads {seed} {profile.keys}")
    engine = Stepping(chaos_app)
    reader = Reader(engine)

    def look() -> None:
        closed = closed_epoch(engine.worker)
        if rng.random() < 0.5:
            reader.ask(_look(rng, profile), at=max(0, closed - rng.randrange(6)) if rng.random() < 0.6 else None)
        if rng.random() < 0.1:
            reader.ask(_look(rng, profile), at_least=closed + 1)
        reader.run(rng.randrange(1, 8), rng.randrange(1, 5))

    engine.looks.append(look)
    sent: dict[str, tuple[Request, int]] = {}
    replies: list[bytes] = []
    for number in range(25):
        batch = [random_write(rng, profile, f"r{number}.{each}") for each in range(6)]
        sent.update({request.request_id: (request, 0) for request in batch})
        replies += engine.run(list(map(placed, batch)))
    reader.run()
    steps = set(reader.steps.values())
    assert {Step.EXECUTING, Step.LOCKING, Step.IDLE} <= steps, steps
    seen = list(reader.seen())
    assert len(seen) > 50
    check_history(chaos_app, sent, map(decode_reply, replies), n_slots=N_SLOTS, reads=seen)


# How new it is -------------------------------------------------------------------------------------------------


def asks_at_each_step(freshness: Callable[[int], Freshness]) -> set[Step]:
    """Asks a read behind each step; `freshness` is told the largest epoch of any reply so far. Gives the steps in which
    a reply of the open epoch was there already.
    """
    engine = Stepping(chaos_app)
    reader, rng = Reader(engine), Random("fence")
    newest, ahead, expected = [-1], set[Step](), dict[int, int]()

    def look() -> None:
        newest[0] = max([newest[0], *[decode_reply(data).epoch for data in engine.replies]])
        if newest[0] > closed_epoch(engine.worker):
            ahead.add(engine.worker.reached)
        asked = reader.ask(_look(rng, CONTENDED), at_least=least_epoch(engine.worker, freshness(newest[0])))
        expected[asked] = newest[0]
        reader.run(5, 3)

    engine.looks.append(look)
    for number in range(20):
        engine.run([placed(random_write(rng, CONTENDED, f"r{number}.{each}")) for each in range(6)])
    reader.run()
    assert reader.ended.keys() == expected.keys()
    for asked, ended in reader.ended.items():
        assert ended.epoch >= expected[asked], "a read is older than a reply that was there before it was asked"
    return ahead


def strict(newest: int) -> Freshness:
    return Freshness("strict")


def in_session(newest: int) -> Freshness:
    return Freshness("session", newest)


@pytest.mark.parametrize("freshness", [strict, in_session])
def test_a_read_sees_what_was_answered_before(freshness: Callable[[int], Freshness]) -> None:
    assert asks_at_each_step(freshness) >= {Step.LOCKING}


@plain_form
def test_it_would_not_without_the_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "answered_epoch", closed_epoch)
    with pytest.raises(AssertionError, match="older than a reply"):
        asks_at_each_step(strict)


def test_it_would_not_without_the_token() -> None:
    with pytest.raises(AssertionError, match="older than a reply"):
        asks_at_each_step(lambda newest: Freshness("session", -1))


def test_the_newest_state_is_older_than_some_replies() -> None:
    with pytest.raises(AssertionError, match="older than a reply"):
        asks_at_each_step(lambda newest: Freshness("latest"))


@pytest.mark.parametrize(
    ("epoch", "reached", "recorded_until", "closed"),
    [
        (7, Step.LOADED, 7, -2),
        (6, Step.IDLE, 7, -2),
        (7, Step.LOCKING, 7, -2),
        (7, Step.IDLE, 7, 7),
        (8, Step.LOCKING, 7, 7),
        (8, Step.IDLE, 7, 8),
        (0, Step.EXECUTING, -1, -1),
    ],
)
def test_what_was_read_before_a_recovery_is_not_taken_back(
    epoch: int, reached: Step, recorded_until: int, closed: int
) -> None:
    """Nothing closes before the last recorded epoch has, whose end somebody may have read."""
    assert closed_epoch(cast(Worker, Recovering(epoch, reached, recorded_until))) == closed


# What is kept --------------------------------------------------------------------------------------------------


class Recovering(NamedTuple):
    epoch: int
    reached: Step
    recorded_until: int


def deposits(number: int) -> list[tuple[int, bytes]]:
    """Requests that write one entity."""
    return [placed(Request(f"d{number}", "number", 1, "run", encode_strict([[["add", 1]]])))]


def sees(engine: Stepping, at: int | None = None) -> int | str:
    """What a read of the entity gives, or the code of its failure."""
    reader = Reader(engine)
    asked = reader.ask(Request("look", "number", 1, "look", encode_strict([[["read"]]])), at=at)
    reader.run()
    end = reader.ended[asked].end
    return end.code if isinstance(end, PartFailed) else int(decode_plain(end.value or b""))


def test_nothing_is_kept_before_somebody_reads() -> None:
    engine = Stepping(chaos_app)
    engine.run(deposits(0))
    versions = engine.worker.generation_data.versions
    assert versions.oldest is None
    assert sees(engine) == 1
    assert versions.oldest == 0
    assert sees(engine, at=-1) == TOO_OLD
    engine.run(deposits(1))
    assert (sees(engine), sees(engine, at=0), versions.n_images) == (2, 1, 1)


def test_what_is_too_old_is_dropped_and_said() -> None:
    engine = Stepping(chaos_app, limits=Limits(versions_max=2))
    sees(engine)
    for number in range(5):
        engine.run(deposits(number))
    assert [sees(engine, at=epoch) for epoch in range(5)] == [TOO_OLD, TOO_OLD, 3, 4, 5]
    assert engine.reads.too_old == 2


def test_a_read_that_lasts_longer_than_the_versions_begins_again() -> None:
    """One that reads any state may take a newer one; one at an epoch may not."""
    engine = Stepping(chaos_app, limits=Limits(versions_max=2))
    reader = Reader(engine)
    slow = [["look", "sync", ["at", 1, 1], [["read"]]]] * 4
    long = Request("long", "number", 1, "look", encode_strict([slow]))
    asked, at = reader.ask(long), reader.ask(long, at=-1)
    reader.run(2, rounds=1)
    for number in range(4):
        engine.run(deposits(number))
    reader.run()
    ended, failed = reader.ended[asked], reader.ended[at].end
    assert isinstance(ended.end, PartReturned)
    assert (ended.epoch, decode_plain(ended.end.value or b"")) == (3, 4)
    assert isinstance(failed, PartFailed)
    assert failed.code == TOO_OLD


def test_those_that_are_cancelled_leave_nothing() -> None:
    engine = Stepping(chaos_app)
    reader = Reader(engine)
    for epoch in range(1_000):
        engine.reads.cancel(reader.ask(Request("look", "number", 1, "look", encode_strict([[]])), at_least=epoch + 5))
    assert len(engine.reads) == 0
    assert len(engine.reads._waiting) < 200
    assert sees(engine) == 0


def test_what_may_write_is_refused_before_it_runs() -> None:
    engine = Stepping(chaos_app)
    reader = Reader(engine)
    asked = reader.ask(Request("write", "number", 1, "run", encode_strict([[["add", 1]]])))
    unknown = reader.ask(Request("unknown", "number", 1, "nothing", encode_strict([])))
    reader.run()
    ends = [reader.ended[each].end for each in (asked, unknown)]
    assert [end.code for end in ends if isinstance(end, PartFailed)] == ["not_read_only", "unknown_function"]
    assert sees(engine) == 0
