"""The command `compare`: what it refuses, and both lines measured, checked and written."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from benchmarks.marketplace import settings
from benchmarks.marketplace.comparison.command import USAGE, main, zipfs_of
from benchmarks.marketplace.comparison.figures import POSTGRES, STYX, Figures
from benchmarks.reference.postgres_server import find_binaries
from styx.errors import ConfigurationError
from tests.docs.snippets import ROOT


def compare(*words: str) -> tuple[int, str]:
    """Exit status and output, in a process of its own: the application reads its environment once."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MARKETPLACE_")}
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.marketplace", "compare", *" ".join(words).split()],
        cwd=ROOT,
        env=inherited,
        check=False,
        capture_output=True,
        text=True,
    )
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("words", "setting", "why"),
    [
        ("--mix a", {}, "PostgreSQL has checkout and price alone"),
        ("--mix nowhere", {}, "there is no mix nowhere"),
        ("--loaded", {}, "--loaded"),
        ("--resent 0.1", {}, "--resent"),
        ("--turns 0", {}, "--turns"),
        ("--processes 0", {}, "--processes"),
        ("--workers 17", {}, "--workers"),
        ("--processes 4 --connections 3", {}, "--connections"),
        ("--concurrency 0", {}, "--concurrency"),
        ("", {"PAYMENT": "after"}, "MARKETPLACE_PAYMENT"),
        ("", {"REPLICATION": "eventual"}, "MARKETPLACE_REPLICATION"),
        ("", {"REJECTED": 5.0}, "MARKETPLACE_REJECTED"),
        ("", {"PROVIDER": "http://127.0.0.1:1"}, "provider"),
        ("--provider http://127.0.0.1:1", {}, "provider"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    words: str,
    setting: dict[str, object],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in ({"PAYMENT": "together"} | setting).items():
        monkeypatch.setattr(settings, name, value)
    assert main(words.split()) == USAGE
    assert why in capsys.readouterr().err


def test_uniform_sellers_come_first() -> None:
    assert zipfs_of(argparse.Namespace(seller_zipf=0.8)) == [0.0, 0.8]
    assert zipfs_of(argparse.Namespace(seller_zipf=0.0)) == [0.0]


@pytest.fixture
def with_postgres() -> None:
    try:
        find_binaries()
    except ConfigurationError as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.usefixtures("with_postgres")
def test_both_lines_are_measured_and_checked(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    status, shown = compare(
        "--size 0.01 --concurrency 4 --duration 1 --warm-up 0.5 --connections 2 --synchronous-commit off",
        f"--checkout statements --seller-zipf 1.2 --clients 2 --out {out}",
    )
    assert status == 0, shown
    rows = msgspec.json.decode(out.read_bytes(), type=list[Figures])
    assert [(row.line, row.zipf, row.turn) for row in rows] == [
        (line, zipf, 1) for zipf in (0.0, 1.2) for line in (STYX, POSTGRES)
    ]
    for row in rows:
        assert row.result.throughput > 0
        assert row.result.errors == {}
        assert row.result.audit is not None
        assert row.result.audit.violations == []
        assert row.server_us > 0
    settings = rows[1].result.deployment
    assert (settings["fsync"], settings["synchronous_commit"], settings["connections"]) == ("on", "off", 2)
    assert (settings["default_transaction_isolation"], settings["checkout"]) == ("serializable", "statements")
    assert "Zipf 1.2:" in shown


@pytest.mark.slow
@pytest.mark.usefixtures("with_postgres")
def test_ours_may_be_a_cluster_behind_its_gateway(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    status, shown = compare(
        "--on cluster --workers 1 --size 0.01 --concurrency 4 --duration 1 --warm-up 0.5 --connections 2",
        f"--seller-zipf 0 --out {out}",
    )
    assert status == 0, shown
    ours, theirs = msgspec.json.decode(out.read_bytes(), type=list[Figures])
    assert (ours.line, theirs.line) == (STYX, POSTGRES)
    deployment = ours.result.deployment
    assert (deployment["kind"], deployment["workers"], deployment["through"]) == ("cluster", 1, "gateway")
    assert {"worker", "gateway", "broker"} <= ours.result.cpu_us.keys()
    for row in (ours, theirs):
        assert row.result.throughput > 0
        assert row.result.errors == {}
        assert row.result.audit is not None
        assert row.result.audit.violations == []
