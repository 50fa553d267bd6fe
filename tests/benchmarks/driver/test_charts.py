"""The charts say what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.driver.command import OK, USAGE, main
from benchmarks.driver.probe import Mark
from benchmarks.driver.result import Result, SearchResult, Step, write
from tests.benchmarks.driver.counting import add_options, make_workload
from tests.benchmarks.driver.made import result

pytestmark = pytest.mark.slow


def plot(*words: object) -> int:
    return main("counting", add_options, make_workload, ["plot", *map(str, words)])


def searched(path: Path, workers: int, rate: float) -> Path:
    steps = [Step(rate=each, reasons=[], result=result(rate=each)) for each in (rate / 2, rate)]
    write(
        path,
        SearchResult(
            workload="counting",
            settings={},
            deployment={"workers": workers},
            bound_s=1.0,
            rate=rate,
            ended="",
            steps=steps,
        ),
    )
    return path


def ran(path: Path, **changes: object) -> Path:
    made: Result = result()
    made.marks = [Mark(at_s=0.5, what="snapshot"), Mark(at_s=0.7, what="killed a worker")]
    for name, value in changes.items():
        setattr(made, name, value)
    write(path, made)
    return path


def test_each_kind_shows_its_figures(tmp_path: Path) -> None:
    one, two = searched(tmp_path / "one.json", 1, 100), searched(tmp_path / "two.json", 2, 190)
    run = ran(tmp_path / "run.json", cpu_us={"worker": 123.0, "broker": 45.0})
    out = tmp_path / "chart.svg"
    for kind, files, shown in (
        ("latency", [one, two], ["one p99", "two p50", "transactions/s", "latency in ms"]),
        ("timeline", [run], ["snapshot", "killed a worker", "replies/s"]),
        ("scaling", [one, two], ["workers", "highest rate"]),
        ("cpu", [run], [">123<", ">45<", "worker", "broker"]),
    ):
        assert plot(*files, "--kind", kind, "--out", out, "--title", "how it went") == OK
        text = out.read_text("utf-8")
        for words in (*shown, "how it went", "abacus, 2 processors, 1.0 GiB", "1 client process"):
            assert words in text, kind


def test_the_same_figures_give_the_same_file(tmp_path: Path) -> None:
    one = searched(tmp_path / "one.json", 1, 100)
    for name in ("a.svg", "b.svg", "a.png"):
        assert plot(one, "--out", tmp_path / name) == OK
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_files_that_a_chart_cannot_show_are_refused(tmp_path: Path) -> None:
    one, run = searched(tmp_path / "one.json", 1, 100), ran(tmp_path / "run.json")
    for words in ([one, "--kind", "timeline"], [run, "--kind", "scaling"], [one, "--kind", "cpu"]):
        assert plot(*words, "--out", tmp_path / "chart.svg") == USAGE
    assert plot(one, "--out", tmp_path / "chart.pdf") == USAGE
