"""The comparisons as one bar chart, an SVG file: medians as bars, the range of the runs as whiskers."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.micro.comparison import Comparison

BAR_WIDTH = 0.36
# Real text, so that the file is small and can be searched; fixed ids, so that the same figures give the same file.
_STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "styx", "font.family": "sans-serif", "font.size": 10}


def write_chart(path: Path, comparisons: list[Comparison], interpreter: str) -> None:
    """Writes the SVG to `path`. `interpreter` has the interpreter's name and version, and the engine's form."""
    with rc_context(_STYLE):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.subplots()
        _bars(axes, -BAR_WIDTH / 2, "bare loop", "#8c8c8c", [comparison.bare_us for comparison in comparisons])
        _bars(axes, BAR_WIDTH / 2, "engine", "#1f5f8b", [comparison.engine_us for comparison in comparisons])
        labels = [f"{comparison.title}\n{comparison.ratio:.1f} times the bare loop" for comparison in comparisons]
        axes.set_xticks(range(len(comparisons)), labels)
        axes.set_ylabel("µs of CPU per transaction")
        axes.set_ylim(bottom=0)
        axes.set_title(f"Two-function transfers, one worker, {interpreter}", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper left")
        figure.savefig(path, format="svg", metadata={"Date": None})


def _bars(axes: Axes, shift: float, label: str, color: str, runs: list[list[float]]) -> None:
    medians = [statistics.median(run) for run in runs]
    below = [median - min(run) for median, run in zip(medians, runs, strict=True)]
    above = [max(run) - median for median, run in zip(medians, runs, strict=True)]
    places = [index + shift for index in range(len(runs))]
    bars = axes.bar(places, medians, BAR_WIDTH, yerr=[below, above], capsize=3, label=label, color=color)
    axes.bar_label(bars, fmt="%.1f", padding=3)
