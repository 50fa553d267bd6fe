"""The requester: a client's or gateway's access to a deployment behind Kafka. One for each process.

Requests go into the partition of their slot. Replies come in one partition of the replies, which is chosen at random
and named by every request. Other requesters may share it; their replies are skipped without being decoded. If a worker
sends a request back because its key belongs to another partition, nothing was run, and the request goes to that
partition, once.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import secrets
from typing import Any, Final

import msgspec

from styx.client.kafka.replies import ReplyReader
from styx.client.kafka.sender import RequestSender
from styx.errors import ConfigurationError, EngineFailed, NotSent, OutcomeUnknown
from styx.host.backlog import Backlog
from styx.host.waiters import Receiver, Waiter, Waiters
from styx.kafka.address import KafkaAddress
from styx.kafka.session import KafkaSession
from styx.kafka.topics import topics_of
from styx.messages import decode_reply
from styx.metrics.histogram import REQUEST_SECONDS, Histogram
from styx.model.limits import Limits
from styx.model.request import Placed, RequestMaker, Router

WRONG_PARTITION: Final = "WrongPartition"
"""The error type of a worker's reply to a request of another partition, of which nothing was run."""
CONNECT_SECONDS: Final = 10.0
"""How long each step of connecting may take."""
FEW: Final = 8
"""Below this number, values are cheaper to observe one by one."""

_PARTITION_AT_END: Final = re.compile(r"partition ([0-9]{1,9}+)\Z", re.ASCII)

_log = logging.getLogger("styx.client.kafka")


class RequestCounters:
    """A requester's totals since its start: replies by outcome, their latency, and unusable records."""

    def __init__(self) -> None:
        self.sent = 0
        self.committed = 0
        self.aborted = 0
        self.rejected = 0
        self.rerouted = 0
        self.foreign = 0
        self.garbage = 0
        self.latency = Histogram(REQUEST_SECONDS)

    def committed_after(self, seconds: list[float]) -> None:
        """Counts commits, with the seconds from each request to its reply; sorts `seconds`."""
        self.committed += len(seconds)
        if len(seconds) < FEW:
            for each in seconds:
                self.latency.observe(each)
        else:
            self.latency.observe_all(seconds)

    def failed_after(self, code: str, seconds: float) -> None:
        """Counts a reply with this error code that came after `seconds`."""
        if code == "aborted":
            self.aborted += 1
        else:
            self.rejected += 1
        self.latency.observe(seconds)


