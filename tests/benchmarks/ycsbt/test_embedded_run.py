"""The command from end to end, on an engine in this process: it loads, runs, audits, and its exit status tells."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

pytestmark = pytest.mark.slow

MIXTURE = "--keys 50 --zipf 0.9 --multi-partition 0.5 --read-only 0.2 --read-keys 50 --balance 2000 --overdraft 0.1"


def run(command: str) -> int:
    from benchmarks.driver.command import main
    from benchmarks.ycsbt.options import add_options, make_workload

    return main("ycsbt", add_options, make_workload, command.split())


def test_a_run_passes_and_its_witness_is_what_the_audit_goes_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, witness = tmp_path / "data", tmp_path / "witness"
    brief = "--rate 400 --warm-up 0.1 --duration 0.6 --quiet"
    assert run(f"run {brief} {MIXTURE} --data-dir {data} --witness {witness}") == 0
    shown = capsys.readouterr().out
    assert "aborted:InsufficientFunds" in shown
    assert "all 50 accounts" in shown
    assert "reads of all accounts that take part: each saw the same sum" in shown

    assert run(f"audit {MIXTURE} --data-dir {data}") == 0
    assert run(f"audit {MIXTURE} --data-dir {data} --witness {witness}") == 0
    capsys.readouterr()

    file = msgspec.msgpack.decode(witness.read_bytes())
    (report,) = file["clients"]
    report["moved"][1] += 1
    witness.write_bytes(msgspec.msgpack.encode(file))
    assert run(f"audit {MIXTURE} --data-dir {data} --witness {witness}") == 1
    shown = capsys.readouterr().out
    assert "rather than" in shown
    assert "witnesses the audit was not given" in shown
    assert run(f"run {brief} {MIXTURE} --data-dir {data} --loaded") == 1
    assert "witnesses the audit was not given" in capsys.readouterr().out


def test_money_that_is_lost_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    brief = "--keys 50 --rate 400 --warm-up 0.1 --duration 0.4 --quiet"
    assert run(f"run {brief} --lose account.credit=0.1") == 1
    shown = capsys.readouterr().out
    assert "LOST         on purpose, what account.credit wrote" in shown
    assert "were lost" in shown.splitlines()[-2]


def test_accounts_that_cannot_be_are_refused_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run --partitions 1 --multi-partition 0.5") == 2
    assert "all 10000 accounts are in one partition" in capsys.readouterr().err
