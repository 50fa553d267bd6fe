"""The clients of a run, seen from the parent. They start once, run plans, and give their witnesses. `ClientProcesses`
run in separate processes. `ClientHere` runs in this process, for an embedded engine.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

from benchmarks.driver.client_process import (
    Answer,
    ClientSpec,
    Ended,
    Failed,
    GivenUp,
    Ready,
    Run,
    Stop,
    TellWitness,
    Told,
    Witnessed,
    client_main,
    receive_answer,
    send,
    when_readable,
)
from benchmarks.driver.loops import loop_of
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.reports import Progress, RunReport
from benchmarks.driver.sending import GaveUp, told_nobody
from benchmarks.driver.target import GeneratorFactory, Target, TargetFactory
from benchmarks.driver.workload import Generator

READY_SECONDS_MAX: Final = 60.0
"""The longest time that a client process may take to start and connect."""
END_SECONDS_MAX: Final = 10.0
"""The longest time that a client process may take to disconnect; then it is killed."""

Tell = Callable[[Progress], None]
A = TypeVar("A", bound=Answer)


class ClientFailed(Exception):
    """A client process could not connect, or broke; the message says how."""


class Clients(Protocol):
    """What sends."""

    @property
    def pids(self) -> list[int]:
        """Of the client processes."""

    async def run(self, plan: LoadPlan, start_s: float, tell: Tell, gave_up: GaveUp) -> RunReport:
        """Makes one run that begins at `start_s` (`time.monotonic`), and returns the merged report of all
        clients. `tell` gets their progress once a second. If one of them gives up, all stop sending at once, and
        `gave_up` gets the reason. Raises `ClientFailed`.
        """

    async def witnesses(self) -> list[Any]:
        """The witness of each client's generator, over all runs."""


class ClientHere:
    """One client in this process, on this event loop."""

    def __init__(self, target: Target, generator: Generator) -> None:
        self._target = target
        self._generator = generator

    @property
    def pids(self) -> list[int]:
        """None of its own."""
        return []

    async def run(self, plan: LoadPlan, start_s: float, tell: Tell, gave_up: GaveUp) -> RunReport:
        """See `Clients.run`."""
        return await loop_of(self._target, self._generator, plan, 0, start_s, tell, gave_up).run()

    async def witnesses(self) -> list[Any]:
        """See `Clients.witnesses`."""
        return [self._generator.witness()]


class ClientProcesses:
    """`count` processes, each with a separate target and generator. Use it with `async with`."""

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
        self._specs = [
            ClientSpec(make_target, make_generator, number, count, seed, timeout_s, in_flight_max)
            for number in range(count)
        ]
        self._processes: list[_Process] = []

    @property
    def pids(self) -> list[int]:
        """Of the client processes."""
        return [process.pid for process in self._processes]

    async def run(self, plan: LoadPlan, start_s: float, tell: Tell, gave_up: GaveUp) -> RunReport:
        """See `Clients.run`."""
        reasons: list[str] = []

        def given_up(why: str) -> None:
            # Each of them says so, also those that were told to stop.
            if not reasons:
                reasons.append(why)
                for process in self._processes:
                    process.order(Stop(why))
                gave_up(why)

        together: dict[int, list[Progress]] = {}

        def told(progress: Progress) -> None:
            gathered = together.setdefault(progress.number, [])
            gathered.append(progress)
            if len(gathered) == len(self._processes):
                merged = together.pop(progress.number)[0]
                for other in gathered[1:]:
                    merged.add(other)
                tell(merged)

        for process in self._processes:
            process.tell, process.gave_up = told, given_up
            process.order(Run(plan, start_s))
        report = RunReport()
        ended = [asyncio.ensure_future(process.answer(Ended)) for process in self._processes]
        try:
            for next_one in asyncio.as_completed(ended):
                report.add((await next_one).report)
        finally:
            for each in ended:
                each.cancel()
        return report

    async def witnesses(self) -> list[Any]:
        """See `Clients.witnesses`."""
        for process in self._processes:
            process.order(TellWitness())
        return [(await process.answer(Witnessed)).witness for process in self._processes]

    async def __aenter__(self) -> Self:
        try:
            self._processes = [_Process(spec) for spec in self._specs]
            async with asyncio.timeout(READY_SECONDS_MAX):
                for process in self._processes:
                    await process.answer(Ready)
        except BaseException as error:
            await self._end()
            if isinstance(error, TimeoutError):
                raise ClientFailed(f"a client process was not ready within {READY_SECONDS_MAX:g} s") from None
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        for process in self._processes:
            process.let_go()
        for process in self._processes:
            await asyncio.to_thread(process.end)
        self._processes = []


class _Process:
    """One client process and its pipe. The event loop that made it reads the pipe."""

    def __init__(self, spec: ClientSpec) -> None:
        context = multiprocessing.get_context("spawn")
        pipe, theirs = context.Pipe()
        self.tell: Tell = lambda _: None
        self.gave_up: GaveUp = told_nobody
        self._pipe: Connection = pipe
        self._name = f"client process {spec.client}"
        self._answers: asyncio.Queue[Answer] = asyncio.Queue()
        self._process: SpawnProcess = context.Process(target=client_main, args=(theirs, spec), daemon=True)
        self._process.start()
        theirs.close()
        when_readable(pipe, self._readable)

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def order(self, order: Run | Stop | TellWitness) -> None:
        try:
            send(self._pipe, order)
        except OSError:
            pass  # it has ended: the next answer says so

    async def answer(self, kind: type[A]) -> A:
        answer = await self._answers.get()
        if isinstance(answer, Failed):
            raise ClientFailed(f"{self._name}: {answer.error}")
        assert isinstance(answer, kind), answer
        return answer

    def let_go(self) -> None:
        if not self._pipe.closed:
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
            self._pipe.close()

    def end(self) -> None:
        """Blocks until it is gone."""
        self._process.join(END_SECONDS_MAX)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _readable(self) -> None:
        try:
            answer = receive_answer(self._pipe)
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(self._pipe.fileno())
            self._answers.put_nowait(Failed("it has ended by itself"))
            return
        if isinstance(answer, Told):
            self.tell(answer.progress)
        elif isinstance(answer, GivenUp):
            self.gave_up(answer.why)
        else:
            self._answers.put_nowait(answer)
