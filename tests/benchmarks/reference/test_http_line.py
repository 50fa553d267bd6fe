"""The line over HTTP: what it is given, what its table says, and one real window of each of its lines."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.driver.workload import Audit
from benchmarks.reference.__main__ import main
from benchmarks.reference.http import FORMS, STYX, Window, table
from benchmarks.reference.line import OK, USAGE
from tests.benchmarks.driver.made import result
from tests.benchmarks.reference.test_postgres_real import need_postgres


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--turns", "0"], "--turns"),
        (["--processes", "0"], "--processes"),
        (["--processes", "3", "--connections", "2"], "--connections"),
        (["--loaded"], "--loaded"),
        (["--concurrency", "0"], "--concurrency"),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["http", *words]) == USAGE
    assert why in capsys.readouterr().err


def test_the_table_names_what_an_answer_means_and_what_is_wrong() -> None:
    good, bad = Window(line=STYX, turn=1, result=result()), Window(line="SERIALIZABLE", turn=1, result=result())
    bad.result.audit = Audit([], ["money is missing"])
    lines = table([good, bad], "off").splitlines()
    assert [line.rstrip()[-3:].strip() for line in lines[1:3]] == ["no", "YES"]
    assert lines[3] == "an answer means: styx dev, fsync before each answer; PostgreSQL, answered before fsync"
    # Of the servers alone: the made worker has 5,000 µs a transaction.
    assert good.server_us == pytest.approx(5000)


@pytest.mark.slow
def test_each_line_answers_the_same_transfers_and_keeps_all_money(tmp_path: Path) -> None:
    need_postgres()
    out = tmp_path / "http.json"
    words = ["--connections", "4", "--processes", "1", "--concurrency", "8", "--keys", "100", "--duration", "1"]
    assert main(["http", *words, "--warm-up", "0.2", "--quiet", "--out", str(out)]) == OK
    rows = msgspec.json.decode(out.read_bytes(), type=list[Window])
    assert [row.line for row in rows] == [STYX, *FORMS]
    for row in rows:
        assert row.result.throughput > 0
        assert {*row.result.errors} <= {"aborted:InsufficientFunds"}
        assert row.result.audit is not None
        assert row.result.audit.violations == []
    assert [row.result.deployment.get("default_transaction_isolation") for row in rows] == [
        None,
        "serializable",
        "read committed",
    ]
