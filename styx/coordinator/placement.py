"""Which worker owns which slot: as even as it can be, and moving as few slots as that allows.

Pure arithmetic; the same input gives the same placement. Never looks at load. Paper section 7.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def place(n_slots: int, workers: Iterable[int], before: Mapping[int, int]) -> dict[int, int]:
    """Owners by slot. A worker keeps what it had `before`, up to its fair share; the rest goes to who has least."""
    members = sorted(workers)
    share, larger = divmod(n_slots, len(members))
    counts = dict.fromkeys(members, 0)
    owners: dict[int, int] = {}
    for slot in range(n_slots):
        owner = before.get(slot)
        if owner is None or owner not in counts:
            continue
        if counts[owner] < share or (counts[owner] == share and larger):
            larger -= counts[owner] == share
            counts[owner] += 1
            owners[slot] = owner
    for slot in range(n_slots):
        if slot not in owners:
            owners[slot] = min(members, key=lambda worker: (counts[worker], worker))
            counts[owners[slot]] += 1
    return dict(sorted(owners.items()))
