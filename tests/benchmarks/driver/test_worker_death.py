"""A worker's death: in which order things are done to the workers, and what is told of it. Nobody is killed here."""

from __future__ import annotations

import asyncio
import time

from benchmarks.driver.probe import Mark
from benchmarks.driver.summary import summary
from benchmarks.driver.worker_death import KILLED, REPLACED, TOOK_OVER, WorkerDeath, death_of, kill_and_replace
from tests.benchmarks.driver.made import result
from tests.benchmarks.driver.test_interruption import NORMAL_US, line

NOWHERE = "http://127.0.0.1:9"
AROUND = line([NORMAL_US] * 10 + [0] * 7 + [700_000, 300_000] + [NORMAL_US] * 20)
MARKS = [Mark(at_s=0.94, what=KILLED), Mark(at_s=2.0, what=REPLACED), Mark(at_s=2.5, what=TOOK_OVER)]


class Workers:
    def __init__(self) -> None:
        self.done: list[tuple[str, int]] = []
        self.started = asyncio.Event()

    async def kill_worker(self, place: int) -> None:
        self.done.append(("killed", place))

    async def start_worker(self, place: int) -> None:
        self.done.append(("started", place))
        self.started.set()


def test_a_worker_is_killed_and_another_one_takes_its_place() -> None:
    workers, marks = Workers(), list[Mark]()

    async def accompany() -> None:
        company = asyncio.create_task(
            kill_and_replace(workers, NOWHERE, WorkerDeath(1, 0.0, 0.0), time.monotonic(), marks)
        )
        await workers.started.wait()
        assert not company.done(), "it goes on watching"
        company.cancel()
        await asyncio.wait([company])

    asyncio.run(accompany())
    assert workers.done == [("killed", 1), ("started", 1)]
    assert [mark.what for mark in marks] == [KILLED, REPLACED]


def test_what_clients_saw_of_it() -> None:
    death = death_of(AROUND, MARKS, 0.1)
    assert death is not None
    assert (death.killed_s, death.replaced_s, death.joined_s) == (0.94, 2.0, 2.5)
    assert (death.pause_s, death.worst_us, death.normal_us) == (0.7, 1_400_000, NORMAL_US)
    assert death.back_s == 1.9 - 0.94


def test_without_a_death_nothing_is_told() -> None:
    assert death_of(AROUND, [Mark(at_s=1.0, what="snapshot")], 0.1) is None
    assert "killed" not in summary(result())


def test_people_are_told_when_it_was_and_how_long_no_reply_came() -> None:
    made = result()
    made.death = death_of(AROUND, MARKS, 0.1)
    text = summary(made)
    assert "killed 0.9 s after the window's start: no reply for 0.7 s" in text
    assert "p99 as before after" in text
    assert "started at 2.0 s, with slots from 2.5 s on" in text
    made.death = death_of(line([NORMAL_US] * 10), MARKS[:1], 0.1)
    assert "no reply came after that" in summary(made)
