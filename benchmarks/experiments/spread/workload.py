"""YCSB-T on several clusters. Each has the same accounts, requests and audit as a single cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any

from benchmarks.driver.workload import Audit, Generator, Loading, Planned
from benchmarks.experiments.spread.operators import operators
from benchmarks.ycsbt.settings import Settings
from benchmarks.ycsbt.workload import YcsbT
from styx.client.base import Client
from styx.messages import Reply
from styx.model.operator import Operator


class Spread:
    """A `Workload`; `settings` are each cluster's. Raises as `YcsbT`."""

    def __init__(self, settings: Settings, clusters: int) -> None:
        self._operators = operators(clusters)
        self._each = [YcsbT(settings, operator) for operator in self._operators]
        first = self._each[0]
        self.name = first.name
        self.app = first.app
        self.app_target = first.app_target
        self.settings: dict[str, Any] = first.settings | {"clusters": clusters}

    def initial(self) -> Iterable[Loading]:
        """See `Workload.initial`."""
        for workload in self._each:
            yield from workload.initial()

    def generator(self, client: int, clients: int, seed: int) -> Generator:
        """See `Workload.generator`."""
        clusters = len(self._each)
        generators = [
            workload.generator(client * clusters + number, clients * clusters, seed)
            for number, workload in enumerate(self._each)
        ]
        return SpreadGenerator(self._operators, generators)

    async def audit(self, client: Client, witnesses: list[Any]) -> Audit:
        """See `Workload.audit`: of each cluster by itself."""
        together = Audit([], [])
        for number, workload in enumerate(self._each):
            of_cluster = await workload.audit(client, [witness[number] for witness in witnesses])
            for told, texts in zip(together, of_cluster, strict=True):
                told += [f"cluster {number}: {text}" for text in texts]
        return together


class SpreadGenerator:
    """Requests for each cluster in turn, by a generator of its own; a witness is the list of theirs."""

    def __init__(self, of: Sequence[Operator], generators: Sequence[Generator]) -> None:
        self._generators = generators
        self._answered = {operator: each.answered for operator, each in zip(of, generators, strict=True)}
        self._unknown = {operator: each.unknown for operator, each in zip(of, generators, strict=True)}
        self._turns = cycle([each.next for each in generators])

    def next(self) -> Planned:
        """See `Generator.next`."""
        return next(self._turns)()

    def answered(self, planned: Planned, reply: Reply) -> Iterable[Planned] | None:
        """See `Generator.answered`."""
        return self._answered[planned.operator](planned, reply)

    def unknown(self, planned: Planned) -> None:
        """See `Generator.unknown`."""
        self._unknown[planned.operator](planned)

    def witness(self) -> list[Any]:
        """See `Generator.witness`."""
        return [each.witness() for each in self._generators]
