"""The experiments' ways through their steps, on deployments that are not there, and what they show of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.experiments import latency, scaling, skew
from benchmarks.experiments.__main__ import main
from benchmarks.reference.line import FAILED, OK
from tests.benchmarks.driver.made import result
from tests.benchmarks.experiments.pretended import pretend


def report(out: Path, name: str) -> Any:
    return json.loads((out / f"{name}.json").read_text("utf-8"))


def test_latency_goes_up_to_what_each_can_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capacities = {"echo": 40_000.0, "1 worker": 10_000.0, "2 workers": 8_000.0}
    pretend(latency, capacities.__getitem__, monkeypatch)
    assert main(["latency", "--runs", "2", "--out", str(tmp_path)]) == OK
    found = report(tmp_path, "latency")["found"]
    assert len(found) == len(capacities) * len(latency.SHARES) * 2
    tops = {name: max(each["throughput"] for each in found if each["what"] == name) for name in capacities}
    assert tops == {name: pytest.approx(0.95 * capacity) for name, capacity in capacities.items()}
    drawn = (tmp_path / "latency.svg").read_text("utf-8")
    assert all(f"{name} p99" in drawn for name in capacities)


def test_a_line_ends_where_its_rate_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(latency, lambda _: 10_000.0, monkeypatch)
    monkeypatch.setattr(latency, "SHARES", (0.5, 1.5, 2.0))
    assert main(["latency", "--workers", "1", "--repeats", "0", "--out", str(tmp_path)]) == OK
    found = report(tmp_path, "latency")["found"]
    assert [(each["what"], each["share"], each["held"]) for each in found] == [
        ("echo", 0.5, True),
        ("1 worker", 0.5, True),
        ("echo", 1.5, False),
        ("1 worker", 1.5, False),
    ]
    lines = (tmp_path / "latency.txt").read_text("utf-8").splitlines()
    assert lines[2].split() == ["echo", "5000", "5000", "5.0", "5.0", "yes"]
    assert lines[3].split()[-1] == "NO"


def test_without_a_rate_that_is_held_there_is_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(latency, lambda _: 10_000.0, monkeypatch)
    monkeypatch.setattr(latency, "SHARES", (1.5,))
    assert main(["latency", "--repeats", "0", "--out", str(tmp_path)]) == OK
    assert not (tmp_path / "latency.svg").exists()


def test_skew_finds_each_highest_rate_and_then_one_rate_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(skew, lambda name: 6_000.0 if "0.9" in name else 10_000.0, monkeypatch)
    assert main(["skew", "--exponents", "0,0.9", "--workers", "2", "--out", str(tmp_path)]) == OK
    uniform, skewed = report(tmp_path, "skew")["found"]
    assert uniform["highest"][0] == pytest.approx(10_000, rel=0.07)
    assert skewed["highest"][0] == pytest.approx(6_000, rel=0.07)
    assert uniform["at_rate"] == skewed["at_rate"] == pytest.approx(0.5 * skewed["highest"][0], rel=0.01)
    made = result().answered
    assert (uniform["p50_us"], skewed["p99_us"]) == ([made.p50_us], [made.p99_us])
    text = (tmp_path / "skew.txt").read_text("utf-8")
    assert f"{skewed['highest'][0] / uniform['highest'][0]:.0%}" in text
    assert "2 workers p99" in (tmp_path / "skew.svg").read_text("utf-8")


def test_skew_shows_what_it_has_if_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(skew, lambda name: 0.0 if "0.9" in name else 10_000.0, monkeypatch)
    words = ["--exponents", "0,0.9", "--workers", "1", "--repeats", "0", "--out", str(tmp_path)]
    assert main(["skew", *words]) == FAILED
    uniform, skewed = report(tmp_path, "skew")["found"]
    assert (len(uniform["highest"]), skewed["highest"]) == (1, [])
    assert (tmp_path / "skew.txt").read_text("utf-8").splitlines()[3].split() == ["1", "0.9", "-", "-", "-", "-"]


def test_scaling_compares_at_a_rate_that_all_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(scaling, lambda name: 2_000.0 if name.startswith("8") else 10_000.0, monkeypatch)
    assert main(["scaling", "--workers", "1,8", "--shares", "0,1", "--runs", "2", "--out", str(tmp_path)]) == OK
    found = report(tmp_path, "scaling")["found"]
    assert [(each["workers"], each["share"]) for each in found] == [(1, 0), (1, 1), (8, 0), (8, 1)]
    assert {each["rate"] for each in found} == {1_600.0}
    assert all(each["messages"] == [2.5, 2.5] for each in found)
    # The made worker has half a processor.
    assert found[0]["cpu_us"] == [pytest.approx(0.5 / 1600 * 1e6)] * 2
    assert "100% multi-partition" in (tmp_path / "scaling.svg").read_text("utf-8")


def test_a_rate_that_is_not_held_is_lowered_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(scaling, lambda _: 1_000.0, monkeypatch)
    words = ["--workers", "1,2", "--shares", "1", "--rate", "1150", "--repeats", "0", "--out", str(tmp_path)]
    assert main(["scaling", *words]) == OK
    assert {each["rate"] for each in report(tmp_path, "scaling")["found"]} == {978}
    assert main(["scaling", *words, "--rate", "9999"]) == FAILED
