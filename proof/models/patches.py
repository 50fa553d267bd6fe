"""Patches: what a slot tells others after a round, and what a slot does with what it is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from proof.models.part import Entry, Part, PartRun, Sent
from proof.models.runner import Path

GONE, CALL, RESULT = range(3)
"""The kinds of patches, in the order in which they are applied."""


class Patch(NamedTuple):
    """Part `tid` on slot `to`: the call at `path` is withdrawn, is now `call`, or has now `result`."""

    kind: int
    tid: int
    path: Path
    to: int
    sender: int
    call: Sent | None = None
    result: int | None = None


def patches(tid: int, slot: int, part: Part, run: PartRun) -> list[Patch]:
    """The patches that a run leads to; the part then counts them as sent."""
    found = []
    kept = {path: call for path, call in part.sent.items() if path not in run.sent and run.keeps(path)}
    sent = run.sent | kept
    for path, before in part.sent.items():
        if path not in sent or sent[path].slot != before.slot:
            found.append(Patch(GONE, tid, path, before.slot, slot))
    for path, now in sent.items():
        if part.sent.get(path) != now:
            found.append(Patch(CALL, tid, path, now.slot, slot, call=now))
    part.sent = sent
    for path, result in run.given.items():
        if part.given.get(path) != result:
            found.append(Patch(RESULT, tid, path, part.entries[path].caller, slot, result=result))
            part.given[path] = result
    return found


def apply(parts: dict[int, Part], growths: Mapping[int, int], told: Iterable[Patch]) -> None:
    """Applies all patches of a round to a slot's parts, by TID; `growths` has the allowance of a part that is new there.

    Withdrawn calls first: one slot may withdraw the call at a path while another makes it.
    """
    for patch in sorted(told, key=lambda patch: patch.kind):
        part = parts.setdefault(patch.tid, Part(growths[patch.tid]))
        if patch.kind == GONE:
            part.entries.pop(patch.path, None)
            part.given.pop(patch.path, None)
        elif patch.kind == CALL:
            assert patch.call is not None
            entry = part.entries.get(patch.path)
            if entry is not None and entry.caller != patch.sender:
                part.given.pop(patch.path, None)  # this caller has not been given a result
            part.entries[patch.path] = Entry(patch.call.chain, patch.call.call, patch.sender)
        else:
            assert patch.result is not None
            part.results[patch.path] = patch.result
