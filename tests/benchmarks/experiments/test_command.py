"""The command line of the experiments, and the targets on real services: that they run, not what they find."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.experiments.__main__ import EXPERIMENTS, main
from benchmarks.reference.line import FAILED, OK, USAGE


def test_without_a_name_it_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert all(f"{name} --help" in said for name in EXPERIMENTS)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == OK
    assert "--window" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["targets", "--only", "speed"], "--only speed"),
        (["targets", "--runs", "0"], "--runs"),
        (["targets", "--window", "0"], "--window"),
        (["targets", "--clients", "0"], "--clients"),
        (["targets", "--keys", "1"], "--keys"),
        (["targets", "--many-keys", "10"], "--many-keys"),
        (["latency", "--workers", "1,x"], "--workers"),
        (["latency", "--workers", "0"], "--workers"),
        (["skew", "--exponents", "0,1.2"], "--exponents"),
        (["scaling", "--shares", "2"], "--shares"),
        (["scaling", "--rate", "-1"], "--rate"),
        (["snapshots", "--interval", "0"], "--interval"),
        (["snapshots", "--window", "1"], "--window"),
        (["recovery", "--workers", "1"], "--workers"),
        (["recovery", "--over-time", "1"], "--over-time"),
        (["breakdown", "--sampled", "0"], "--sampled"),
    ],
)
def test_wrong_options_are_told_before_anything_is_started(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == USAGE
    assert said in capsys.readouterr().err


SHORT = ["--runs", "1", "--repeats", "0", "--window", "1", "--warm-up", "0.5", "--keys", "200", "--slots", "2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words", "charts"),
    [
        ("snapshots", ["--interval", "0.4", "--over-time", "3"], ["snapshots", "snapshots-none", "snapshots-rate"]),
        ("recovery", ["--over-time", "8", "--rate", "100", "--snapshot-interval", "1"], ["recovery"]),
    ],
)
def test_an_experiment_on_real_services(name: str, words: list[str], charts: list[str], tmp_path: Path) -> None:
    assert main([name, *SHORT, *words, "--out", str(tmp_path)]) == OK
    report = json.loads((tmp_path / f"{name}.json").read_text("utf-8"))
    assert report["found"]
    marks = {mark["what"] for each in report["found"] for mark in each["marks"]}
    assert marks >= ({"snapshot"} if name == "snapshots" else {"worker killed", "recovered (worker lost)"})
    assert all("<svg" in (tmp_path / f"{chart}.svg").read_text("utf-8") for chart in charts)


@pytest.mark.slow
def test_a_target_on_real_services(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--only", "latency-by-echo", "--runs", "1", "--repeats", "0", "--window", "1", "--warm-up", "0.5"]
    assert main(["targets", *words, "--keys", "100", "--slots", "2", "--out", str(tmp_path)]) in (OK, FAILED)
    report = json.loads((tmp_path / "targets.json").read_text("utf-8"))
    (target,) = report["targets"]
    assert target["name"] == "latency-by-echo"
    # A machine that is busy with other things may not even hold this.
    assert len(target["runs"]) == 1 or "answered of" in target["failed"]
    assert {step["subject"] for step in report["steps"]} == {"styx", "echo"}
    assert (tmp_path / "targets.txt").read_text("utf-8") == capsys.readouterr().out
    assert "<svg" in (tmp_path / "targets.svg").read_text("utf-8")