class Requester:
    """Sends requests of the app `app_name` and waits for their replies, on the event loop it is made on.

    `n_slots` is known after `start`. Raises `ConfigurationError` for a name that no app in a cluster can have.
    """

    def __init__(
        self,
        address: KafkaAddress,
        app_name: str,
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.counters = RequestCounters()
        self.n_slots = 0
        self.reply_to = 0
        """The partition of the replies, named by each request. Known after `start`."""
        self._app_name = app_name
        self._topics = topics = topics_of(app_name)
        self._loop = asyncio.get_running_loop()
        self._session = KafkaSession(address)
        self._waiters = Waiters[bytes](self._loop, self.limits.in_flight_max, self._late)
        self._backlog = Backlog()
        self._sender = RequestSender(self._session, topics.requests, self._failed)
        self._replied_after = self._sender.producer.pacing.replied_after
        self._replies: ReplyReader | None = None
        self._fault: str | None = None
        self._available_s = math.nan

    async def start(self) -> None:
        """Connects; raises `NotSent`, or `ConfigurationError` if the app is not deployed there."""
        try:
            n_slots = await self._connect()
        except BaseException as error:
            await self._disconnect()
            if isinstance(error, (OSError, EngineFailed)) and not isinstance(error, NotSent):
                raise NotSent(str(error) or f"{self._session} does not answer") from None
            raise
        self.n_slots = n_slots

    def maker(self, router: Router) -> RequestMaker:
        """Makes the requests that it sends, from its `start` on."""
        return RequestMaker(router, self.limits.request_bytes_max, self.reply_to)

    async def _connect(self) -> int:
        topics, session = self._topics, self._session
        async with asyncio.timeout(CONNECT_SECONDS):
            await session.open()
            # Asked about all topics: a broker may make those that it is asked about by name.
            if not await session.refresh():
                raise NotSent(f"{session} does not answer")
        n_slots, n_replies = len(session.partitions(topics.requests)), len(session.partitions(topics.replies))
        if not n_slots or not n_replies:
            raise ConfigurationError(
                f"there is no app {self._app_name!r} at {session}: "
                f"it lacks the topic {topics.replies if n_slots else topics.requests}; is the app deployed?"
            )
        session.track(topics.requests)
        session.track(topics.replies)
        self.reply_to = secrets.randbelow(n_replies)
        self._replies = ReplyReader(
            session,
            topics.replies,
            self.reply_to,
            deliver=self._answer,
            passed_over=self._count_garbage,
            failed=self._failed,
        )
        async with asyncio.timeout(CONNECT_SECONDS):
            await self._sender.start()
            await self._replies.start()
        return n_slots

    async def close(self) -> None:
        """Disconnects. Requests under way end in `OutcomeUnknown`. Closing twice is harmless."""
        self.n_slots, self._available_s = 0, math.nan
        self._waiters.end(lambda: OutcomeUnknown("the client was closed before the reply came"))
        await self._disconnect()

    async def _disconnect(self) -> None:
        await self._sender.close()
        if self._replies is not None:
            await self._replies.stop()
            self._replies = None
        await self._session.close()

    @property
    def unavailable_reason(self) -> str | None:
        """Why requests cannot be sent now; None if they can."""
        if not self.n_slots:
            return "not connected to Kafka"
        return self._fault or self._sender.away_reason

    @property
    def broken_reason(self) -> str | None:
        """Why this process has to be started anew, None if it need not. An unreachable Kafka is no reason."""
        return self._fault or (None if self._replies is None else self._replies.stuck_reason)

    @property
    def in_flight(self) -> int:
        """Requests that wait for their reply."""
        return len(self._waiters.by_id)

    def submit(self, request: Placed, timeout: float = math.inf, raw: bool = False) -> asyncio.Future[Any]:
        """Sends a request; the future gives the `Reply`, or with `raw` the `ReplyRecord`.

        The future raises `TimeoutError` after `timeout` seconds. A caller that no longer waits cancels it.

        Raises `RequestRejected` (`bad_request`, `overloaded`) or `NotSent`: nothing was sent.
        """
        future: asyncio.Future[Any] = self._loop.create_future()
        self.send(request, timeout, future, raw)
        return future

    def send(self, request: Placed, timeout: float, receiver: Receiver, raw: bool = False) -> None:
        """As `submit`, for a caller with a receiver of its own."""
        now_s = self._loop.time()
        # A loop's clock may stand still within a turn, as uvloop's does: one look is enough then.
        if now_s != self._available_s:
            self._check_available(now_s)
        request_id, slot, payload, repeatable = request
        waiter = Waiter(request_id.encode(), slot, payload, receiver, raw, repeatable, now_s, now_s + timeout)
        self._waiters.check(waiter.key)
        self._waiters.add(waiter)
        self._sender.send(waiter)
        self.counters.sent += 1

    def _check_available(self, now_s: float) -> None:
        reason = self.unavailable_reason
        if reason is not None:
            raise NotSent(f"{reason}; nothing was sent, try again soon")
        self._available_s = now_s

    def _answer(self, records: list[Any]) -> None:
        waiters, counters, now_s = self._waiters, self.counters, self._loop.time()
        find, answer, before = waiters.by_id.get, waiters.answer, len(waiters.by_id)
        seconds: list[float] = []
        fastest_s = math.inf
        for record in records:
            waiter = find(record.key)
            if waiter is None:
                # Another requester's, or a second reply, or the reply to a request that timed out.
                counters.foreign += 1
                continue
            try:
                reply = decode_reply(record.value or b"")
            except (msgspec.DecodeError, ValueError, RecursionError):
                counters.garbage += 1
                continue
            error = reply.error
            if error is None:
                seconds.append(now_s - waiter.since_s)
            elif error[1] == WRONG_PARTITION and self._reroute(waiter, reply.sequence, error[2]):
                continue
            else:
                failed_s = now_s - waiter.since_s
                fastest_s = min(fastest_s, failed_s)
                counters.failed_after(error[0], failed_s)
            answer(waiter, reply)
        if seconds:
            fastest_s = min(fastest_s, *seconds)
            counters.committed_after(seconds)
        if fastest_s != math.inf:
            self._replied_after(fastest_s)
            self._backlog.answered(now_s, before - len(waiters.by_id), fastest_s, len(waiters.by_id))
            waiters.bound(self._backlog.bound)

    def _count_garbage(self) -> None:
        self.counters.garbage += 1

    def _reroute(self, waiter: Waiter[bytes], tid: int, message: str) -> bool:
        """Sends a request that came back to its slot; False if it cannot, and the reply counts."""
        if waiter.misrouted_tid:
            return waiter.misrouted_tid == tid
        found = _PARTITION_AT_END.search(message)
        if found is None:
            return False
        waiter.misrouted_tid = tid
        waiter.slot = int(found[1]) % self.n_slots
        self.counters.rerouted += 1
        self._sender.send(waiter)
        return True

    def _failed(self, error: BaseException) -> None:
        self._available_s = math.nan
        self._fault = "the connection to Kafka failed in an unforeseen way; the log says how"
        _log.critical("no requests can be sent any more: start this process anew", exc_info=error)

    def _late(self) -> Exception:
        reason = self._sender.away_reason
        return TimeoutError(f"no reply in time{f', {reason}' if reason else ''}; the request may still commit")
