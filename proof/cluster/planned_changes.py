"""Changes of the number of workers of a cluster under test, with kills at chosen moments.

A change has ended when the wanted number of workers share the slots evenly. A killed process is started again at once.
The only check here is that the change takes effect.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, cycle, pairwise, repeat
from random import Random
from typing import Final, NamedTuple, TypeVar

from proof.cluster.child import ChildFailed, ChildProcess
from proof.cluster.cluster import ClusterUnderTest
from proof.cluster.faults import longest_silence
from proof.cluster.halting_coordinator import DURING, RESUMED, SERVED, Told, halt_at, told_in
from proof.cluster.load import SteadyLoad
from styx.cli.facts_client import fetch, fetch_status
from styx.cluster.coordinator.status import Status
from styx.testing.patience import PATIENCE_SECONDS

SECONDS_MAX: Final = PATIENCE_SECONDS
"""Limit on the wait for a moment of a change, or for its end."""
POLL_SECONDS: Final = 0.1
HALT_POLL_SECONDS: Final = 0.005
LATE_SECONDS_MAX: Final = 0.05
"""A victim dies while the coordinator is stopped at a moment, or at most this much later. After a change it dies later.
"""
KILLS: Final = ("none", "during", "after", "both")

PARTS: Final = ("held", "stored", "fencing", "loading", RESUMED, SERVED)
"""The moments of the pause in service."""

T = TypeVar("T")


class Kill(NamedTuple):
    """`victim` is "member", "joining" or "coordinator"."""

    victim: str
    moment: str


class Change(NamedTuple):
    """A change that took effect. Slots are by worker, times in seconds.

    `pause_s` is the longest time without a reply after the command, `settled_s` the time from the command to the end.
    `parts` are the steps of the pause, if no process was killed. The change led to the generations after `first`, up to
    `last`.
    """

    workers: int
    kills: list[Kill]
    pause_s: float
    settled_s: float
    parts: dict[str, float]
    before: dict[str, list[int]]
    after: dict[str, list[int]]
    first: int
    last: int


class KillPlan:
    """Chooses the kills of each change: every victim at every moment, in random order, until all have been used.

    `kinds`, of `KILLS`, are used by the changes in turn.
    """

    def __init__(self, kinds: Sequence[str], rng: Random) -> None:
        self._kinds = cycle(kinds)
        self._turns = {growing: _turns(growing, rng) for growing in (True, False)}
        self._after = _endless(["member", "coordinator"], rng)

    def of(self, growing: bool) -> list[Kill]:
        """The kills of the next change, in order."""
        kind = next(self._kinds)
        during = [next(self._turns[growing])] if kind in ("during", "both") else []
        return during + ([Kill(next(self._after), RESUMED)] if kind in ("after", "both") else [])


def _turns(growing: bool, rng: Random) -> Iterator[Kill]:
    victims = ["member", "joining", "coordinator"] if growing else ["member", "coordinator"]
    return _endless([Kill(victim, moment) for victim in victims for moment in DURING], rng)


def _endless(choices: list[T], rng: Random) -> Iterator[T]:
    return chain.from_iterable(rng.sample(each, len(each)) for each in repeat(choices))


class Changer:
    """Changes one cluster, which runs a halting coordinator and is under `load`.

    `watched_s` is the number of seconds for which replies are watched after a change, and without a change.
    """

    def __init__(self, cluster: ClusterUnderTest, load: SteadyLoad, rng: Random, watched_s: float) -> None:
        self._cluster = cluster
        self._watched_s = watched_s
        self._load = load
        self._rng = rng
        self._halts = 0

    async def unchanged(self) -> float:
        """Measures the longest time without a reply while nothing changes."""
        loop = asyncio.get_running_loop()
        at_s = loop.time()
        await asyncio.sleep(self._watched_s)
        return longest_silence(self._load.reply_times, at_s, loop.time())

    async def change(self, workers: int, kills: Sequence[Kill]) -> Change:
        """Changes the number of workers to `workers`. Raises `ChildFailed`."""
        cluster, loop = self._cluster, asyncio.get_running_loop()
        while self._running < workers:
            await cluster.add_worker()
        before = await self._until(f"{self._running} workers have joined", self._joined)
        for kill in kills[:1]:
            self._halt_at(kill, workers)
        at_s = loop.time()
        asking = asyncio.ensure_future(self._ask(workers))
        for number, kill in enumerate(kills):
            await self._strike(kill, before, kills[number + 1 : number + 2], workers)
        await asking
        after = await self._until(f"{workers} workers share the slots", lambda: self._shared(workers))
        settled_s = loop.time() - at_s
        await asyncio.sleep(self._watched_s)
        pause_s = longest_silence(self._load.reply_times, at_s, loop.time())
        parts = {} if kills else parts_of(self._told(), at_s, self._load.reply_times)
        await self._stop_standing_by(after)
        cluster.check()
        slots = _slots(before), _slots(after)
        return Change(workers, list(kills), pause_s, settled_s, parts, *slots, before.generation, after.generation)

    def _told(self) -> list[Told]:
        return told_in(sorted(self._cluster.options.directory.glob("*-coordinator.log")))

    def planned(self) -> set[int]:
        """The generations that began on a held snapshot, from the coordinators' output."""
        return {told.generation for told in self._told() if told.moment == "fencing" and told.planned}

    async def _ask(self, workers: int) -> None:
        # The coordinator may die before it answers. Its successor is started with the wanted number.
        with contextlib.suppress(OSError):
            await self._cluster.scale(workers)

    def _halt_at(self, kill: Kill, workers: int) -> None:
        halt_at(self._cluster.options.directory, kill.moment, workers if kill.moment == RESUMED else None)

    async def _strike(self, kill: Kill, before: Status, following: Sequence[Kill], workers: int) -> None:
        cluster = self._cluster
        coordinator = await self._halted(kill)
        for each in following:
            self._halt_at(each, workers)
        late = kill.moment == RESUMED or self._rng.random() < 0.5
        if late:
            coordinator.thaw()
            await asyncio.sleep(self._rng.uniform(0, LATE_SECONDS_MAX))
        if kill.victim == "coordinator":
            cluster.coordinator = None
            await coordinator.kill()
            await cluster.start_coordinator()
            return
        place = self._rng.choice(await self._candidates(kill, before))
        victim, cluster.workers[place] = cluster.workers[place], None
        assert victim is not None
        await victim.kill()
        if not late:
            coordinator.thaw()
        await cluster.start_worker(place)

    async def _candidates(self, kill: Kill, before: Status) -> list[int]:
        """The places of members before the change; for a kill after the change, of the present members."""
        if kill.moment == RESUMED:
            now = _places(await asyncio.to_thread(fetch_status, self._cluster.facts_url), member=True)
            if now:
                return now
        return _places(before, kill.victim == "member")

    async def _halted(self, kill: Kill) -> ChildProcess:
        """Waits until the coordinator has stopped itself, and returns it."""
        deadline_s = time.monotonic() + SECONDS_MAX
        while (halts := sum(told.halted for told in self._told())) == self._halts:
            if time.monotonic() > deadline_s:
                raise self._missed(f"the moment {kill.moment!r} of a change")
            await asyncio.sleep(HALT_POLL_SECONDS)
        self._halts = halts
        assert self._cluster.coordinator is not None
        return self._cluster.coordinator

    async def _stop_standing_by(self, status: Status) -> None:
        for place in _places(status, member=False):
            worker, self._cluster.workers[place] = self._cluster.workers[place], None
            if worker is not None:
                await worker.stop()

    # What is awaited ---------------------------------------------------------------------------------------

    @property
    def _running(self) -> int:
        return sum(worker is not None for worker in self._cluster.workers)

    async def _until(self, what: str, look: Callable[[], Status | None]) -> Status:
        deadline_s = time.monotonic() + SECONDS_MAX
        while True:
            with contextlib.suppress(OSError):
                status = await asyncio.to_thread(look)
                if status is not None:
                    return status
            self._cluster.check()
            if time.monotonic() > deadline_s:
                raise self._missed(what)
            await asyncio.sleep(POLL_SECONDS)

    def _joined(self) -> Status | None:
        """The status, once all running workers are registered and can run the app; otherwise None."""
        _, text = fetch(f"{self._cluster.facts_url}/metrics")
        live = f'styx_workers{{state="live"}} {self._running:.1f}'
        return self._shared(None) if live in text.decode().splitlines() else None

    def _shared(self, workers: int | None) -> Status | None:
        """The status, once the members, `workers` of them if given, share the slots evenly; otherwise None."""
        status = fetch_status(self._cluster.facts_url)
        shares = [len(slots) for slots in _slots(status).values()]
        if status.phase != "running" or (workers is not None and len(shares) != workers):
            return None
        return status if max(shares) - min(shares) <= 1 else None

    def _missed(self, what: str) -> ChildFailed:
        tails = "".join(child.tail() for child in self._cluster.children)
        return ChildFailed(f"not within {SECONDS_MAX:g} s: {what}.{tails}")


def _slots(status: Status) -> dict[str, list[int]]:
    return {worker.name: worker.slots for worker in sorted(status.workers, key=lambda each: each.name) if worker.member}


def _places(status: Status, member: bool) -> list[int]:
    """The places of the workers that are members, or of those that are not. Workers are named after their places."""
    return [int(worker.name.removeprefix("w")) for worker in status.workers if worker.member is member]


def parts_of(told: Sequence[Told], at_s: float, reply_times: Sequence[float]) -> dict[str, float]:
    """The time of each step of an undisturbed change, from the held snapshot's epoch to the first reply after it."""
    moments = {each.moment: each.at_s for each in told if each.at_s >= at_s}
    if any(moment not in moments for moment in PARTS):
        return {}
    steps = {f"{first} to {second}": moments[second] - moments[first] for first, second in pairwise(PARTS)}
    reply_s = min((each for each in reply_times if each >= moments[RESUMED]), default=moments[SERVED])
    return {"asked to held": moments["held"] - at_s, **steps, "served to reply": reply_s - moments[SERVED]}
