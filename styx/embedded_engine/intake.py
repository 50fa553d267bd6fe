"""Where requests enter: appended to the log and given to the worker, or held back while there is no room.

Never waits for the disk: the log is one sequence, and the epoch that takes a request is durable only after it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, Final

from styx.embedded_engine.drive import Drive
from styx.embedded_engine.engine_log import EngineLog
from styx.errors import FunctionTooLong, InTransactionError, NotSent, OutcomeUnknown, RequestRejected, StyxError
from styx.host.backlog import Backlog
from styx.host.waiters import Receiver, Waiter, Waiters, fail
from styx.log.base import Stream
from styx.messages import Reply, ReplyRecord, Request
from styx.model.app import App
from styx.model.execution import resolve_request
from styx.model.limits import Limits
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.model.request import AppRouter, Placed
from styx.model.signature import NO_ARGUMENTS
from styx.worker.admission import UNPLACED
from styx.worker.invocation import Running
from styx.worker.standing import Placing

LOG_BACKLOG_BYTES_MAX: Final = 64 * 1024 * 1024
"""While more than this waits for the disk, requests are held back."""
COUNTED_TOGETHER: Final = 16
"""Replies that the backlog is told of at once, since telling it costs more than a reply's own part of it."""


class EngineRouter(AppRouter):
    """Places the requests of an engine's app, whose `partition_key` runs where the watchdog sees it.

    What a name cannot be placed for goes to slot 0 as what no operator has: its sequencer rejects it.
    """

    def __init__(self, app: App, n_slots: int, limits: Limits, running: Callable[[], Running]) -> None:
        super().__init__(app, n_slots)
        self._app = app
        self._limits = limits
        self._placing = Placing(app, limits, n_slots, running)

    def place(self, operator: Operator | str, key: Any, function: str = "") -> tuple[Key, int]:
        """As `Router.place`; raises `RequestRejected` where the `partition_key` does not end: it is not logged."""
        declared = operator if isinstance(operator, Operator) else self._app.operators.get(operator)
        try:
            if declared is None or declared.key_space.partition_key is None:
                return super().place(operator, key, function)
            sent = list(key) if isinstance(key, tuple) else key  # as in a request that was decoded
            request = Request("", declared.name, sent, function, NO_ARGUMENTS)
            target = resolve_request(self._app, request, self._limits, self._n_slots, self._placing.slot_of)
        except FunctionTooLong as error:
            raise RequestRejected(UNPLACED, str(error)) from None
        except InTransactionError:
            return key, 0
        return target.key, target.slot


class RequestIntake:
    """Requests of one engine while it serves: `taken` are in the engine, `held` wait for one of `taken_max` places."""

    def __init__(self, log: EngineLog, drive: Drive, taken_max: int) -> None:
        loop = self._loop = asyncio.get_running_loop()
        self.taken = Waiters[str](loop, taken_max, _no_reply, forgets=False)
        self._backlog = Backlog()
        self._uncounted = 0
        self.held = Waiters[str](loop, math.inf, _no_place, forgets=False, queued=True)
        self._appended = log
        self._log = log.log
        self._drive = drive

    def take_or_refuse(self, request: Placed, timeout: float, receiver: Receiver) -> None:
        """Takes it at once or raises `RequestRejected`, `overloaded` if there are too many. The receiver gets the
        `ReplyRecord`; `timeout` in seconds from now on.
        """
        request_id, slot, payload, _ = request
        self.taken.check(request_id, self._log.backlog_bytes > LOG_BACKLOG_BYTES_MAX)
        now_s = self._loop.time()
        self._enter(Waiter(request_id, slot, payload, receiver, True, False, now_s, now_s + timeout))

    def take_or_hold(self, request: Placed, timeout: float) -> asyncio.Future[Reply]:
        """Takes it as soon as there is room, in the order they come; `timeout` in seconds from now on."""
        now_s = self._loop.time()
        future: asyncio.Future[Reply] = self._loop.create_future()
        waiter = Waiter(request.request_id, request.slot, request.payload, future, False, False, now_s, now_s + timeout)
        if self.held.by_id or self._crowded:
            self.held.add(waiter)
        else:
            self._enter(waiter)
        return future

    def admit_held(self) -> None:
        """Takes what was held back, as far as there is room now."""
        held = self.held
        while held.by_id and not self._crowded:
            waiter = held.pop_oldest()
            if not waiter.receiver.done():
                try:
                    self._enter(waiter)
                except NotSent as error:
                    fail(waiter.receiver, error)

    def answer(self, reply: ReplyRecord) -> None:
        """Gives a reply to the caller that waits for it, if there is one."""
        waiter = self.taken.by_id.get(reply.request_id)
        if waiter is not None:
            self.taken.answer(waiter, reply)
            self._uncounted += 1
            if self._uncounted == COUNTED_TOGETHER:
                self._count(waiter.since_s)

    def _count(self, since_s: float) -> None:
        count, self._uncounted, now_s = self._uncounted, 0, self._loop.time()
        self._backlog.answered(now_s, count, now_s - since_s, len(self.taken.by_id))
        self.taken.bound(self._backlog.bound)

    def end(self, reason: str) -> None:
        """Nobody is answered any more."""
        self.taken.end(lambda: OutcomeUnknown(reason))
        self.held.end(lambda: NotSent(reason))

    @property
    def _crowded(self) -> bool:
        return self.taken.full or self._log.backlog_bytes > LOG_BACKLOG_BYTES_MAX

    def _enter(self, waiter: Waiter[str]) -> None:
        """Raises `NotSent` if the log takes nothing any more, whose failure the engine hears of by itself."""
        now_us = self._appended.now_us()
        try:
            offset = self._log.append(Stream.REQUESTS, waiter.slot, now_us, waiter.payload)
        except StyxError as error:
            raise NotSent(f"the request could not be put into the log: {error}; nothing was run") from error
        self.taken.add(waiter)
        self._drive.request(waiter.slot, (offset, now_us, waiter.payload))


def _no_reply() -> Exception:
    return TimeoutError("no reply in time; the request may still commit")


def _no_place() -> Exception:
    return TimeoutError("too many requests were under way for too long; nothing was run")
