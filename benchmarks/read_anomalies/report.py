"""What the steps have found: a line each for people, all of it as JSON, and two charts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from benchmarks.driver.environment import environment
from benchmarks.driver.latency import percentile_us
from benchmarks.experiments.panels import Line, Panel, draw_panels
from benchmarks.experiments.report import write_json
from benchmarks.read_anomalies.step import WAYS, Found, Wanted

FORMAT: Final = 1
BY_RATE: Final = "by rate"
BY_VERSIONS: Final = "by versions"
FAILURES_SHOWN_MAX: Final = 3
_HEADER: Final = (
    f"{'way':8} {'items':>5} {'rate/s':>7} {'versions':>8} {'reads':>7} {'torn':>7} {'too old':>8} "
    f"{'p50 ms':>7} {'p95 ms':>7} {'change p95':>10}"
)


class Step(NamedTuple):
    """A step of one `part`, of an engine that keeps so many `versions`."""

    part: str
    versions: int
    wanted: Wanted
    found: Found

    @property
    def wrong(self) -> bool:
        """Whether something failed, or a read tore that must not. That the control tears is for people to see."""
        return bool(self.found.failures) or (self.wanted.way != "apart" and self.found.torn > 0)


def lines(step: Step, first: bool) -> list[str]:
    """The step as a line, with a header above the `first` one, and failures below."""
    wanted, found = step.wanted, step.found
    changed_ms = percentile_us(found.change_latencies, 95) / 1_000
    shown = (
        f"{wanted.way:8} {wanted.items:5} {wanted.rate:7g} {step.versions:8} {found.reads:7,} {found.torn_share:7.2%} "
        f"{found.too_old_share:8.2%} {found.read_ms(50):7.2f} {found.read_ms(95):7.2f} {changed_ms:10.2f}"
    )
    failed = [f"FAILED {each}" for each in found.failures[:FAILURES_SHOWN_MAX]]
    more = len(found.failures) - len(failed)
    return [*([_HEADER] if first else []), shown, *failed, *([f"FAILED and {more} more"] if more > 0 else [])]


def write(out: Path, steps: Sequence[Step]) -> None:
    """Writes `read_anomalies.txt`, `.json` and the charts; raises `OSError`."""
    out.mkdir(parents=True, exist_ok=True)
    text = [line for number, step in enumerate(steps) for line in lines(step, first=number == 0)]
    (out / "read_anomalies.txt").write_text("\n".join(text) + "\n", "utf-8")
    report = {
        "format": FORMAT,
        "experiment": "read_anomalies",
        "environment": msgspec.to_builtins(environment()),
        "found": [
            {
                "part": step.part,
                "versions": step.versions,
                **msgspec.to_builtins(step.wanted),
                **msgspec.to_builtins(step.found),
            }
            for step in steps
        ],
    }
    write_json(out / "read_anomalies.json", report)
    _draw_rates(out / "read_anomalies.svg", [step for step in steps if step.part == BY_RATE])
    by_versions = [step for step in steps if step.part == BY_VERSIONS]
    if by_versions:
        _draw_versions(out / "read_versions.svg", by_versions)


def _draw_rates(path: Path, steps: Sequence[Step]) -> None:
    found = {(step.wanted.way, step.wanted.items, step.wanted.rate): step.found for step in steps}
    rates = sorted({rate for _, _, rate in found})
    items = sorted({number for _, number, _ in found})
    torn, latency = [], []
    for color, (way, number) in enumerate((way, number) for way in WAYS for number in items):
        at = [found[way, number, rate] for rate in rates]
        label, dashed = f"{way}, {number}", number != items[0]
        torn.append(Line(label, [100 * each.torn_share for each in at], color, dashed))
        latency.append(Line(label, [each.read_ms(95) for each in at], color, dashed))
    panels = [Panel("torn reads, %", torn), Panel("p95 of a read, ms", latency)]
    title = f"Price and discount read {_pause(steps)} apart, or at one moment"
    of_lines = "requests a second (lines: way, products)"
    draw_panels(path, of_lines, [f"{rate:g}" for rate in rates], panels, title)


def _draw_versions(path: Path, steps: Sequence[Step]) -> None:
    name = "two reads at one epoch"
    too_old = [100 * step.found.too_old_share for step in steps]
    panels = [
        Panel("state too old, % of attempts", [Line(name, too_old, 1)]),
        Panel("p95 of a read, ms", [Line(name, [step.found.read_ms(95) for step in steps], 1)]),
    ]
    title = f"One hot product at {steps[0].wanted.rate:g} requests a second, reads {_pause(steps)} apart"
    draw_panels(path, "epochs with writes that are kept", [str(step.versions) for step in steps], panels, title)


def _pause(steps: Sequence[Step]) -> str:
    return f"{1_000 * steps[0].wanted.pause_s:g} ms"
