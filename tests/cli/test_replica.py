"""`styx replica` and `styx sql --url`: a process that follows a data directory, asked by a command, and its end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import asyncpg
import pyarrow as pa
import pytest

import styx
from styx.cli import main
from styx.process.ports import free_port
from styx.testing.patience import PATIENCE_SECONDS
from tests.cli.conftest import Styx
from tests.query.conftest import Filled, filled  # noqa: F401 - a fixture
from tests.query.shop import app, change, fill


@contextmanager
def replica(*words: str, lines: list[str] | None = None) -> Iterator[str]:
    """Its URL, and what it has written by then into `lines`; at the end it stops by SIGTERM with status 0."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "styx", "replica", "--port", "0", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            lines = [] if lines is None else lines
            url = ""
            while not (url and any("epoch" in line for line in lines)):
                lines.append(process.stderr.readline())
                assert lines[-1], "".join(lines)
                found = re.search(r"listening at (\S+)", lines[-1])
                url = found[1] if found else url
            yield url
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_SECONDS) == 0
        finally:
            process.kill()


def sql(*words: str) -> tuple[int, bytes, str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run(
        [sys.executable, "-m", "styx", "sql", *words],
        capture_output=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        env=environment,
    )
    return ran.returncode, ran.stdout, ran.stderr.decode()


def test_postgresqls_clients_have_a_port_of_their_own(
    filled: Filled,  # noqa: F811 - the fixture
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO("secret\n"))
    assert main(["keys", "postgres", "ann"]) == 0
    assert main(["keys", "postgres", "nobody"]) == 2, "standard input has no second line"
    users = tmp_path / "users"
    users.write_text(capsys.readouterr().out)
    told: list[str] = []
    port = ("--postgres", f"127.0.0.1:{free_port()}", "--postgres-users", str(users))
    with replica("--data-dir", str(filled.directory), *port, lines=told):
        [found] = [match for each in told if (match := re.search(r"served at 127.0.0.1:(\d+)", each))]

        async def asked(password: str) -> list[tuple[int, str]]:
            connection = await asyncpg.connect(f"postgres://ann:{password}@127.0.0.1:{found[1]}/any")
            try:
                rows = await connection.fetch("select key, value from counter.state where key < $1 order by key", 8)
                return [tuple(row) for row in rows]
            finally:
                await connection.close()

        assert asyncio.run(asked("secret")) == [(-5, "1"), (7, "2")]
        with pytest.raises(asyncpg.InvalidPasswordError):
            asyncio.run(asked("wrong"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--postgres", "127.0.0.1:5432"), "needs --postgres-users FILE"),
        (("--postgres-users", "users"), "need --postgres HOST:PORT"),
        (("--postgres", "nowhere", "--postgres-users", "users"), "nowhere"),
    ],
)
def test_options_of_the_port_that_make_no_sense(
    words: tuple[str, ...],
    told: str,
    filled: Filled,  # noqa: F811 - the fixture
) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "styx", "replica", "--data-dir", str(filled.directory), *words]
    ran = subprocess.run(
        command, capture_output=True, check=False, timeout=PATIENCE_SECONDS, env=environment, text=True
    )
    assert (ran.returncode, told in ran.stderr) == (2, True), ran.stderr


def test_a_replica_is_asked_by_the_command(filled: Filled) -> None:  # noqa: F811 - the fixture
    query = "select key, value from counter.state order by key limit 2"
    with replica("--data-dir", str(filled.directory)) as url:
        status, out, err = sql(query, "--url", url)
        assert (status, out) == (0, b"key  value\n---  -----\n -5  1\n  7  2\n")
        assert re.search(r"styx: the state at the end of epoch \d+, which came [0-9.]+ s ago", err)
        assert sql(query, "--url", url, "--format", "json")[1] == b'{"key":-5,"value":1}\n{"key":7,"value":2}\n'
        assert sql(query, "--url", url, "--format", "csv")[1] == b"key,value\r\n-5,1\r\n7,2\r\n"
        assert pa.ipc.open_stream(sql(query, "--url", url, "--format", "arrow")[1]).read_all().num_rows == 2
        status, out, _ = sql("--url", url)
        assert (status, b"account.state(key str, value json)" in out.splitlines()) == (0, True)
        status, out, err = sql("select * from nothing.there", "--url", url)
        assert (status, out) == (1, b"")
        assert "The tables are: account." in err
        status, _, err = sql("select * from range(20)", "--url", url, "--rows", "10")
        assert (status, "more than 10 rows" in err) == (1, True)
        status, _, err = sql("select 1", "--url", url, "--data-dir", ".styx")
        assert (status, "--url asks a server" in err) == (2, True)
    status, _, err = sql("select 1", "--url", url)
    assert (status, "no replica answers at" in err) == (1, True)


def test_it_takes_later_snapshots_and_the_app_s_types(tmp_path: Path) -> None:
    async def run(last: bool) -> None:
        async with styx.embedded(app, tmp_path, n_slots=5) as client:
            await (change(client) if last else fill(client))

    count = "select count(*) n, sum(price) p from cart.items"
    asyncio.run(run(last=False))
    with replica("--data-dir", str(tmp_path), "--app", "tests.query.shop:app") as url:
        assert json.loads(sql(count, "--url", url, "--format", "json")[1]) == {"n": 60, "p": "442.5"}
        assert b"cart.mine(" in sql("--url", url)[1]
        asyncio.run(run(last=True))
        found: object = None
        for _ in range(60):
            found = json.loads(sql(count, "--url", url, "--format", "json")[1])
            if found != {"n": 60, "p": "442.5"}:
                break
        assert isinstance(found, dict)
        assert found["n"] == 51


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "say whose snapshots: --store, or --data-dir"),
        (("--data-dir", "x", "--store", "s3://a/b"), "and not both"),
        (("--data-dir", "/nowhere"), "is no data directory"),
        (("--data-dir", "x", "--query-rows", "0"), "--query-rows is a number above 0"),
        (("--data-dir", "x", "--waiting", "-1"), "--waiting is a number from 0 on"),
        (("--data-dir", "x", "--drain", "-1"), "--drain is a number of seconds"),
        (("--data-dir", "x", "--host", "0.0.0.0"), "clients would not be authenticated"),
        (("--data-dir", "x", "--http-port", "0", "--http-host", "0.0.0.0"), "give STYX_SECRET"),
        (("--store", "s3://a/b"), "--s3-endpoint"),
        (("--data-dir", "x", "--coordinator", "127.0.0.1:1"), "--coordinator is of a cluster: give the --store"),
        (("--store", "file:///x", "--coordinator", "127.0.0.1:1"), "the cluster's secret is not set"),
        (("--data-dir", "x", "--webhook", "paid"), "--webhook means nothing here"),
    ],
)
def test_wrong_options(styx: Styx, words: tuple[str, ...], complaint: str) -> None:
    ran = styx("replica", *words)
    assert ran.status == 2, ran.err
    assert complaint in ran.err
