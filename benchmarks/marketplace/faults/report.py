"""What a run under faults says at its end: a line for each kind of fault and for each role's memory, and the verdict.
Pure.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from benchmarks.driver.interruption import interruption
from benchmarks.driver.timeline import Point
from benchmarks.marketplace.faults.memory import FLAT, JUDGED, STATEFUL, Growth, Stock
from benchmarks.marketplace.faults.striking import Struck

MIB = 2**20


def fault_lines(struck: Sequence[Struck], began_s: float, points: Sequence[Point], interval_s: float) -> list[str]:
    """A line for each kind that has struck. `began_s` is the window's start, to which the times of `points` refer."""
    silences: dict[str, list[float]] = {}
    ends = [*(each.at_s for each in struck[1:]), float("inf")]
    for each, end_s in zip(struck, ends, strict=True):
        seen = interruption(points, interval_s, each.at_s - began_s, end_s - began_s, 0.0)
        silences.setdefault(each.kind, []).append(0.0 if seen.pause_s is None else seen.pause_s)
    lines = []
    for kind, those in silences.items():
        of_kind = [each for each in struck if each.kind == kind]
        names = ", ".join(f"{count} {name}" for name, count in sorted(Counter(each.fault for each in of_kind).items()))
        healed = [each.healed_s for each in of_kind]
        lines.append(
            f"{kind:<12} {len(of_kind):>3} times ({names}): healed after {statistics.median(healed):.1f} s in the "
            f"median, {max(healed):.1f} s at most; no reply for {statistics.median(those):.0f} and {max(those):.0f} s"
        )
    return lines


def memory_lines(found: Sequence[Growth], stocks: Sequence[Stock], *, judged: bool) -> list[str]:
    """A line for each role, and one for the state."""
    lines = []
    for each in found:
        text = (
            f"memory       {each.role}: {each.middle / MIB:.0f} MiB in the middle third, {each.last / MIB:.0f} in the "
            f"last, {each.slope / MIB:+.1f} MiB an hour"
        )
        if each.role == STATEFUL:
            text += f"; the state explains {each.explained / MIB:+.1f} MiB from third to third"
        if each.role in JUDGED and judged:
            text += f": {'flat' if each.flat else f'NOT FLAT, the bound is {FLAT:g} times the middle third'}"
        lines.append(text)
    for first, last in pairwise([stocks[0], stocks[-1]] if len(stocks) > 1 else []):
        lines.append(
            f"state        from {first.entries} entries of {first.encoded / MIB:.1f} MiB to {last.entries} of "
            f"{last.encoded / MIB:.1f} MiB in {last.at_s - first.at_s:.0f} s"
        )
    return lines


def wrongs(found: Sequence[Growth], *, judged: bool, violations: int, sampled: int, repeated: int) -> list[str]:
    """Why the run has failed; empty if it has not."""
    wrong = []
    if violations:
        wrong.append(f"{violations} violations at the end")
    if sampled:
        wrong.append(f"{sampled} violations at sampled epochs")
    if repeated:
        wrong.append(f"{repeated} replies came twice")
    if judged:
        wrong += [f"the memory of {each.role} grows" for each in found if each.role in JUDGED and not each.flat]
    return wrong
