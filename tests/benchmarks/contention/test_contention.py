"""The contention benchmark: its requests, its figures, its exit status, and options that make no sense."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from benchmarks.contention import run
from benchmarks.contention.__main__ import FAILED, OK, USAGE, lines, main
from benchmarks.contention.programs import Programs
from benchmarks.contention.run import Figures
from benchmarks.driver.carries import Carries
from benchmarks.driver.place import Place
from benchmarks.driver.target import Outcome
from proof.cluster.services import local_services
from styx.messages import Reply
from styx.testing.history import HistoryReport, SerializabilityViolation

SHORT = ["--rate", "60", "--seconds", "0.5", "--warm-up", "0.1"]


def test_the_same_seed_gives_the_same_requests_on_few_entities() -> None:
    first, again, other = Programs(2, 1), Programs(2, 1), Programs(2, 2)
    drawn = [first.next() for _ in range(200)]
    assert drawn == [again.next() for _ in range(200)]
    assert drawn != [other.next() for _ in range(200)]
    assert {planned.function for planned in drawn} == {"run", "transfer"}
    assert len({(planned.operator.name, planned.key) for planned in drawn}) == 3 * 2 + 3


def test_a_run_is_serializable_and_complete(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SHORT, "--seed", "4"]) == OK
    told = capsys.readouterr().out.splitlines()
    assert told[0] == ("60 requests/s for 0.5 s, 8 keys an operator, seed 4, on an engine in this process, 4 slots")
    assert [line.split()[0] for line in told[2:7]] == ["throughput", "processor", "latency", "carried", "epochs"]
    assert told[-1] == "history      serializable, and complete"


def test_a_wrong_history_fails_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.driver import place

    def check_history(*_: object, **__: object) -> HistoryReport:
        raise SerializabilityViolation("a reply is wrong")

    monkeypatch.setattr(place, "check_history", check_history)
    assert main(SHORT) == FAILED
    assert "WRONG        a reply is wrong" in capsys.readouterr().out


def test_requests_without_a_reply_are_counted_and_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answered, number = Programs.answered, itertools.count()

    def two_go_unheard(self: Programs, planned: object, reply: Reply) -> None:
        if next(number) in (3, 7):
            self.unknown(planned)  # type: ignore[arg-type]
        else:
            answered(self, planned, reply)  # type: ignore[arg-type]

    monkeypatch.setattr(Programs, "answered", two_go_unheard)
    assert main(SHORT) == FAILED
    told = capsys.readouterr().out
    assert "WRONG        2 requests have no reply:\n    request " in told
    assert "p99 NOT below 1 s" in told


def figures(silent: list[str], wrong: str = "", latency_us: int = 5_000) -> Figures:
    return Figures(
        sent=100,
        outcomes={Outcome.COMMITTED: 90, Outcome.ABORTED: 10},
        latency={latency_us: 100},
        late={0: 100},
        seconds=2.0,
        cpu_s=0.25,
        locked=50,
        carries=Carries(100, 20, 1.5, 1, 4, 25),
        silent=silent,
        wrong=wrong,
    )


def test_the_figures_as_text() -> None:
    assert lines(figures([]), 1.0) == [
        "throughput   50.0 answered/s; 100 sent, 10 aborted, 90 committed",
        "processor    2.50 ms a transaction",
        "latency      p50 5.0 ms, p90 5.0 ms, p99 5.0 ms, p100 5.0 ms; p99 below 1 s",
        "carried      20.0% of the transactions, 1.5 times on average, median 1, at most 4",
        "epochs       25, 4.0 answered in each; 50.0% of the transactions through the lock phase",
        "history      serializable, and complete",
    ]
    assert "p99 NOT below 1 s" in lines(figures([], latency_us=1_000_000), 1.0)[2]
    assert lines(figures([f"request {n}" for n in range(22)]), 1.0)[5:] == [
        "WRONG        22 requests have no reply:",
        *(f"    request {n}" for n in range(20)),
        "    and 2 more",
        "history      serializable, and complete",
    ]


def test_a_check_that_does_not_come_to_an_end_is_told() -> None:
    async def history(told: object) -> HistoryReport:
        raise TimeoutError("3 requests are not answered")

    place = Place(None, 4, "", list, history)  # type: ignore[arg-type]
    assert asyncio.run(run._checked(place, Programs(2, 1))) == "3 requests are not answered"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--keys", "0"], "--keys is a number from 1 to 100000, got 0"),
        (["--rate", "0"], "--rate is a number from 0.01 to 1e+06, got 0"),
        (["--seconds", "nan"], "--seconds is a number from 0.1 to 3600, got nan"),
        (["--warm-up", "-1"], "--warm-up is a number from 0 to 3600, got -1"),
        (["--bound", "-1"], "--bound is a number from 0.001 to 600, got -1"),
        (["--workers", "2"], "--workers needs --kafka"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == USAGE
    assert told in capsys.readouterr().err


@pytest.mark.slow
def test_on_a_cluster_of_real_processes(capsys: pytest.CaptureFixture[str]) -> None:
    with local_services() as services:
        words = ["--kafka", services.kafka_address, "--workers", "2", "--rate", "40", "--seconds", "3"]
        assert main(words) == OK
    assert "history      serializable, and complete" in capsys.readouterr().out
