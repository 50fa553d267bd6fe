"""Reads the processor time and the metrics of the processes under load during a run. Reading a coordinator once a
second costs a thousandth of a processor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from benchmarks.driver.accounting import MachineUsage, RoleUsage, Sample, machine_usage, usage_by_role
from benchmarks.driver.counters import Scrape, fetch, growth, parse
from benchmarks.driver.processes import sample

Pids = Callable[[], Mapping[str, Sequence[int]]]
"""The PIDs of the running processes, by role. It is called for each sample, because faults replace processes."""
Urls = Callable[[], Mapping[str, Sequence[str]]]
"""The addresses of `/metrics` of the running processes, by role."""


class Own(NamedTuple):
    """The part of the deployment in this process, under `role`. `metrics` gives the text of its `/metrics`."""

    role: str
    metrics: Callable[[], str]


COORDINATOR: Final = "coordinator"
"""The role whose counters show snapshots and recoveries."""
ENGINES: Final = ("worker", "engine and client")
"""The roles that run transactions: a cluster's workers, or the one process of an embedded engine and its client."""
_OWN_URL: Final = "here"
_EVENTS: Final = {"styx_snapshots_total": "snapshot", "styx_recoveries_total": "recovery"}


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """An event `at_s` seconds after the window's start: a complete `snapshot`, a `recovery`, a fault."""

    at_s: float
    what: str


class Probe:
    """`begin` and `end` enclose a window. Call `look` once a second in between."""

    def __init__(self, pids: Pids, urls: Urls = dict, own: Own | None = None) -> None:
        self.samples: list[Sample] = []
        self.marks: list[Mark] = []
        self._pids = pids
        self._urls = urls
        self._own = own
        self._before: dict[str, Scrape] = {}
        self._after: dict[str, Scrape] = {}
        self._events: dict[str, float] = {}

    async def begin(self) -> None:
        """The window begins."""
        self.samples, self.marks = [sample(self._pids())], []
        self._before = await self._fetch(None)
        self._count_events(self._before)

    async def look(self) -> None:
        """Within the window."""
        self.samples.append(sample(self._pids()))
        scrapes = await self._fetch(COORDINATOR)
        at_s = self.samples[-1].at_s - self.samples[0].at_s
        self.marks += [Mark(at_s=at_s, what=what) for what in self._count_events(scrapes)]

    async def end(self) -> None:
        """The window ends."""
        self.samples.append(sample(self._pids()))
        self._after = await self._fetch(None)

    async def never_began(self) -> None:
        """The run was given up before its window: there are processes, and no time that they used."""
        await self.begin()
        self._after = self._before

    @property
    def roles(self) -> dict[str, RoleUsage]:
        """Processor time and memory in the window."""
        return usage_by_role(self.samples)

    def cpu_s(self, roles: Collection[str]) -> float:
        """Processor seconds of these roles in the window, together."""
        return sum(usage.cpu_s for role, usage in self.roles.items() if role in roles)

    @property
    def machine(self) -> MachineUsage:
        """Of the whole machine in the window."""
        return machine_usage(self.samples)

    @property
    def counters(self) -> dict[str, Scrape]:
        """How much the processes' own counters grew in the window."""
        own = {} if self._own is None else {self._own.role: [_OWN_URL]}
        return growth({**self._urls(), **own}, self._before, self._after)

    @property
    def last_second(self) -> dict[str, RoleUsage]:
        """Between the last two samples; empty before there are two."""
        return usage_by_role(self.samples[-2:]) if len(self.samples) > 1 else {}

    async def _fetch(self, role: str | None) -> dict[str, Scrape]:
        urls = [url for each, of_role in self._urls().items() if role in (None, each) for url in of_role]
        scrapes = await asyncio.to_thread(fetch, urls) if urls else {}
        if self._own is not None and role is None:
            scrapes[_OWN_URL] = parse(self._own.metrics())
        return scrapes

    def _count_events(self, scrapes: Mapping[str, Scrape]) -> list[str]:
        """The events since the last call."""
        happened = []
        for url, scrape in scrapes.items():
            for name, value in scrape.items():
                what = _EVENTS.get(name.partition("{")[0])
                if what is not None:
                    happened += [what] * round(value - self._events.get(url + name, value))
                    self._events[url + name] = value
        return happened
