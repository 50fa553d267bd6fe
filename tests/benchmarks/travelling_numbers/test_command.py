"""The command of travelling numbers: its figures, its exit status, and options that make no sense."""

from __future__ import annotations

import pytest

from benchmarks.travelling_numbers import run
from benchmarks.travelling_numbers.__main__ import FAILED, OK, USAGE, main
from proof.cluster.services import local_services


def test_a_run_prints_a_line_for_each_shape(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--requests", "12", "--seed", "3"]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "12 requests a shape on an engine in this process, 4 slots, seed 3"
    assert [line.split()[0] for line in lines[3:]] == ["as_argument", "as_key", "for_a_result", "along_a_chain"]


def test_a_failed_audit_fails_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    async def violations(*_: object) -> list[str]:
        return ["a sum is wrong"]

    monkeypatch.setattr(run, "violations", violations)
    assert main(["--requests", "2", "--shape", "as_key"]) == FAILED
    assert "WRONG as_key: a sum is wrong" in capsys.readouterr().out


def test_a_request_without_a_reply_in_time_fails_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    # No reply comes within a millisecond's thousandth of them all.
    assert main(["--requests", "50", "--shape", "as_key", "--timeout", "0.001"]) == FAILED
    assert "has no reply: TimeoutError" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--requests", "0"], "--requests is a number from 1 to 10000, got 0"),
        (["--requests", "10001"], "--requests is a number from 1 to 10000, got 10001"),
        (["--slots", "2"], "--slots is a number from 3 to 4096, got 2"),
        (["--workers", "2"], "--workers needs --kafka"),
        (["--kafka", "there", "--workers", "2"], "--kafka is HOST:PORT of a broker that runs, got there"),
        (["--kafka", "127.0.0.1:9092", "--workers", "9"], "--workers is a number from 1 to 8, got 9"),
        (["--timeout", "nan"], "--timeout is a number from 0.001 to 600, got nan"),
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
        assert main(["--kafka", services.kafka_address, "--workers", "2", "--requests", "40"]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("40 requests a shape on a cluster of 2 workers, 8 slots")
    assert len(lines) == 7
