"""Reads outside the log in an embedded engine: those that wait for their end, and the slice of them in each pass.

All slots are here, so a read never asks another worker. The engine holds the lock of its data, so nobody else has
answered anything: `answered_epoch` is the fence of a strict read.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

from styx.errors import RequestRejected, StyxError
from styx.host.passes import Passes
from styx.host.waiters import Waiter, Waiters
from styx.messages import ReplyRecord, decode_request
from styx.model.freshness import AT, LEVELS, SESSION, STRICT, Freshness
from styx.model.request import Placed
from styx.protocol.reads import READ_NUMBERS, READ_PHASE, PartReturned
from styx.reports.function_reports import FunctionReports
from styx.worker.reads import ReadEnded, Reads, ReadWanted, answered_epoch, closed_epoch, least_epoch
from styx.worker.worker import Worker


class EngineReads:
    """The reads of one engine, which run in its `passes` from the first one on. `now_us` is its clock.

    `asked` counts reads by freshness, `stale` those that were refused for the age of the state.
    """

    def __init__(self, worker: Worker, reports: FunctionReports, now_us: Callable[[], int], passes: Passes) -> None:
        self.asked = dict.fromkeys((*LEVELS, AT), 0)
        self.stale = 0
        self._loop = asyncio.get_running_loop()
        self._worker = worker
        self._reports = reports
        self._now_us = now_us
        self._passes = passes
        self._reads = Reads(worker)
        self._waiting = Waiters[str](self._loop, worker.limits.in_flight_max, _late)
        # Numbers one behind the other, from anywhere: those of two processes do not meet.
        self._number = secrets.randbelow(READ_NUMBERS)
        self._begun = -1
        self._begun_s = 0.0

    @property
    def too_old(self) -> int:
        """How often versions have not reached the epoch of a read."""
        return self._reads.too_old

    @property
    def under_way(self) -> int:
        """How many reads have not ended."""
        return len(self._reads)

    @property
    def answered(self) -> int:
        """The last epoch of which a reply can have left: a token for all that this process was answered."""
        return answered_epoch(self._worker)

    def submit(
        self, request: Placed, freshness: Freshness, seconds: float = math.inf, raw: bool = True
    ) -> asyncio.Future[Any]:
        """The future gives the read's `ReplyRecord`, or its `Reply` if not `raw`: `epoch` is the one at whose end it
        has read. It raises `TimeoutError` when `seconds` have passed. Cancelling it ends the read.

        Raises `RequestRejected`: `overloaded`, `too_stale`, or `unknown_epoch`.
        """
        waiting, its_id, now_s = self._waiting, request.request_id, self._loop.time()
        waiting.check(its_id)
        self._check_token(freshness)
        self.asked[freshness.level] += 1
        at_least = least_epoch(self._worker, freshness)
        seconds_old = None if freshness.level == STRICT else freshness.max_staleness_s
        if seconds_old is not None and at_least < self._worker.epoch:
            at_least = max(at_least, self._young(seconds_old))
        self._number += 1
        number = READ_NUMBERS + self._number % READ_NUMBERS
        future: asyncio.Future[Any] = self._loop.create_future()
        future.add_done_callback(partial(self._left, its_id))
        waiting.add(Waiter(its_id, request.slot, request.payload, future, raw, False, now_s, now_s + seconds))
        asked = decode_request(request.payload)
        self._reads.ask(ReadWanted(its_id, asked, number, self._now_us(), at_least, freshness.at))
        self._passes.read = self.run
        self._passes.wake()
        return future

    def run(self) -> bool:
        """Runs a slice, in a pass, behind the steps of the protocol; whether there is more to run."""
        worker, reads = self._worker, self._reads
        if worker.epoch != self._begun:
            self._begun, self._begun_s = worker.epoch, self._loop.time()
        if not reads.runnable:
            return False
        for ended in reads.run(worker.limits.slice_invocations):
            assert isinstance(ended, ReadEnded), "a slot is not here"
            self._end(ended)
        if not self._reports.notes.empty:
            self._reports.take()
        return reads.runnable

    def end(self, error: Callable[[], StyxError]) -> None:
        """Nobody is answered any more."""
        self._waiting.end(error)

    def _check_token(self, freshness: Freshness) -> None:
        """Nobody was answered, or has read, at a later epoch than those that are open or recorded here."""
        newest = max(self._worker.epoch, self._worker.recorded_until)
        if freshness.level == SESSION and freshness.token > newest:
            raise RequestRejected(
                "unknown_epoch",
                f"the session's token is epoch {freshness.token}, and the newest epoch is {newest}: the token is of "
                "another engine, or of this one before its data were deleted. Begin a new session, without a token",
            )

    def _young(self, seconds: float) -> int:
        """The epoch that a read waits for whose state may be so old; raises `RequestRejected` (`too_stale`).

        A state is the newest one until the next epoch begins, whose transactions may be what is missing in it. If
        nobody has seen that one begin, the read waits for its end.
        """
        epoch = self._worker.epoch
        if closed_epoch(self._worker) >= epoch:
            return -1
        if self._begun != epoch:
            return epoch
        age_s = self._loop.time() - self._begun_s
        if age_s > seconds:
            self.stale += 1
            raise RequestRejected(
                "too_stale",
                f"the newest state is {age_s:.3f} s old, because an epoch takes that long; {seconds:g} s are allowed: "
                "ask again, or allow more",
            )
        return -1

    def _end(self, ended: ReadEnded) -> None:
        waiter = self._waiting.by_id.get(ended.id)
        if waiter is None:
            return
        end = ended.end
        if isinstance(end, PartReturned):
            record = ReplyRecord(waiter.key, 0, 0, ended.epoch, READ_PHASE, end.value or b"")
        else:
            error = (end.code, end.kind, end.message)
            record = ReplyRecord(waiter.key, 0, 0, ended.epoch, READ_PHASE, b"", error)
        self._waiting.answer(waiter, record)

    def _left(self, its_id: str, future: asyncio.Future[Any]) -> None:
        """Nobody waits for it any more: it was answered, was cancelled, or is late."""
        if future.cancelled() or future.exception() is not None:
            waiter = self._waiting.by_id.get(its_id)
            if waiter is not None:
                self._waiting.remove(waiter)
            self._reads.cancel(its_id)
            self._passes.wake()  # what it ran ends in a pass


def _late() -> Exception:
    return TimeoutError("the read has not ended in time; nothing was changed")
