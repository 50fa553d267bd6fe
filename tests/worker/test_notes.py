"""What workers note of transactions that end: once, of the run that counted, on any number of workers."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from styx.model.limits import Limits
from styx.worker.notes import Notes
from styx.worker.worker import Worker
from tests.protocol.cluster import Cluster, script_request
from tests.protocol.process import Process
from tests.protocol.scripted_app import app, slot_digit

SLOTS = 3
FAILING = ("need 40; add -30", "fail a", "add 5; fail b", "ask b1 (fail c)", "send c2 (need 60; add -1)")
FINE = ("add 1", "add 10; send b1 (add 1)", "ask c2 (add 2); add 1", "get")


class Noted(Cluster):
    """A cluster whose workers take notes; a worker that is started again keeps them, as a file would."""

    def __init__(self, workers: int) -> None:
        self.notes = {worker: Notes(all_aborts=True) for worker in range(workers)}
        super().__init__(workers, SLOTS, Limits(), 1e9, workers)

    def start_worker(self, worker: int) -> None:
        notes = self.notes[worker]
        self.processes[worker] = Process(self, Worker(worker, app, self.n_slots, self.limits, notes))
        self.connect(worker)

    def settle(self) -> None:
        for _ in self.deliveries():
            pass

    def request(self, request_id: str, key: str, script: str) -> None:
        self.storage.append_request(slot_digit(key), script_request(request_id, key, script, ""))

    def told(self) -> Counter[tuple[int, str]]:
        """(TID, text of the error) of all notes."""
        return Counter((note.tid, note.message) for notes in self.notes.values() for note in notes.aborts)

    def aborted(self) -> Counter[tuple[int, str]]:
        """The same of the replies."""
        return Counter((reply.tid, reply.error[2]) for reply in self.storage.replies if reply.error is not None)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_each_abort_is_told_once(workers: int, seed: int) -> None:
    rng = random.Random(seed)
    cluster = Noted(workers)
    cluster.settle()
    for burst in range(4):
        for number in range(12):
            script = rng.choice(FAILING if rng.random() < 0.5 else FINE)
            cluster.request(f"r{burst}-{number}", rng.choice(("a0", "b1", "c2")), script)
        for slot in range(SLOTS):
            cluster.feed(slot)
        cluster.settle()
    assert cluster.at_rest
    aborted = cluster.aborted()
    assert len(aborted) > 5
    assert cluster.told() == aborted


def test_a_replay_tells_only_what_may_not_have_been_told() -> None:
    cluster = Noted(1)
    cluster.settle()
    cluster.request("r0", "a0", "fail first")
    cluster.feed(0)
    cluster.settle()
    [first] = cluster.notes[0].aborts
    assert (first.message, first.replayed) == ("first", False)
    cluster.notes[0].take()
    cluster.kill(0)
    cluster.start_worker(0)
    cluster.settle()
    assert cluster.notes[0].empty
    cluster.request("r1", "a0", "fail second")
    cluster.feed(0)
    cluster.settle()
    assert [note.message for note in cluster.notes[0].aborts] == ["second"]
