"""Charts of results, SVG or PNG by the file's name: latency against throughput, latency over time, scaling, grouped
bars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from math import nan
from pathlib import Path
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from benchmarks.driver.chart_facts import facts
from benchmarks.driver.probe import Mark
from benchmarks.driver.result import Result, SearchResult, read
from benchmarks.driver.timeline import Point
from styx.errors import ConfigurationError

FORMATS: Final = {".svg": "svg", ".png": "png"}
COLORS: Final = ("#1f5f8b", "#c8553d", "#588157", "#8c8c8c", "#7b5ea7", "#d4a017")
_SNAPSHOT: Final = "snapshot"
_SNAPSHOT_COLOR: Final = "#8c8c8c"
_MARK_COLORS: Final = (COLORS[1], COLORS[2], COLORS[4], COLORS[5])
"""Of other marks, by their names."""
_WIDTH_INCHES: Final = 6.4
_HEIGHT_INCHES: Final = 3.6
_BELOW_POINTS: Final = 6.5
"""The font size of the text below a chart."""
_LINE_INCHES: Final = 0.115
_BELOW_COLOR: Final = "#555555"
_LEGEND_COLUMNS_MAX: Final = 3
_BAR_INCHES: Final = 0.36
"""Room for a bar's figure."""
# Real text, so that the file is small and can be searched; fixed ids, so that the same figures give the same file.
STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "styx", "font.family": "sans-serif", "font.size": 10}


def latency_by_throughput(
    path: Path,
    series: Mapping[str, Sequence[tuple[float, float, float]]],
    title: str = "",
    below: Sequence[str] = (),
) -> None:
    """Draws a line for each series: (transactions a second, p50, p99 in microseconds) of its runs, in their order."""
    with _axes(path, title, below) as axes:
        for color, (label, points) in zip(_colors(len(series)), series.items(), strict=True):
            rates = [rate for rate, _, _ in points]
            axes.plot(rates, [p50 / 1e3 for _, p50, _ in points], "o--", color=color, label=f"{label} p50", ms=4)
            axes.plot(rates, [p99 / 1e3 for _, _, p99 in points], "o-", color=color, label=f"{label} p99", ms=4)
        log_scale(axes)
        axes.set_xlim(left=0)
        axes.set_xlabel("transactions/s")
        axes.set_ylabel("latency in ms")
        legend_below(axes)


def latency_over_time(
    path: Path, points: Sequence[Point], marks: Sequence[Mark], title: str = "", below: Sequence[str] = ()
) -> None:
    """Draws p50, p99 and replies a second over the time of one run, with a line at each mark. Times without replies are
    gaps.
    """
    with _axes(path, title, below) as axes:
        times = [point.at_s for point in points]
        for name, style in (("p99", "-"), ("p50", "--")):
            values = [getattr(point, f"{name}_us") / 1e3 if point.max_us else nan for point in points]
            axes.plot(times, values, style, color=COLORS[0], label=name)
        log_scale(axes)
        axes.set_xlabel("seconds since the window's start")
        axes.set_ylabel("latency in ms")
        rates = axes.twinx()
        interval_s = min((b.at_s - a.at_s for a, b in pairwise(points)), default=1.0)
        rates.plot(
            [point.at_s for point in points],
            [sum(point.outcomes.values()) / interval_s for point in points],
            color=COLORS[3],
            lw=0.8,
            label="replies/s",
        )
        rates.set_ylim(bottom=0)
        rates.set_ylabel("replies/s")
        _draw_marks(axes, marks)
        legend_below(axes)


def scaling(
    path: Path,
    series: Mapping[str, Sequence[tuple[float, float]]],
    x_label: str,
    y_label: str,
    title: str = "",
    below: Sequence[str] = (),
) -> None:
    """Draws the (x, y) points of each series. A dotted line from the first point shows linear scaling."""
    with _axes(path, title, below) as axes:
        for color, (label, points) in zip(_colors(len(series)), series.items(), strict=True):
            ordered = sorted(points)
            xs, ys = [x for x, _ in ordered], [y for _, y in ordered]
            axes.plot(xs, ys, "o-", color=color, label=label, ms=4)
            axes.plot([xs[0], xs[-1]], [ys[0], ys[0] * xs[-1] / xs[0]], ":", color=color, lw=0.8)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        legend_below(axes)


def grouped_bars(
    path: Path,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    y_label: str,
    title: str = "",
    below: Sequence[str] = (),
) -> None:
    """Draws a bar for each series in each group. A series has one value for each group."""
    with _axes(path, title, below, max(_WIDTH_INCHES, _BAR_INCHES * len(groups) * len(series))) as axes:
        width = 0.8 / max(len(series), 1)
        for number, (color, (label, values)) in enumerate(zip(_colors(len(series)), series.items(), strict=True)):
            places = [index - 0.4 + width * (number + 0.5) for index in range(len(groups))]
            bars = axes.bar(places, values, width * 0.92, label=label, color=color)
            axes.bar_label(bars, fmt="%.3g", padding=2, fontsize=8)
        axes.set_xticks(range(len(groups)), groups)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(y_label)
        legend_below(axes)


