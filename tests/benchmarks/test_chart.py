"""The chart says what was measured."""

from pathlib import Path

import pytest

from benchmarks.micro.comparison import Comparison

pytestmark = pytest.mark.slow


def test_the_chart_shows_medians_and_the_median_of_the_ratios(tmp_path: Path) -> None:
    from benchmarks.micro.chart import write_chart

    # The median of the ratios (10, 20, 12) is not the ratio of the medians (20 / 1 = 20).
    comparison = Comparison("few keys", bare_us=[1.0, 1.0, 2.0], engine_us=[10.0, 20.0, 24.0])
    write_chart(tmp_path / "chart.svg", [comparison], "Snake 9.9")
    text = (tmp_path / "chart.svg").read_text("utf-8")
    for shown in ("few keys", "12.0 times the bare loop", ">20.0<", ">1.0<", "Snake 9.9"):
        assert shown in text
    assert comparison.ratio == 12.0


def test_the_same_figures_give_the_same_file(tmp_path: Path) -> None:
    from benchmarks.micro.chart import write_chart

    comparison = Comparison("few keys", bare_us=[1.0], engine_us=[10.0])
    for name in ("one.svg", "two.svg"):
        write_chart(tmp_path / name, [comparison], "Snake 9.9")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
