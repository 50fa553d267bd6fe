"""Placement: which worker owns which slot. Slots are spread evenly, and otherwise stay where they were.

Any number of first slots is spread evenly, too, because an operator with fewer partitions than slots uses only the
first slots. Pure arithmetic; the same input gives the same placement. Load does not count. Paper section 7.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def place(n_slots: int, workers: Iterable[int], before: Mapping[int, int]) -> dict[int, int]:
    """Owners by slot. A slot stays where it was `before` unless that worker has its share of the slots up to it."""
    members = sorted(workers)
    counts = dict.fromkeys(members, 0)
    had = {worker: list(before.values()).count(worker) for worker in members}
    owners: dict[int, int] = {}
    for slot in range(n_slots):
        share = -(-(slot + 1) // len(members))
        owner = before.get(slot)
        if owner is None or owner not in counts or counts[owner] >= share:
            owner = min(members, key=lambda worker: (counts[worker], had[worker], worker))
        owners[slot] = owner
        counts[owner] += 1
    return owners
