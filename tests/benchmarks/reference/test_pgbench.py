"""pgbench as a line: what it is given to run, what is read of its log, and a real run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.driver.environment import processors
from benchmarks.reference.__main__ import main
from benchmarks.reference.line import OK, USAGE
from benchmarks.reference.pgbench_run import WARM_UP_SECONDS, Figures, Load, Logged, parsed, script, words_of
from tests.benchmarks.reference.test_postgres_real import need_postgres


def test_a_transfer_is_the_banks_statement_between_two_accounts() -> None:
    lines = script(50).splitlines()
    assert lines[0] == "\\set debtor random(0, 49)"
    # Of the other 49 accounts: those behind the debtor are one further.
    assert lines[1] == "\\set other random(0, 48)"
    assert lines[2] == "\\set creditor :other + case when :other >= :debtor then 1 else 0 end"
    statement = " ".join(lines[4:])
    assert "WHERE key IN (:debtor::bigint, :creditor::bigint)" in statement
    assert "-:amount::bigint" in statement
    assert "$" not in statement
    assert statement.endswith(";")


def test_it_repeats_without_a_limit_and_keeps_statements_prepared() -> None:
    words = words_of(Load(8, 10.0), Path("/place"))
    assert {"--protocol=prepared", "--max-tries=0", "--client=8", f"--jobs={min(processors(), 8)}"} <= {*words}
    (time,) = (int(word.partition("=")[2]) for word in words if word.startswith("--time="))
    assert time > 10 + WARM_UP_SECONDS
    assert not any(word.startswith("--rate") for word in words)
    assert words_of(Load(8, 10.0, 500.0), Path("/place"))[-1] == "--rate=500"


def test_the_log_has_a_lag_only_at_a_rate() -> None:
    at_most = parsed(["0 199 2241 0 1175850568 995598 2"], with_lag=False)
    at_a_rate = parsed(["0 199 2241 0 1175850568 995598 17 0"], with_lag=True)
    assert at_most == [Logged(1175850568.995598, 2241, 2)]
    assert at_a_rate == [Logged(1175850568.995598, 2241, 0)]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--connections", "0"], "--connections"),
        (["--duration", "0"], "--duration"),
        (["--rates", "0"], "--rates"),
        (["--keys", "1"], "--keys"),
        (["--out", "/nowhere/file"], "--out"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pgbench", *words]) == USAGE
    assert why in capsys.readouterr().err


@pytest.mark.slow
def test_a_real_run_moves_money_and_loses_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_postgres()
    out = tmp_path / "pgbench.json"
    words = ["--keys", "100", "--connections", "4", "--duration", "1", "--rates", "100", "--out", str(out)]
    assert main(["pgbench", *words]) == OK
    rows = msgspec.json.decode(out.read_bytes(), type=list[Figures])
    assert [(row.synchronous_commit, row.asked) for row in rows] == [
        ("on", None),
        ("on", 100.0),
        ("off", None),
        ("off", 100.0),
    ]
    for row in rows:
        assert row.rate > 0
        assert row.p99_us >= row.p50_us > 0
        assert {"pgbench", "postgres backends"} <= {*row.cpu_us}
        assert not row.wrong
    printed = capsys.readouterr().out
    assert "fsync before each answer" in printed
    assert "answered before fsync" in printed
