"""The course of an audit: which snapshots it takes, one after the other, and what it does about a difference.

One thing at a time: a case is captured, then judged in a process of its own, then deleted. While it is judged the
deployment goes on, and takes snapshots that nobody looks at; if the log no longer has what lies behind the last case,
the audit goes on at the newest snapshots, and counts the epochs between.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from styx.audit.capture import capture
from styx.audit.case import CopiedObjects
from styx.audit.metrics import AuditCounters
from styx.audit.origin import first_difference, writers
from styx.audit.place import Place, snapshots
from styx.audit.records import Budget
from styx.audit.verdict import DIFFERS, UNJUDGED, CannotJudge, Origin, Verdict
from styx.model.app import App
from styx.protocol.manifest import Manifest

ATTEMPTS_MAX: Final = 3
"""Captures of a case whose snapshots or log went meanwhile."""
POLL_SECONDS: Final = 1.0
"""Between two looks for a new snapshot."""
BEGINNING: Final = -1
"""In place of a snapshot's epoch: the beginning of the log."""

Judge = Callable[[Path, Path, int | None, Path | None], Awaitable[Verdict]]
"""Judges the case in a directory, with objects in another one, on so many workers, and leaves a trace."""


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """`after` and `until` are epochs of snapshots, None for the newest two; `scratch` an empty directory, in which at
    most `scratch_bytes` are written for each case.
    """

    scratch: Path
    scratch_bytes: int
    workers: int | None = None
    after: int | None = None
    until: int | None = None


class Audit:
    """Of one place and app. `judge` judges a case in a process of its own."""

    def __init__(self, place: Place, app: App, options: AuditOptions, judge: Judge, counters: AuditCounters) -> None:
        self._place = place
        self._app = app
        self._options = options
        self._judge = judge
        self._counters = counters
        self._checked: set[int] = set()
        self._objects = options.scratch / "objects"

    async def once(self) -> Verdict:
        """The verdict on one interval. Raises `OSError` if the store cannot be reached at all."""
        attempts = 0
        while True:
            attempts += 1
            try:
                before, after = await asyncio.to_thread(self._chosen)
            except CannotJudge as error:
                return self._counted(_unjudged(*self._asked(), error))
            verdict = await self._audited(before, after)
            if not verdict.passing or attempts == ATTEMPTS_MAX:
                return self._counted(verdict)

    def _asked(self) -> tuple[int, int]:
        after, until = self._options.after, self._options.until
        return BEGINNING if after is None else after, BEGINNING if until is None else until

    async def follow(self) -> AsyncGenerator[Verdict, None]:
        """The verdicts on all that comes, from the newest two snapshots on; the first one that is not judged, and never
        will be, is the last. Raises `OSError` if the store cannot be reached at the beginning; later it waits for it.
        """
        last: Manifest | None = None
        while True:
            try:
                newest = await asyncio.to_thread(lambda: snapshots(self._place))
            except OSError:
                if last is None:
                    raise
                newest = []
            if not newest or (last is not None and newest[0].epoch <= last.epoch):
                await asyncio.sleep(POLL_SECONDS)
                continue
            self._counters.newest = newest[0].epoch
            second = newest[1] if len(newest) > 1 else None
            verdict = await self._audited(second if last is None else last, newest[0])
            if verdict.passing and last is not None and second is not None and second.epoch > last.epoch:
                # What lies behind the last case is gone. The newest interval is still there, as a rule.
                verdict.until = second.epoch
                yield self._counted(verdict)
                verdict = await self._audited(second, newest[0])
            yield self._counted(verdict)
            if verdict.outcome == UNJUDGED and not verdict.passing:
                return
            last = newest[0]
            await asyncio.to_thread(self._keep, last)

    def _chosen(self) -> tuple[Manifest | None, Manifest]:
        there = snapshots(self._place)
        if not there:
            raise CannotJudge("there is no snapshot yet: one is taken while there is work, and at an orderly stop")
        until, after = self._options.until, self._options.after
        newer = there[0] if until is None else _of_epoch(there, until)
        if after == BEGINNING:
            return None, newer
        if after is not None:
            older: Manifest | None = _of_epoch(there, after)
        else:
            older = next((each for each in there if each.epoch < newer.epoch), None)
        if older is not None and older.epoch > newer.epoch:
            raise CannotJudge(f"the snapshot of epoch {older.epoch} is behind that of epoch {newer.epoch}")
        return older, newer

    async def _audited(self, before: Manifest | None, after: Manifest) -> Verdict:
        case = self._options.scratch / "case"
        await asyncio.to_thread(_empty, case)
        budget = Budget(self._options.scratch_bytes)
        try:
            if after.app_version not in self._checked:
                await asyncio.to_thread(self._place.check, self._app, after.app_version)
                self._checked.add(after.app_version)
            objects = CopiedObjects(self._objects)
            await asyncio.to_thread(capture, self._place, before, after, case, objects, budget)
            verdict = await self._judge(case, self._objects, self._options.workers, None)
            if verdict.outcome == DIFFERS:
                await self._find_origin(case, verdict)
        except (CannotJudge, OSError) as error:
            # What cannot be reached now may be reached later.
            why = error if isinstance(error, CannotJudge) else CannotJudge(str(error), passing=True)
            return _unjudged(BEGINNING if before is None else before.epoch, after.epoch, why)
        finally:
            await asyncio.to_thread(shutil.rmtree, case, ignore_errors=True)
        return verdict

    async def _find_origin(self, case: Path, verdict: Verdict) -> None:
        """Replays the case twice more, on two numbers of workers."""
        one, other = case / "trace-1", case / "trace-2"
        candidates: list[Origin | None] = []
        try:
            await self._judge(case, self._objects, verdict.workers, one)
            await self._judge(case, self._objects, 1, other)
            candidates.append(await asyncio.to_thread(first_difference, one, other, "two replays differ there first"))
            verdict.writers = await asyncio.to_thread(writers, one, verdict.first_entries)
        except CannotJudge as error:
            verdict.notes.append(f"two more replays to find where it began were not possible: {error}")
        found = [each for each in [*candidates, _first_reply(verdict)] if each is not None]
        verdict.origin = min(found, key=lambda each: (each.epoch, each.phase, each.tid), default=None)

    def _counted(self, verdict: Verdict) -> Verdict:
        self._counters.count(verdict)
        return verdict

    def _keep(self, manifest: Manifest) -> None:
        CopiedObjects(self._objects).keep([manifest])


def _first_reply(verdict: Verdict) -> Origin | None:
    if not verdict.first_replies:
        return None
    first = verdict.first_replies[0]
    how = "the first reply that is another one"
    return Origin(epoch=first.epoch, phase=first.phase, tid=first.tid, functions=[first.function], how=how)


def _of_epoch(there: list[Manifest], epoch: int) -> Manifest:
    for manifest in there:
        if manifest.epoch == epoch:
            return manifest
    epochs = ", ".join(str(manifest.epoch) for manifest in there)
    raise CannotJudge(f"there is no snapshot of epoch {epoch}; there are those of {epochs}")


def _unjudged(after: int, until: int, error: CannotJudge) -> Verdict:
    return Verdict(after=after, until=until, outcome=UNJUDGED, reason=str(error), passing=error.passing)


def _empty(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
