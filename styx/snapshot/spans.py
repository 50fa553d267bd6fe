"""Which bytes of which stored objects a snapshot needs, for a load in the order in which it applies them.

A worker's slots stand side by side in an object, so that one request fetches them all. Pure. Paper section 7.1.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from styx.protocol.manifest import Manifest, ObjectRef
from styx.snapshot.part import written_at

Parts = dict[str, list[ObjectRef]]
"""By name of the object."""


class Span(NamedTuple):
    """`size` bytes of an object from `start` on; `parts` are what these slots have in it."""

    name: str
    start: int
    size: int
    parts: list[tuple[int, ObjectRef]]


def spans(manifest: Manifest | None, slots: Collection[int]) -> list[Span]:
    """One for each object that these slots need, the oldest snapshot's first, which is the order of every chain."""
    by_name: dict[str, list[tuple[int, ObjectRef]]] = {}
    for slot in () if manifest is None else manifest.slots:
        if slot.part.slot in slots:
            written = [written_at(ref.name) for ref in slot.objects]
            assert written == sorted(set(written)), "a slot's objects are not in the order in which they were written"
            for ref in slot.objects:
                by_name.setdefault(ref.name, []).append((slot.part.slot, ref))
    return [_span(name, by_name[name]) for name in sorted(by_name, key=written_at)]


def _span(name: str, parts: list[tuple[int, ObjectRef]]) -> Span:
    start = min(ref.start for _, ref in parts)
    return Span(name, start, max(ref.start + ref.size for _, ref in parts) - start, parts)


def parts_of(manifest: Manifest) -> Parts:
    """All that a recovery would read, by object, the oldest object first."""
    parts: Parts = {}
    for slot in manifest.slots:
        for ref in slot.objects:
            parts.setdefault(ref.name, []).append(ref)
    return dict(sorted(parts.items()))
