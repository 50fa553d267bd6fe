"""`styx audit --follow` as a process beside a cluster under test, and its verdicts so far."""

from __future__ import annotations

import asyncio
from typing import Final

from proof.cluster.child import ChildProcess
from styx.audit.verdict import UNJUDGED, Verdict, decode_verdict
from styx.testing.patience import PATIENCE_SECONDS

POLL_SECONDS: Final = 0.2
_BEGIN: Final = b"{"
"""Of a verdict's line; other lines of the process are for people."""


class Follower:
    """Reads what the process `child` writes."""

    def __init__(self, child: ChildProcess) -> None:
        self._child = child

    def verdicts(self) -> list[Verdict]:
        """All so far, in their order."""
        lines = self._child.log.read_bytes().split(b"\n")[:-1]
        return [decode_verdict(line) for line in lines if line.startswith(_BEGIN)]

    async def come_to(self, epoch: int) -> None:
        """Waits until it has come to the snapshot of this epoch, or can judge no more. Raises `ChildFailed` if it ends
        otherwise, `TimeoutError` if it takes too long.
        """
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                found = self.verdicts()
                if any(each.until >= epoch or _is_last(each) for each in found):
                    return
                self._child.check()
                await asyncio.sleep(POLL_SECONDS)


def _is_last(verdict: Verdict) -> bool:
    return verdict.outcome == UNJUDGED and not verdict.passing
