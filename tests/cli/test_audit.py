"""`styx audit`: its verdicts, exit codes and options, on data directories."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import styx as library
from styx.audit.verdict import AGREED, DIFFERS, UNJUDGED, Verdict, decode_verdict
from tests.audit import planted
from tests.cli.conftest import Styx

APP = "tests.audit.planted:app"


@pytest.fixture(autouse=True)
def imported() -> Iterator[None]:
    """The command adds to the path."""
    path = list(sys.path)
    yield
    sys.path[:] = path


def recorded(directory: Path, *calls: str) -> Path:
    async def run() -> None:
        async with library.embedded(planted.app, directory, snapshot_interval=1000.0) as client:
            await client.call("thing", "a", "add")
            assert await client.engine.snapshot()
            for call in ("add", *calls):
                await client.call("thing", call, call)

    asyncio.run(run())
    return directory


def test_a_verdict_as_a_line_of_json(styx: Styx, tmp_path: Path) -> None:
    ran = styx("audit", APP, "--data-dir", str(recorded(tmp_path / "data", "order")), "--json")
    verdict = decode_verdict(ran.out.encode())
    assert (ran.status, verdict.outcome) == (1, DIFFERS), ran.err
    assert verdict.origin is not None
    assert verdict.origin.functions == ["thing.order"]
    assert [each.key for each in verdict.first_entries] == ["'order'"]


@pytest.mark.parametrize(
    ("calls", "status", "words"),
    [
        (
            (),
            0,
            ["epochs 2 to 3: agreed: epochs 2, replies 1, events 1, entries of the state 2; workers 1 then, 3 now; "],
        ),
        (
            ("order", "clock"),
            1,
            [
                ": DIFFERS: in replies 1, in entries of the state 2, in events 0; of epochs ",
                "thing['clock'], function clock: ",
                "it began in thing.order: epoch ",
                "thing.order (last in epoch ",
            ],
        ),
    ],
)
def test_what_people_are_told(
    styx: Styx, tmp_path: Path, calls: tuple[str, ...], status: int, words: list[str]
) -> None:
    """The order of a set of texts is another one in the process that replays."""
    ran = styx("audit", APP, "--data-dir", str(recorded(tmp_path / "data", *calls)), "--workers", "3")
    assert ran.status == status, ran.err
    for each in words:
        assert each in ran.out
    assert not list(tmp_path.glob("styx-audit-*"))


def test_what_cannot_be_judged(styx: Styx, tmp_path: Path) -> None:
    directory = str(recorded(tmp_path / "data"))
    ran = styx("audit", APP, "--data-dir", directory, "--json", "--until", "123")
    verdict: Verdict = decode_verdict(ran.out.encode())
    assert (ran.status, verdict.outcome) == (2, UNJUDGED)
    ran = styx("audit", APP, "--data-dir", directory, "--scratch", str(tmp_path / "scratch"), "--scratch-bytes", "10")
    assert (ran.status, "could not be judged: " in ran.out) == (2, True)
    assert list((tmp_path / "scratch").iterdir()) == []
    ran = styx("audit", APP, "--data-dir", directory, "--after", "beginning")
    assert (ran.status, AGREED in ran.out) == (2, False)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "say what to audit: --log and --store of a cluster, or --data-dir"),
        (["--data-dir", "nowhere"], "it could not be judged: nowhere is no data directory"),
        (["--data-dir", "nowhere", "--after", "latest"], "--after is the epoch of a snapshot"),
        (["--data-dir", "nowhere", "--follow", "--until", "3"], "--follow begins at the newest snapshots"),
        (["--data-dir", "nowhere", "--scratch-bytes", "0"], "--scratch-bytes is a number from 1"),
    ],
)
def test_wrong_options(styx: Styx, words: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STYX_LOG", raising=False)
    monkeypatch.delenv("STYX_STORE", raising=False)
    ran = styx("audit", APP, *words)
    assert (ran.status, ran.out) == (2, "")
    assert complaint in ran.err


def test_another_app_s_data(styx: Styx, tmp_path: Path) -> None:
    ran = styx("audit", "proof.chaos_app:app", "--data-dir", str(recorded(tmp_path / "data")))
    assert ran.status == 2
    assert "has the data of app 'planted', and the given one is" in ran.err


def test_a_module_that_fails_is_not_judged(styx: Styx, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")
    ran = styx("audit", f"{tmp_path / 'broken.py'}:app", "--data-dir", str(tmp_path))
    assert (ran.status, "ZeroDivisionError" in ran.err) == (2, True)
