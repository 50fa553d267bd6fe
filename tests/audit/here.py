"""Audits of a data directory in the process of the test."""

from __future__ import annotations

from pathlib import Path

from styx.audit.case import CopiedObjects
from styx.audit.course import Audit, AuditOptions
from styx.audit.judge import judge
from styx.audit.metrics import AuditCounters
from styx.audit.place import DirectoryPlace
from styx.audit.verdict import Verdict
from styx.model.app import App


async def judge_here(app: App, case: Path, objects: Path, workers: int | None, trace: Path | None) -> Verdict:
    """As `Judge`, for an app that is there already."""
    return judge(case, CopiedObjects(objects), app, workers, trace=trace)


def audit_of(
    app: App,
    directory: Path,
    scratch: Path,
    *,
    workers: int | None = None,
    after: int | None = None,
    until: int | None = None,
    scratch_bytes: int = 2**30,
    counters: AuditCounters | None = None,
) -> Audit:
    """The audit of what is in a directory."""
    scratch.mkdir(parents=True, exist_ok=True)
    options = AuditOptions(scratch=scratch, scratch_bytes=scratch_bytes, workers=workers, after=after, until=until)

    async def judged(case: Path, objects: Path, workers: int | None, trace: Path | None) -> Verdict:
        return await judge_here(app, case, objects, workers, trace)

    return Audit(DirectoryPlace(directory, app), app, options, judged, counters or AuditCounters())
