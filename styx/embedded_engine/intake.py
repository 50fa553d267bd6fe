"""Where requests enter: encoded, placed on their slot, appended to the log and given to the worker, or held back.

What cannot be placed goes to slot 0, whose sequencer rejects it, so that it has an ordinary reply. Never waits for the
disk: the log is one sequence, and the epoch that takes a request is durable only after it.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from styx.embedded_engine.drive import Drive
from styx.embedded_engine.in_flight import InFlight, Waiter, fail
from styx.errors import BadArguments, FunctionTooLong, InTransactionError, NotSent, RequestRejected, StyxError
from styx.log.base import Log, Record, Stream
from styx.messages import Reply, ReplyRecord, Request, encode_request
from styx.model.app import App
from styx.model.execution import resolve_request
from styx.model.limits import Limits
from styx.worker.admission import UNPLACED
from styx.worker.placing import Placing
from styx.worker.running import Running

LOG_BACKLOG_BYTES_MAX: Final = 64 * 1024 * 1024
"""While more than this waits for the disk, requests are held back."""


class Intake:
    """Requests of one engine while it serves."""

    def __init__(
        self,
        app: App,
        n_slots: int,
        limits: Limits,
        loop: asyncio.AbstractEventLoop,
        log: Log,
        requests: InFlight,
        drive: Drive,
        now_us: Callable[[], int],
        running: Callable[[], Running],
    ) -> None:
        self._app = app
        self._limits = limits
        self._placing = Placing(app, limits, n_slots, running)
        self._n_slots = n_slots
        self._bytes_max = limits.request_bytes_max
        self._loop = loop
        self._log = log
        self._requests = requests
        self._drive = drive
        self._now_us = now_us
        # Unique among all starts: request ids meet in one replies stream.
        self._id_prefix = secrets.token_hex(8) + "-"
        self._id_numbers = count(1)

    def next_request_id(self) -> str:
        """An id that no other request has."""
        return f"{self._id_prefix}{next(self._id_numbers):x}"

    def take_or_refuse(self, request: Request) -> asyncio.Future[ReplyRecord]:
        """Takes it at once or raises `RequestRejected`, `overloaded` if there are too many."""
        waiter = self._waiter(request, raw=True, deadline_s=math.inf)
        if request.request_id in self._requests.taken:
            raise RequestRejected("bad_request", f"request id {request.request_id!r} is under way already")
        if self._crowded:
            raise RequestRejected("overloaded", f"{len(self._requests.taken)} requests are in flight; try again soon")
        self._enter(request.request_id, waiter)
        return waiter.future

    def take_or_hold(self, request: Request, timeout: float) -> asyncio.Future[Reply]:
        """Takes it as soon as there is room, in the order they come; `timeout` in seconds from now on."""
        deadline_s = self._loop.time() + timeout
        waiter = self._waiter(request, raw=False, deadline_s=deadline_s)
        requests = self._requests
        if requests.held or self._crowded:
            requests.held.append((request.request_id, waiter))
        else:
            self._enter(request.request_id, waiter)
        requests.watch(deadline_s)
        return waiter.future

    def admit_held(self) -> None:
        """Takes what was held back, as far as there is room now."""
        held = self._requests.held
        while held and not self._crowded:
            request_id, waiter = held.popleft()
            if not waiter.future.done():
                try:
                    self._enter(request_id, waiter)
                except NotSent as error:
                    fail(waiter.future, error)

    @property
    def _crowded(self) -> bool:
        return self._requests.full or self._log.backlog_bytes > LOG_BACKLOG_BYTES_MAX

    def _waiter(self, request: Request, raw: bool, deadline_s: float) -> Waiter:
        try:
            payload = encode_request(request)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise BadArguments(f"the request cannot be encoded: {error}") from None
        if len(payload) > self._bytes_max:
            raise RequestRejected(
                "too_large", f"the request has {len(payload)} bytes; the limit is {self._bytes_max}: send less"
            )
        future: asyncio.Future[Any] = self._loop.create_future()
        return Waiter(self._slot_of(request), payload, future, raw, deadline_s)

    def _slot_of(self, request: Request) -> int:
        """Raises `RequestRejected` where the app's `partition_key` does not end: what is in the log, is for good."""
        operator = self._app.operators.get(request.operator)
        if operator is None:
            return 0
        try:
            if operator.key_space.partition_key is None:
                return operator.slot_of(operator.check_key(request.key), self._n_slots)
            return resolve_request(self._app, request, self._limits, self._n_slots, self._placing.slot_of).slot
        except FunctionTooLong as error:
            raise RequestRejected(UNPLACED, str(error)) from None
        except InTransactionError:
            return 0

    def _enter(self, request_id: str, waiter: Waiter) -> None:
        """Raises `NotSent` if the log takes nothing any more, whose failure the engine hears of by itself."""
        now_us = self._now_us()
        try:
            offset = self._log.append(Stream.REQUESTS, waiter.slot, now_us, waiter.payload)
        except StyxError as error:
            raise NotSent(f"the request could not be put into the log: {error}; nothing was run") from error
        self._requests.take(request_id, waiter)
        self._drive.request(waiter.slot, Record(offset, now_us, waiter.payload))
