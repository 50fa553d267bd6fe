"""The targets as a chart, an SVG file: each figure as a share of its bound, with the range of the runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.figure import Figure

from benchmarks.experiments.targets.verdict import Verdict

HOLDS: Final = "#1f5f8b"
FAILS: Final = "#c8553d"
ROW_INCHES: Final = 0.32
# Real text, so that the file is small and can be searched; fixed ids, so that the same figures give the same file.
_STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "styx", "font.family": "sans-serif", "font.size": 9}


def write_chart(path: Path, verdicts: Sequence[Verdict], title: str) -> None:
    """Writes the SVG to `path`; targets without a figure have no bar."""
    shown = [(verdict, used) for verdict in verdicts if (used := verdict.used) is not None]
    with rc_context(_STYLE):
        figure = Figure(figsize=(8.0, 1.2 + ROW_INCHES * len(shown)), layout="constrained")
        axes = figure.subplots()
        places = range(len(shown))
        middle = [used[0] for _, used in shown]
        whiskers = [[max(used[0] - used[1], 0) for _, used in shown], [max(used[2] - used[0], 0) for _, used in shown]]
        colors = [HOLDS if verdict.holds else FAILS for verdict, _ in shown]
        axes.barh(places, middle, xerr=whiskers, capsize=2, color=colors, height=0.6)
        axes.axvline(1, color="black", lw=0.8)
        axes.set_yticks(places, [verdict.target.what for verdict, _ in shown])
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.set_xlabel("share of what is allowed; left of the line is better")
        axes.set_title(title)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, format="svg", metadata={"Date": None})