_Named = Sequence[tuple[str, Result | SearchResult]]


def plot(kind: str, files: Sequence[Path], out: Path, title: str) -> None:
    """Carries out the subcommand `plot`. The facts of the results are below the chart. Raises `ConfigurationError` for
    files that the kind cannot show.
    """
    results = [(file.stem, read(file)) for file in files]
    _DRAW[kind](results, out, title, facts([result for _, result in results]))


def _draw_latency(results: _Named, out: Path, title: str, below: Sequence[str]) -> None:
    series: dict[str, list[Result]] = {}
    for label, result in results:
        series.setdefault(label if isinstance(result, SearchResult) else result.workload, []).extend(_runs(result))
    points = {
        label: [
            (run.throughput, float(run.answered.p50_us), float(run.answered.p99_us))
            for run in sorted(runs, key=lambda run: run.plan.concurrency or run.plan.rate)
        ]
        for label, runs in series.items()
    }
    latency_by_throughput(out, points, title, below)


def _draw_timeline(results: _Named, out: Path, title: str, below: Sequence[str]) -> None:
    first = results[0][1]
    if len(results) != 1 or not isinstance(first, Result):
        raise ConfigurationError("--kind timeline shows one file, which `run` wrote")
    latency_over_time(out, first.timeline, first.marks, title, below)


def _draw_scaling(results: _Named, out: Path, title: str, below: Sequence[str]) -> None:
    series: dict[str, list[tuple[float, float]]] = {}
    for label, result in results:
        if not isinstance(result, SearchResult) or "workers" not in result.deployment:
            raise ConfigurationError(f"{label}: --kind scaling shows files that `search --on cluster` wrote")
        series.setdefault(result.workload, []).append((result.deployment["workers"], result.rate))
    scaling(out, series, "workers", "highest rate, requests/s", title, below)


def _draw_cpu(results: _Named, out: Path, title: str, below: Sequence[str]) -> None:
    runs = [(label, result) for label, result in results if isinstance(result, Result)]
    if len(runs) != len(results):
        raise ConfigurationError("--kind cpu shows files that `run` wrote")
    roles = sorted({role for _, run in runs for role in run.cpu_us})
    series = {role: [run.cpu_us.get(role, 0.0) for _, run in runs] for role in roles}
    grouped_bars(out, [label for label, _ in runs], series, "µs of CPU per transaction", title, below)


_DRAW: Final[dict[str, Callable[[_Named, Path, str, Sequence[str]], None]]] = {
    "latency": _draw_latency,
    "timeline": _draw_timeline,
    "scaling": _draw_scaling,
    "cpu": _draw_cpu,
}


def _runs(result: Result | SearchResult) -> list[Result]:
    if isinstance(result, Result):
        return [result]
    return [step.result for step in result.steps if step.result.answered.count and not step.repeated]


def _draw_marks(axes: Axes, marks: Sequence[Mark]) -> None:
    colors = {_SNAPSHOT: _SNAPSHOT_COLOR}
    named: set[str] = set()
    for mark in marks:
        color = colors.setdefault(mark.what, _MARK_COLORS[(len(colors) - 1) % len(_MARK_COLORS)])
        axes.axvline(mark.at_s, color=color, lw=0.8, ls=":", label=None if mark.what in named else mark.what)
        named.add(mark.what)


def legend_below(axes: Axes) -> None:
    """Puts the legend where it hides no line."""
    lines, _ = axes.get_legend_handles_labels()
    columns = min(max(len(lines) // 2, 2), _LEGEND_COLUMNS_MAX)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=columns)


def log_scale(axes: Axes) -> None:
    """Labels the axis with plain numbers: 200 instead of 2 × 10²."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))


def _colors(count: int) -> list[str]:
    return [COLORS[number % len(COLORS)] for number in range(count)]


@contextmanager
def _axes(path: Path, title: str, below: Sequence[str] = (), width_inches: float = _WIDTH_INCHES) -> Iterator[Axes]:
    kind = FORMATS.get(path.suffix)
    if kind is None:
        raise ConfigurationError(f"{path}: a chart is a file that ends in {' or '.join(FORMATS)}")
    with rc_context(STYLE):
        height_inches = _HEIGHT_INCHES + _LINE_INCHES * len(below)
        figure = Figure(figsize=(width_inches, height_inches), layout="constrained")
        axes = figure.subplots()
        if below:
            figure.supxlabel("\n".join(below), fontsize=_BELOW_POINTS, color=_BELOW_COLOR, x=0.01, ha="left")
        yield axes
        axes.set_title(title, fontsize=10)
        axes.spines["top"].set_visible(False)
        figure.savefig(path, format=kind, metadata={"Date": None} if kind == "svg" else None)
