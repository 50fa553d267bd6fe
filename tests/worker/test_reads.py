"""Reads outside the log on one worker, at every step of the protocol: each gives the state at the end of its epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

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
from styx.model.limits import Limits
from styx.model.request import AppRouter
from styx.protocol.reads import READ_NUMBERS, PartReturned
from styx.testing.history import check_history
from styx.testing.reads import ReadSeen
from styx.worker.events import Proceed, ReportLeft, Step
from styx.worker.reads import TOO_OLD, ReadEnded, Reads, ReadWanted, closed_epoch

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
