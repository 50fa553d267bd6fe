"""The tables and charts of what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.experiments.marketplace.measured import Measured
from benchmarks.experiments.marketplace.shown import show
from benchmarks.experiments.marketplace.table import TABLE
from benchmarks.experiments.report import Shown
from tests.benchmarks.experiments.marketplace.made import run_of


def seen(setting: str, rate: float, number: float | None = None, apart: str = "") -> Measured:
    measured = Measured(setting=setting, number=number)
    measured.add(run_of(rate, checkout=900, dashboard=100), apart)
    return measured


def drawn(shown: Shown, chart: str, tmp_path: Path) -> str:
    path = tmp_path / "chart.svg"
    shown.charts[chart](path)
    return path.read_text("utf-8")


def rows(shown: Shown) -> list[list[str]]:
    return [[cell for cell in line.split("  ") if cell.strip()] for line in shown.text.splitlines()]


def test_costs_are_beside_the_first_setting(tmp_path: Path) -> None:
    shown = show("it", TABLE["logging"], [seen("no archives", 100), seen("archives", 90)])
    assert [cell.strip() for cell in rows(shown)[3]][:4] == ["archives", "90", "90% (90%-90%)", "100% (100%-100%)"]
    assert {*shown.charts} == {"it"}
    svg = drawn(shown, "it", tmp_path)
    assert "% of no archives" in svg
    assert "processor time of one" in svg


def test_numbers_are_gone_through_beside_the_first_setting_and_the_first_number(tmp_path: Path) -> None:
    rates = {("no dashboards", 0.0): 100, ("dashboards", 0.0): 80, ("no dashboards", 1.2): 50, ("dashboards", 1.2): 60}
    found = [seen(setting, rate, number, "dashboard") for (setting, number), rate in rates.items()]
    shown = show("it", TABLE["skew"], found)
    headings, _, *lines = rows(shown)
    assert [each.strip() for each in headings][:6] == [
        *("Zipf exponent of the sellers", "setting", "transactions/s", "without dashboard"),
        *("by no dashboards", "its processor time"),
    ]
    last = [cell.strip() for cell in lines[-1]]
    assert last[:5] == ["1.2", "dashboards", "60", "54", "120% (120%-120%)"]
    assert last[6] == "75% (75%-75%)", "of this setting without a skew"
    svg = drawn(shown, "it", tmp_path)
    assert all(text in svg for text in ("transactions without dashboard/s", "dashboards p99", "Zipf exponent"))


@pytest.mark.parametrize("name", ["latency", "vmodb-latency"])
def test_latencies_are_of_each_kind(name: str, tmp_path: Path) -> None:
    settings = [setting.name for setting in TABLE[name].settings]
    shown = show("it", TABLE[name], [seen(setting, 100) for setting in settings])
    assert {*shown.charts} == {"it-kinds"}
    assert shown.text.count("checkout") == shown.text.count("dashboard") == len(settings)
    svg = drawn(shown, "it-kinds", tmp_path)
    assert all(text in svg for text in ("checkout", "dashboard", f"{settings[-1]} p99"))


def test_latencies_of_each_kind_over_numbers_are_a_panel_each(tmp_path: Path) -> None:
    shown = show("it", TABLE["vmodb-epochs"], [seen("as it is", 100, number) for number in (1.0, 16.0)])
    assert {*shown.charts} == {"it", "it-kinds"}
    svg = drawn(shown, "it-kinds", tmp_path)
    assert "checkout, ms" in svg
    assert "dashboard, ms" in svg
    assert "by 1" in shown.text


def test_what_an_experiment_came_to_before_it_failed_is_shown(tmp_path: Path) -> None:
    found = [seen("in memory", 100, 1.0), seen("log", 90, 1.0), seen("log and snapshots", 80, 1.0)]
    shown = show("it", TABLE["vmodb-tpcc"], [*found, seen("in memory", 100, 2.0)])
    assert len(shown.text.splitlines()) == 6
    assert "warehouses" in drawn(shown, "it", tmp_path)
    assert "warehouses" in show("it", TABLE["vmodb-tpcc"], found[:1]).text
