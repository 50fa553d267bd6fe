"""Patches: what a slot tells others after a round, and what a slot does with what it is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from proof.models.part import At, Entry, Part, PartRun
from proof.models.runner import Path


class Patch(NamedTuple):
    """For the part of `tid` on slot `to`: the call at `path` is now `call`, or has now `result`, or is withdrawn."""

    tid: int
    path: Path
    to: int
    sender: int
    call: Entry | None = None
    result: int | None = None


def patches(tid: int, slot: int, part: Part, run: PartRun) -> list[Patch]:
    """The patches that a run leads to; the part then counts them as sent."""
    found = []
    sent = {path: call for path, call in part.sent.items() if not run.reached(call.place)} | run.sent
    for path, before in part.sent.items():
        if path not in sent or sent[path].slot != before.slot:
            found.append(Patch(tid, path, before.slot, slot))
    for path, now in sent.items():
        if path not in part.sent or part.sent[path].entry != now.entry:
            found.append(Patch(tid, path, now.slot, slot, call=now.entry))
    part.sent = sent
    for at, result in run.given.items():
        if part.given.get(at) != result:
            found.append(Patch(tid, at.path, at.caller, slot, result=result))
            part.given[at] = result
    return found


def apply(parts: dict[int, Part], growths: Mapping[int, int], told: Iterable[Patch]) -> None:
    """Applies patches to a slot's parts, by TID; `growths` has the allowance of a part that is new there."""
    for patch in told:
        part = parts.setdefault(patch.tid, Part(growths[patch.tid]))
        at = At(patch.path, patch.sender)
        if patch.result is not None:
            part.results[patch.path] = patch.result
        elif patch.call is not None:
            part.entries[at] = patch.call
        else:
            del part.entries[at]
            part.given.pop(at, None)
