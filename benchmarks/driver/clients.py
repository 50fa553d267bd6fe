"""The client processes of a run, seen from the parent: started once, told to run plans, asked what they have seen."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.reports import Progress, RunReport
from benchmarks.driver.target import GeneratorFactory, TargetFactory


class ClientProcesses:
    """`async with`: `count` processes, each with a target and a generator of its own."""

    def __init__(
        self,
        count: int,
        make_target: TargetFactory,
        make_generator: GeneratorFactory,
        *,
        timeout_s: float,
        in_flight_max: int,
        seed: int,
    ) -> None:
        raise NotImplementedError

    async def run(self, plan: LoadPlan, start_s: float, tell: Callable[[Progress], None]) -> RunReport:
        """One open-loop run that begins at `start_s` (`time.monotonic`); the report is merged over all clients."""
        raise NotImplementedError

    async def witnesses(self) -> list[Any]:
        """Of every client's generator."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        raise NotImplementedError
