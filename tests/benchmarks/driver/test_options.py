"""Options that do not fit together are refused, and say why."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks.driver.command import USAGE, main
from benchmarks.driver.options import (
    add_deployment_options,
    add_load_options,
    add_run_options,
    check,
    pids_of,
    plan_of,
    worker_death_of,
)
from benchmarks.driver.worker_death import WorkerDeath
from styx.errors import ConfigurationError
from tests.benchmarks.driver.counting import add_options, make_workload


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_deployment_options(parser)
    add_load_options(parser)
    add_run_options(parser)
    return parser.parse_args(words)


def test_slots_depend_on_the_deployment() -> None:
    embedded, cluster = parsed(), parsed("--on", "cluster")
    check(embedded)
    check(cluster)
    assert (embedded.slots, cluster.slots) == (4, 16)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--clients", "2"], "--clients needs"),
        (["--gateway"], "--gateway needs"),
        (["--on", "cluster", "--data-dir", "d"], "--data-dir"),
        (["--in-memory", "--data-dir", "d"], "--in-memory"),
        (["--on", "cluster", "--in-memory"], "--in-memory"),
        (["--on", "cluster", "--epoch-transactions", "5"], "--epoch-transactions"),
        (["--epoch-transactions", "0"], "--epoch-transactions"),
        (["--on", "cluster", "--workers", "17"], "--workers"),
        (["--on", "cluster", "--snapshot-interval", "0"], "--snapshot-interval"),
    ],
)
def test_options_that_do_not_fit_are_refused(words: list[str], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        check(parsed(*words))


def test_a_data_directory_is_looked_at_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for place in (file, file / "below"):
        with pytest.raises(ConfigurationError, match=f"--data-dir {place} cannot be used"):
            check(parsed("--data-dir", str(place)))
    check(parsed("--data-dir", str(tmp_path / "new" / "one")))
    assert (tmp_path / "new" / "one").is_dir()


def checked(*words: str) -> argparse.Namespace:
    options = parsed(*words)
    check(options)
    return options


def test_the_plan_is_in_seconds() -> None:
    plan = plan_of(checked("--on", "cluster", "--tick", "2", "--clients", "3", "--warm-up", "1"), 500, give_up_s=1.0)
    assert (plan.tick_s, plan.clients, plan.warm_up_s, plan.rate, plan.give_up_s) == (0.002, 3, 1, 500, 1)


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="--rate"):
        plan_of(checked(), 0)


def test_a_worker_is_killed_within_the_window_and_replaced_there() -> None:
    cluster = ["--on", "cluster", "--workers", "3"]
    assert worker_death_of(checked()) is None
    assert worker_death_of(checked(*cluster, "--kill-worker", "4")) == WorkerDeath(2, 4.0, 6.0)
    assert worker_death_of(checked(*cluster, "--kill-worker", "0", "--replace-after", "5")) == WorkerDeath(2, 0.0, 5.0)
    for words, why in (
        (["--kill-worker", "4"], "--on cluster"),
        (["--replace-after", "1"], "needs --kill-worker"),
        ([*cluster, "--kill-worker", "8"], "within the window"),
        ([*cluster, "--kill-worker", "-1"], "within the window"),
        ([*cluster, "--kill-worker", "nan"], "within the window"),
        ([*cluster, "--kill-worker", "4", "--replace-after", "6"], "within the window"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            worker_death_of(checked(*words))


def test_replies_are_waited_for_longer_if_a_worker_is_killed() -> None:
    def patience(*words: str) -> tuple[float, float, float]:
        options = checked(*words)
        return options.timeout, options.drain, options.interval

    assert patience() == (30, 30, 1)
    assert patience("--on", "cluster", "--kill-worker", "4") == (120, 120, 0.1)
    asked = ["--timeout", "7", "--drain", "8", "--interval", "2"]
    assert patience("--on", "cluster", "--kill-worker", "4", *asked) == patience(*asked) == (7, 8, 2)


def test_named_processes_are_by_role() -> None:
    assert pids_of(parsed("--pid", "worker=3", "--pid", "worker=4", "--pid", "broker=5")) == {
        "worker": [3, 4],
        "broker": [5],
    }
    with pytest.raises(ConfigurationError, match="a PID is a number"):
        pids_of(parsed("--pid", "worker=x"))
    with pytest.raises(ConfigurationError, match="ROLE=VALUE"):
        pids_of(parsed("--pid", "3"))


@pytest.mark.parametrize(
    "words",
    [
        ["load"],
        ["audit", "--on", "cluster"],
        ["run", "--on", "nowhere"],
        ["run", "--rate", "-1"],
        ["run", "--kill-worker", "1"],
        ["run", "--timeout", "0"],
        ["run", "--timeout", "nan"],
        ["run", "--snapshot-interval", "nan"],
        ["run", "--out", "no/such/place.json"],
        ["run", "--witness", "no/such/place"],
        ["search", "--precision", "0"],
        ["search", "--tries", "0"],
        ["sweep", "--bound", "0"],
        ["sweep", "--bound", "nan"],
        ["sweep", "--factor", "1"],
        ["sweep", "--finer", "-1"],
        ["sweep", "--first-rate", "0"],
        ["run", "--lose", "counter.ad"],
        ["run", "--lose", "counter.add=2"],
        ["run", "--lose", "counter.add", "--on", "cluster"],
        ["run", "--lose", "counter.add", "--no-audit"],
        ["plot", "none.json", "--out", "chart.svg"],
    ],
)
def test_wrong_usage_is_told_without_a_traceback(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main("counting", add_options, make_workload, words) == USAGE
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize("command", ["run", "search", "sweep", "load", "audit", "plot"])
def test_every_option_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main("counting", add_options, make_workload, [command, "--help"])
    assert ended.value.code == 0
    assert "SECONDS" in capsys.readouterr().out or command == "plot"
