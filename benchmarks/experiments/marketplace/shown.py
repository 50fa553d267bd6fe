"""The tables and charts of settings that were measured side by side. Pure, but for the files that charts go to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.driver.charts import grouped_bars
from benchmarks.experiments.marketplace.experiment import Experiment
from benchmarks.experiments.marketplace.measured import Measured, OfKind, Ratio, ratio
from benchmarks.experiments.medians import median
from benchmarks.experiments.panels import Line, Panel, draw_panels
from benchmarks.experiments.report import Shown
from benchmarks.experiments.text_table import text_table

Draw = Callable[[Path], None]


def show(name: str, experiment: Experiment, found: Sequence[Measured]) -> Shown:
    """Of several runs the medians, and of ratios the range as well. The charts' files begin with `name`."""
    text = _table(experiment, found)
    charts: dict[str, Draw] = {}
    several = len({each.number for each in found}) > 1
    if several:
        charts[name] = _over_numbers(experiment, found)
    elif len(found) > 1 and not experiment.by_kind:
        charts[name] = _costs(experiment, found)
    if experiment.by_kind:
        text += "\n\n" + _kinds_table(experiment, found)
        charts[f"{name}-kinds"] = (_kinds_over_numbers if several else _kinds)(experiment, found)
    return Shown(text, charts)


def _table(experiment: Experiment, found: Sequence[Measured]) -> str:
    settings, numbers = len(experiment.settings) > 1, experiment.numbers
    apart = [f"without {experiment.apart}"] if experiment.apart else []
    of_first = [f"by {found[0].setting}", "its processor time"] if settings else []
    of_least = [f"by {_number(found[0])}"] if numbers is not None else []
    headings = [
        *([numbers.label] if numbers is not None else []),
        *("setting", "transactions/s", *apart, *of_first, *of_least, "µs each", "p50 ms", "p99 ms"),
        *("an epoch", "in lock phases", "failed"),
    ]
    rows = []
    for each in found:
        beside = next(other for other in found if other.number == each.number)
        least = next(other for other in found if other.setting == each.setting)
        ratios = [_shown(ratio(each.compared, beside.compared)), _shown(ratio(each.cpu_us, beside.cpu_us))]
        rows.append(
            [
                *([_number(each)] if numbers is not None else []),
                *(each.setting, _figure(each.rate)),
                *([_figure(each.compared)] if experiment.apart else []),
                *(ratios if settings else []),
                *([_shown(ratio(each.compared, least.compared))] if numbers is not None else []),
                *(f"{median(each.cpu_us) or 0:.0f}", _ms(each.p50_us), _ms(each.p99_us)),
                *(_figure(each.epoch), f"{median(each.locked) or 0:.0%}", str(sum(each.failed))),
            ]
        )
    return text_table(headings, rows)


def _kinds_table(experiment: Experiment, found: Sequence[Measured]) -> str:
    numbers = experiment.numbers
    rows = [
        [
            *([_number(each)] if numbers is not None else []),
            *(each.setting, kind, _figure(seen.rate), _ms(seen.p50_us), _ms(seen.p99_us)),
        ]
        for each in found
        for kind, seen in sorted(each.kinds.items())
    ]
    first = [numbers.label] if numbers is not None else []
    return text_table([*first, "setting", "kind", "a second", "p50 ms", "p99 ms"], rows)


def _over_numbers(experiment: Experiment, found: Sequence[Measured]) -> Draw:
    rates, latencies, times = [], [], []
    for color, (setting, those) in enumerate(_by_setting(found).items()):
        rates.append(Line(setting, [median(each.compared) for each in those], color))
        latencies.append(Line(f"{setting} p50", [_in_ms(each.p50_us) for each in those], color, dashed=True))
        latencies.append(Line(f"{setting} p99", [_in_ms(each.p99_us) for each in those], color))
        times.append(Line(setting, [median(each.cpu_us) for each in those], color))
    panels = [
        Panel(f"{_compared(experiment)}/s", rates),
        Panel("latency in ms", latencies, log=True),
        Panel("processor time of one, µs", times),
    ]
    return _panels(experiment, found, panels)


def _kinds_over_numbers(experiment: Experiment, found: Sequence[Measured]) -> Draw:
    panels = []
    for kind in _kinds_of(found):
        lines = []
        for color, (setting, those) in enumerate(_by_setting(found).items()):
            of_kind = [each.kinds.get(kind, OfKind()) for each in those]
            lines.append(Line(f"{setting} p50", [_in_ms(each.p50_us) for each in of_kind], color, dashed=True))
            lines.append(Line(f"{setting} p99", [_in_ms(each.p99_us) for each in of_kind], color))
        panels.append(Panel(f"{kind}, ms", lines, log=True))
    return _panels(experiment, found, panels)


def _panels(experiment: Experiment, found: Sequence[Measured], panels: Sequence[Panel]) -> Draw:
    assert experiment.numbers is not None, "several numbers were gone through"
    steps = [_number(each) for each in next(iter(_by_setting(found).values()))]
    return partial(draw_panels, x_label=experiment.numbers.label, steps=steps, panels=panels, title=experiment.what)


def _costs(experiment: Experiment, found: Sequence[Measured]) -> Draw:
    def percent(figures: Callable[[Measured], Sequence[float]]) -> list[float]:
        ratios = [ratio(figures(each), figures(found[0])) for each in found]
        return [100 * each.median if each is not None else 0.0 for each in ratios]

    series = {
        f"{_compared(experiment)}/s": percent(lambda each: each.compared),
        "processor time of one": percent(lambda each: each.cpu_us),
        "p99": percent(lambda each: each.p99_us),
    }
    groups = [each.setting for each in found]
    return partial(
        grouped_bars, groups=groups, series=series, y_label=f"% of {found[0].setting}", title=experiment.what
    )


def _kinds(experiment: Experiment, found: Sequence[Measured]) -> Draw:
    kinds = _kinds_of(found)
    series = {
        f"{each.setting} {name}": [_in_ms(getattr(each.kinds.get(kind, OfKind()), f"{name}_us")) or 0 for kind in kinds]
        for each in found
        for name in ("p50", "p99")
    }
    return partial(grouped_bars, groups=kinds, series=series, y_label="latency in ms", title=experiment.what)


def _by_setting(found: Sequence[Measured]) -> Mapping[str, list[Measured]]:
    """Of each setting all numbers, those that an experiment did not come to without figures."""
    at = {(each.setting, each.number): each for each in found}
    settings, numbers = dict.fromkeys(each.setting for each in found), dict.fromkeys(each.number for each in found)
    return {
        setting: [at.get((setting, number), Measured(setting=setting, number=number)) for number in numbers]
        for setting in settings
    }


def _kinds_of(found: Sequence[Measured]) -> list[str]:
    return sorted({kind for each in found for kind in each.kinds})


def _compared(experiment: Experiment) -> str:
    return f"transactions without {experiment.apart}" if experiment.apart else "transactions"


def _number(each: Measured) -> str:
    return "" if each.number is None else f"{each.number:g}"


def _figure(values: Sequence[float]) -> str:
    middle = median(values) or 0.0
    return f"{middle:.0f}" if middle >= 100 else f"{middle:.3g}"


def _shown(found: Ratio | None) -> str:
    return "-" if found is None else str(found)


def _in_ms(us: Sequence[float]) -> float | None:
    middle = median(us)
    return None if middle is None else middle / 1e3


def _ms(us: Sequence[float]) -> str:
    ms = _in_ms(us)
    return "-" if ms is None else f"{ms:.1f}"
