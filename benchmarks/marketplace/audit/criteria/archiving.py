"""What the criteria of archives have in common: each thing that has ended is archived once, by the transaction that
ends it, and nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.marketplace.audit.stories import LOADED, Step
from benchmarks.marketplace.audit.violation import Criterion, Violation


def once(
    criterion: Criterion, name: str, found: Mapping[Any, list[Step]], ended: Mapping[Any, Step]
) -> Iterator[Violation]:
    """`found`: where each thing is archived; `ended`: where it has ended. What was loaded ended was archived before."""
    for key in found.keys() | ended.keys():
        end, steps = ended.get(key), found.get(key, [])
        expected = 0 if end is None or end == LOADED else 1
        if len(steps) != expected:
            told = f"{expected}, since it has {'ended' if expected else 'not ended'}"
            yield Violation(criterion, f"{name} {key}", f"archived {len(steps)} times", told)
        elif end is not None and expected and steps[0][0] != end[0]:
            told = f"{tuple(end[0])}, where it ended"
            yield Violation(criterion, f"{name} {key}", f"archived at {tuple(steps[0][0])}", told)
