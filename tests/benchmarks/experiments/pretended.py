"""Deployments that are not there, for the experiments' ways through their steps: each answers so much and no more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from benchmarks.driver.accompanied import Company
from benchmarks.driver.clients import Clients
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.result import Result
from benchmarks.driver.session import Session
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.subject import Load, Subject
from tests.benchmarks.driver.made import result


class Answers:
    """In place of a `Session`: what is beyond `capacity` is not answered in time."""

    def __init__(self, capacity: float) -> None:
        self.capacity = capacity
        self.plans: list[LoadPlan] = []
        self.companies: list[Company | None] = []

    async def measure(self, _clients: Clients, plan: LoadPlan, company: Company | None = None) -> Result:
        self.plans.append(plan)
        self.companies.append(company)
        made = result(rate=min(plan.rate, self.capacity))
        # Nobody else had the machine.
        quiet = msgspec.structs.replace(made.machine, others_s=0.0)
        return msgspec.structs.replace(made, plan=plan, offered_rate=plan.rate, machine=quiet)


def subject_on(bench: Bench, name: str, answers: Answers) -> Subject:
    """Measured on `answers`."""
    return Subject(bench, name, cast(Session, answers), cast(Clients, None), lambda: None)


def pretend(module: Any, capacity: Callable[[str], float], monkeypatch: Any) -> None:
    """Lets an experiment's module find deployments that hold `capacity` requests a second, by the load's name."""

    class Place:
        async def cluster(self, name: str, workers: int, **_: Any) -> Any:
            return SimpleNamespace(name=name, workers=workers, check=lambda: None)

        async def echo(self) -> Any:
            return None

    @asynccontextmanager
    async def place(_bench: Bench) -> AsyncIterator[Place]:
        yield Place()

    @asynccontextmanager
    async def subjects(bench: Bench, _deployment: Any, loads: Sequence[Load], **_: Any) -> AsyncIterator[list[Subject]]:
        yield [subject_on(bench, load.name, Answers(capacity(load.name))) for load in loads]

    monkeypatch.setattr(module, "place", place)
    monkeypatch.setattr(module, "subjects", subjects)
    monkeypatch.setattr(module, "deployment_of", lambda cluster: cluster)
