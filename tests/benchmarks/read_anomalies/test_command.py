"""The command of torn reads: the control tears, the other two ways never do, and what is wrong fails the command."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks.read_anomalies.__main__ import FAILED, OK, USAGE, main
from benchmarks.read_anomalies.app import app, cart, change, price
from benchmarks.read_anomalies.report import BY_RATE, Step, lines
from benchmarks.read_anomalies.step import WAYS, Found, Wanted, run_step
from styx.client.http import HttpClient
from styx.errors import SnapshotTooOld
from styx.model.limits import Limits
from styx.testing import embedded_cluster
from tests.gateway.running import running

WANTED = Wanted("apart", 400, 1, 1.0, 0.01, 1)


@pytest.mark.slow
def test_a_run_tears_only_the_control(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--rates", "300", "--seconds", "1", "--versions", "1,64", "--pause-ms", "10", "--out", str(tmp_path)]
    assert main(small) == OK
    report = json.loads((tmp_path / "read_anomalies.json").read_text())
    steps = {(each["part"], each["way"], each["items"], each["versions"]): each for each in report["found"]}
    assert len(steps) == 8
    assert steps["by rate", "apart", 1, 16]["torn"] > 0
    assert not any(each["torn"] for each in steps.values() if each["way"] != "apart")
    assert steps["by versions", "pinned", 1, 1]["too_old"] > 0 == steps["by versions", "pinned", 1, 64]["too_old"]
    assert all(each["reads"] and each["changes"] and not each["failures"] for each in steps.values())
    assert (tmp_path / "read_anomalies.svg").exists()
    assert (tmp_path / "read_versions.svg").exists()
    assert capsys.readouterr().out == (tmp_path / "read_anomalies.txt").read_text()


def test_what_two_reads_see_when_something_changes_between_them() -> None:
    """Each way, with a change between the two reads of every pair."""

    async def run() -> None:
        async with (
            embedded_cluster(app, limits=Limits(versions_max=1)) as cluster,
            running(cluster.engine) as served,
            HttpClient(served.url) as client,
        ):

            async def busy(seconds: float) -> None:
                await cluster.call(price, 0, change)
                await cluster.call(price, 0, change)

            await cluster.call(price, 0, change)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("benchmarks.read_anomalies.step.pause", busy)
                patch.setattr("benchmarks.read_anomalies.step.ATTEMPTS_MAX", 3)
                assert await WAYS["apart"](client, 0, WANTED, Found()) == (1, 3)
                found = Found()
                with pytest.raises(SnapshotTooOld, match="3 attempts"):
                    await WAYS["pinned"](client, 0, WANTED, found)
                assert found.too_old == 3
            assert await WAYS["once"](client, 0, WANTED, Found()) == (9, 9)
            assert await client.read(cart, 7, "shown", 0) == [9, 9]

    asyncio.run(run())


def test_a_read_that_fails_fails_the_step() -> None:
    async def run() -> Found:
        async with HttpClient("http://127.0.0.1:9") as nobody:
            return await run_step(nobody, WANTED)

    found = asyncio.run(run())
    step = Step(BY_RATE, 16, WANTED, found)
    assert step.wrong
    assert len(found.failures) == 300
    assert lines(step, first=False)[-1] == "FAILED and 297 more"
    assert Step(BY_RATE, 16, WANTED, Found(reads=9, torn=2)).wrong is False
    assert Step(BY_RATE, 16, Wanted("once", 400, 1, 1.0, 0.0, 1), Found(reads=9, torn=2)).wrong


@pytest.mark.parametrize(
    "arguments",
    [["--rates", "0"], ["--versions", "x"], ["--seconds", "0.1"], ["--pause-ms", "-1"], ["--long-pause-ms", "5000"]],
)
def test_options_that_make_no_sense(arguments: list[str]) -> None:
    assert main(arguments) == USAGE


def test_a_url_where_nobody_is_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path), "--rates", "100", "--seconds", "0.5"]
    assert main([*out, "--url", "http://127.0.0.1:9"]) == FAILED
    assert capsys.readouterr().err
