"""Charts of several panels side by side over the same few steps, such as numbers of workers.

The steps have equal distances, whatever their numbers, so that 0.99 and 0.999 are two points.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.driver.charts import COLORS, STYLE, legend_below, log_scale

PANEL_INCHES: Final = 4.2
_NOTHING: Final = float("nan")


class Line(NamedTuple):
    """One value for each step, None where there is none; lines of the same `color` belong together."""

    label: str
    values: Sequence[float | None]
    color: int
    dashed: bool = False


class Panel(NamedTuple):
    """`log`: its values are on a logarithmic scale, else they begin at 0."""

    y_label: str
    lines: Sequence[Line]
    log: bool = False


def draw_panels(path: Path, x_label: str, steps: Sequence[str], panels: Sequence[Panel], title: str) -> None:
    """Writes the SVG to `path`."""
    with rc_context(STYLE):
        figure = Figure(figsize=(PANEL_INCHES * len(panels), 3.6), layout="constrained")
        for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            _draw(axes, steps, panel)
            axes.set_xlabel(x_label)
        figure.suptitle(title, fontsize=10)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw(axes: Axes, steps: Sequence[str], panel: Panel) -> None:
    places = range(len(steps))
    for line in panel.lines:
        values = [_NOTHING if value is None else value for value in line.values]
        style = "o--" if line.dashed else "o-"
        axes.plot(places, values, style, color=COLORS[line.color % len(COLORS)], label=line.label, ms=4)
    axes.set_xticks(places, steps)
    if panel.log and any(value for line in panel.lines for value in line.values):
        log_scale(axes)
    else:
        axes.set_ylim(bottom=0)
    axes.set_ylabel(panel.y_label)
    axes.spines[["top", "right"]].set_visible(False)
    legend_below(axes)
