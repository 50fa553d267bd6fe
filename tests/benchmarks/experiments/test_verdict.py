"""The verdicts: what decides, what is shown, and which targets are chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.experiments.targets.chart import write_chart
from benchmarks.experiments.targets.declared import GROUPS, TARGETS, Target
from benchmarks.experiments.targets.verdict import Run, Verdict, chosen, table
from styx.errors import ConfigurationError

AT_MOST = Target("engine", "cost", "cost of it", 3)
NO_BOUND = Target("workers", "line", "line of it", None, explains="bounds the above")
AT_LEAST = Target("skew", "rate", "rate of it", 0.5, "share", at_least=True)


def verdict(target: Target, *values: float) -> Verdict:
    made = Verdict(target)
    made.runs = [Run(over=value * 10, under=10, unit="µs") for value in values]
    return made


@pytest.mark.parametrize(
    ("target", "values", "holds"),
    [
        (AT_MOST, (2.9, 3.0, 9.0), True),
        (AT_MOST, (1.0, 3.1, 3.2), False),
        (AT_LEAST, (0.1, 0.5, 0.6), True),
        (AT_LEAST, (0.4, 0.49, 0.9), False),
        (AT_MOST, (), False),
    ],
)
def test_the_median_decides(target: Target, values: tuple[float, ...], holds: bool) -> None:
    assert verdict(target, *values).holds is holds


def test_what_failed_does_not_hold_whatever_was_measured_before() -> None:
    made = verdict(AT_MOST, 1.0)
    made.failed = "the broker was lost"
    assert not made.holds
    assert "the broker was lost" in table([made])


def test_share_of_the_bound_that_is_used() -> None:
    assert verdict(AT_MOST, 1.5, 3.0, 6.0).used == (1.0, 0.5, 2.0)
    assert verdict(AT_LEAST, 0.5, 1.0, 0.25).used == (1.0, 0.5, 2.0)
    assert verdict(AT_MOST).used is None


def test_a_line_without_a_target_is_shown_and_not_judged() -> None:
    made = verdict(NO_BOUND, 1.4, 1.2, 1.3)
    assert made.holds
    assert made.used is None
    assert table([verdict(AT_MOST, 2.0), made]).splitlines()[2:] == [
        "cost of it  2 (2-2)           <= 3 times        yes    20 by 10 µs",
        "line of it  1.3 (1.2-1.4)     bounds the above  -      13 by 10 µs",
    ]
    assert made.report()["bound"] is None


def test_a_line_that_could_not_be_measured_does_not_hold() -> None:
    made = verdict(NO_BOUND)
    assert not made.holds
    made.failed = "the audit found: too much money"
    assert table([made]).splitlines()[-1].split("  ")[-1] == made.failed


def test_a_line_stands_under_the_row_that_it_explains() -> None:
    names = [target.name for target in TARGETS]
    assert names[names.index("four-twos-by-two") - 1] == "eight-by-two"
    assert names.index("pgbench-on") == names.index("pgbench-off") - 1
    assert [name for name, target in zip(names, TARGETS, strict=True) if target.bound is None] == [
        "four-twos-by-two",
        "pgbench-on",
        "pgbench-off",
    ]


def test_a_figure_of_its_own_needs_no_other() -> None:
    assert Run(over=170.0).value == 170


def test_the_table() -> None:
    made = Verdict(Target("memory", "memory", "memory of it", 300, "bytes"))
    made.runs = [Run(over=170.0), Run(over=180.0), Run(over=1234.0)]
    assert table([verdict(AT_MOST, 2.0, 4.0, 3.0), verdict(AT_LEAST, 0.4), verdict(AT_MOST), made]).splitlines() == [
        "what          measured (range)     target        holds  medians",
        "------------  -------------------  ------------  -----  -----------",
        "cost of it    3 (2-4)              <= 3 times    yes    30 by 10 µs",
        "rate of it    40.0% (40.0%-40.0%)  >= 50%        NO     4 by 10 µs",
        "cost of it    -                    <= 3 times    NO",
        "memory of it  180 (170-1234)       <= 300 bytes  yes",
    ]


def test_names_and_groups_choose() -> None:
    assert chosen(TARGETS, []) == list(TARGETS)
    assert [target.name for target in chosen(TARGETS, ["memory", "engine"])] == [
        "engine-uniform",
        "engine-hot",
        "memory",
    ]
    with pytest.raises(ConfigurationError, match="--only speed: there is no such target"):
        chosen(TARGETS, ["memory", "speed"])


def test_each_target_has_a_name_of_its_own_that_is_no_group_of_others() -> None:
    names = [target.name for target in TARGETS]
    assert len(set(names)) == len(names)
    for target in TARGETS:
        if target.name in GROUPS:
            assert [each.name for each in TARGETS if each.group == target.name] == [target.name]


def test_the_chart_names_what_it_shows(tmp_path: Path) -> None:
    path = tmp_path / "targets.svg"
    write_chart(path, [verdict(AT_MOST, 2.0), verdict(AT_LEAST)], "Targets")
    drawn = path.read_text("utf-8")
    assert "cost of it" in drawn
    assert "rate of it" not in drawn
