"""`styx sql`: tables of a snapshot, results in each format, limits, and its end by Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from styx.testing.patience import PATIENCE_SECONDS
from tests.cli.conftest import Styx
from tests.query.conftest import Filled, filled  # noqa: F401 - a fixture

APP = "tests.query.shop:app"
ENDLESS = "with recursive r as (select 1 as n union all select n + 1 from r) select max(n) from r"


@pytest.fixture
def data(filled: Filled) -> tuple[str, str]:  # noqa: F811 - the fixture
    """The options that name the filled directory."""
    return "--data-dir", str(filled.directory)


def run(*words: str) -> subprocess.Popen[bytes]:
    """A command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-m", "styx", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )


def lives(process: str) -> bool:
    """Whether it runs: one that has ended stays in the list until its new parent has looked."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_tables(styx: Styx, data: tuple[str, str]) -> None:
    ran = styx("sql", *data)
    assert ran.status == 0
    lines = ran.out.splitlines()
    assert "account.state(key str, value json)" in lines
    assert "order.lines(entity_key int, key_2 str, number int, key str, amount int)" in lines
    assert not any(line.startswith("cart.mine(") for line in lines)
    of_app = styx("sql", "--app", APP, *data).out.splitlines()
    assert "cart.mine(key str, seller str, count int, price Decimal, max_price Decimal)" in of_app


def test_formats(data: tuple[str, str]) -> None:
    query = "select key, value from counter.state order by key"
    told: dict[str, bytes] = {}
    for format in ("table", "json", "csv", "arrow"):
        out, err = run("sql", query, "--format", format, *data).communicate(timeout=PATIENCE_SECONDS)
        assert err.startswith(b"styx: the snapshot of epoch ")
        told[format] = out
    keys = [-5, 7, 10, 2**40]
    assert [msgspec.json.decode(line) for line in told["json"].splitlines()] == [
        {"key": key, "value": 2 if key == 7 else 1} for key in keys
    ]
    assert told["csv"].splitlines()[1] == b"-5,1"
    assert told["table"].splitlines()[2].split() == [b"-5", b"1"]
    assert pa.ipc.open_stream(told["arrow"]).read_all().column("key").to_pylist() == keys


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        (("select 1", "--rows", "0"), 2, "--rows is a number above 0, got 0"),
        (("select 1", "--seconds", "nan"), 2, "--seconds is a number above 0, got nan"),
        (("select 1", "--format", "xml"), 2, "--format"),
        (("selec 1",), 1, "syntax error"),
        (("drop table cart.items",), 1, "only a SELECT may run, and this is DROP"),
        (("select * from cart.mine",), 1, "The tables are: account.item-sold, account.state, "),
        ((ENDLESS, "--seconds", "0.2"), 1, "has not ended within 0.2 s"),
        (("select repeat('x', 1000000000)", "--memory", "100"), 1, "needs more than 100 MiB"),
    ],
)
def test_refusals(styx: Styx, data: tuple[str, str], words: tuple[str, ...], status: int, complaint: str) -> None:
    ran = styx("sql", *words, *data)
    assert (ran.status, ran.out) == (status, "")
    assert complaint in ran.err


def test_the_rows_up_to_the_limit_are_given(data: tuple[str, str]) -> None:
    process = run("sql", "select * from range(5000)", "--rows", "3000", "--format", "json", *data)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 1
    assert out.count(b"\n") == 3_000
    assert b"the result has more than 3000 rows: --rows N allows more" in err


@pytest.mark.parametrize("seconds", [0.0, 2.0])
def test_interrupted(data: tuple[str, str], seconds: float) -> None:
    """While the query's process begins, and while the query runs."""
    process = run("sql", ENDLESS, *data)
    assert process.stderr is not None
    process.stderr.readline()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (running := children.read_text().split()):
        pass
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    assert err == b"styx: interrupted\n"
    until = time.monotonic() + PATIENCE_SECONDS
    while lives(running[0]):
        assert time.monotonic() < until, "the query's process goes on"


def test_without_the_extra(styx: Styx, data: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for missing in ("pyarrow", "duckdb"):
        with monkeypatch.context() as patched:
            patched.setitem(sys.modules, missing, None)
            ran = styx("sql", "select 1", *data)
        assert (ran.status, ran.out) == (2, "")
        assert f"lacks {missing}: pip install 'styx-dataflow[sql]'" in ran.err
