"""Client processes: real ones, which put a target under load that answers by itself."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import pytest

from benchmarks.driver.clients import ClientFailed, ClientProcesses
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.reports import Progress
from benchmarks.driver.target import GeneratorFactory, Outcome
from benchmarks.driver.workload import Generator, Planned
from styx.cli.serving import run_loop
from styx.host.waiters import Receiver
from styx.messages import Reply
from styx.testing.patience import PATIENCE_SECONDS
from tests.benchmarks.driver.counting import CountingGenerator


class Echo:
    async def connect(self) -> None: ...

    async def close(self) -> None: ...

    def submit(self, planned: Planned, receiver: Receiver) -> None:
        receiver.set_result(Reply(None, None, 1, 1, 1, ""))


class SilentToSome(Echo):
    def submit(self, planned: Planned, receiver: Receiver) -> None:
        if planned.kind != "ignored":
            super().submit(planned, receiver)


class Absent(Echo):
    async def connect(self) -> None:
        raise ConnectionError("nobody is there")


@dataclass(frozen=True)
class Targets:
    kind: type[Echo]

    def __call__(self, timeout_s: float, in_flight_max: int) -> Echo:
        return self.kind()


class Ignored(CountingGenerator):
    def next(self) -> Planned:
        return super().next()._replace(kind="ignored")


class Talkative(CountingGenerator):
    def witness(self) -> Any:
        return bytes(4_000_000)


def generators(client: int, clients: int, seed: int) -> Generator:
    return CountingGenerator()


def first_ignored(client: int, clients: int, seed: int) -> Generator:
    return CountingGenerator() if client else Ignored()


def talkative(client: int, clients: int, seed: int) -> Generator:
    return Talkative()


def clients(count: int, kind: type[Echo] = Echo, make_generator: GeneratorFactory = generators) -> ClientProcesses:
    return ClientProcesses(count, Targets(kind), make_generator, timeout_s=PATIENCE_SECONDS, in_flight_max=1000, seed=1)


def _unexpected(why: str) -> None:
    raise AssertionError(why)


def test_what_one_client_gives_up_is_told_before_the_replies_under_way_were_waited_for() -> None:
    async def main() -> None:
        async with clients(2, SilentToSome, first_ignored) as running:
            plan = LoadPlan(
                rate=200, warm_up_s=0, duration_s=60, clients=2, drain_s=2 * PATIENCE_SECONDS, give_up_s=0.05
            )
            given_up = asyncio.Event()
            run = asyncio.create_task(running.run(plan, time.monotonic(), lambda _: None, lambda _: given_up.set()))
            async with asyncio.timeout(PATIENCE_SECONDS):
                await given_up.wait()
            assert not run.done()
            run.cancel()

    asyncio.run(main())


def test_processes_share_the_rate_and_keep_their_witness_over_runs() -> None:
    async def main() -> None:
        told: list[Progress] = []
        async with clients(2) as running:
            assert len(running.pids) == 2
            # Long enough for a progress.
            plan = LoadPlan(rate=1000, warm_up_s=0.1, duration_s=1.1, clients=2)
            for runs in (1, 2):
                report = await running.run(plan, time.monotonic() + 0.1, told.append, _unexpected)
                assert report.outcomes == {Outcome.COMMITTED: 1100}
                assert report.outside == {Outcome.COMMITTED: 100}
                assert sum(each["committed"] for each in await running.witnesses()) == runs * 1200
        assert [progress.number for progress in told].count(1) == 2
        assert running.pids == []

    asyncio.run(main())


def test_when_one_client_gives_up_the_others_stop() -> None:
    async def main() -> None:
        async with clients(2, SilentToSome, first_ignored) as running:
            plan = LoadPlan(rate=200, warm_up_s=0, duration_s=60, clients=2, drain_s=0.2, give_up_s=0.05)
            reasons: list[str] = []
            report = await running.run(plan, time.monotonic(), lambda _: None, reasons.append)
            assert [report.gave_up] == reasons != [""]
            assert 0 < report.outcomes.get(Outcome.COMMITTED, 0) < 100 * 60
            assert 0 < report.window_s < 60

    asyncio.run(main())


def test_a_client_whose_parent_has_gone_in_a_run_ends_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with clients(1) as running:
            plan = LoadPlan(rate=100, duration_s=60, warm_up_s=0)
            under_way = asyncio.create_task(running.run(plan, time.monotonic(), lambda _: None, _unexpected))
            await asyncio.sleep(0.05)
            under_way.cancel()

    # On the event loop that tells of errors in callbacks.
    run_loop(main())
    assert capfd.readouterr().err == ""


def test_a_message_larger_than_a_pipe_arrives_whole() -> None:
    async def main() -> list[Any]:
        async with clients(1, Echo, talkative) as running:
            return await running.witnesses()

    # On the event loop that commands run on: it treats pipes in its own way.
    assert [len(witness) for witness in run_loop(main())] == [4_000_000]


def test_a_client_that_cannot_connect_says_so() -> None:
    async def main() -> None:
        async with clients(1, Absent):
            pass

    with pytest.raises(ClientFailed, match="client process 0: ConnectionError: nobody is there"):
        asyncio.run(main())


def test_a_client_that_dies_is_noticed() -> None:
    async def main() -> None:
        async with clients(1) as running:
            process = running._processes[0]._process
            process.kill()
            await running.run(LoadPlan(rate=10, duration_s=60), time.monotonic(), lambda _: None, _unexpected)

    with pytest.raises(ClientFailed, match="ended by itself"):
        asyncio.run(main())
