"""The requester: what a client or gateway process has of a deployment behind Kafka. One for each process.

Requests go into the partition of their slot. Replies come back in one partition of the replies, chosen at random, which
every request names; it may be shared with others, whose replies are passed over without being decoded. It decides
nothing about where a key lives, with one exception: a request that a worker sends back because its key belongs to
another partition goes there, once, for nothing of it was run.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import secrets
from itertools import count
from typing import Any, Final

import msgspec

from styx.errors import BadArguments, ConfigurationError, RequestRejected
from styx.kafka_requests.counters import RequestCounters
from styx.kafka_requests.errors import KafkaUnreachable, OutcomeUnknown
from styx.kafka_requests.producer import RequestProducer
from styx.kafka_requests.replies import Records, ReplyReader
from styx.kafka_requests.waiters import Waiter, Waiters
from styx.limits import Limits
from styx.log.kafka.address import KafkaAddress
from styx.log.kafka.topics import topics_of
from styx.messages import Reply, ReplyRecord, Request, decode_reply, encode_request

WRONG_PARTITION: Final = "WrongPartition"
"""The error type of a reply that says: not here, and nothing was run."""
_PARTITION_AT_END: Final = re.compile(r"partition ([0-9]{1,9})\Z", re.ASCII)

_log = logging.getLogger("styx.kafka_requests")


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
        self._address = address
        self._app_name = app_name
        self._topics = topics = topics_of(app_name)
        self._loop = asyncio.get_running_loop()
        self._waiters = Waiters(self._loop, self.limits.in_flight_max, self._late)
        self._producer = RequestProducer(address, topics.requests, self._task_ended)
        self._replies: ReplyReader | None = None
        self._reply_to = 0
        self._fault: str | None = None
        self._id_prefix = secrets.token_hex(8) + "-"
        self._id_numbers = count(1)

    async def start(self) -> None:
        """Connects; raises `KafkaUnreachable`, or `ConfigurationError` if the app is not deployed there."""
        topics = self._topics
        try:
            await self._producer.start()
            n_slots, n_replies = await self._producer.partition_counts(topics.requests, topics.replies)
            if not n_slots or not n_replies:
                raise ConfigurationError(
                    f"there is no app {self._app_name!r} at {self._producer}: "
                    f"it lacks the topic {topics.replies if n_slots else topics.requests}; is the app deployed?"
                )
            self._reply_to = secrets.randbelow(n_replies)
            self._replies = ReplyReader(self._address, topics.replies, self._reply_to, self._answer, self._task_ended)
            await self._replies.start()
        except BaseException:
            await self._producer.close()
            raise
        self.n_slots = n_slots

    async def close(self) -> None:
        """Disconnects. Who still waits gets `OutcomeUnknown`; closing twice is harmless."""
        self.n_slots = 0
        self._waiters.end(lambda: OutcomeUnknown("closed before the reply came; the request may still commit"))
        await self._producer.close()
        if self._replies is not None:
            await self._replies.close()
            self._replies = None

    @property
    def unavailable_reason(self) -> str | None:
        """Why requests cannot be sent now; None if they can."""
        if not self.n_slots:
            return "not connected to Kafka"
        return self._fault or self._producer.away_reason

    @property
    def in_flight(self) -> int:
        """Requests that wait for their reply."""
        return len(self._waiters.by_id)

    def next_request_id(self) -> str:
        """An id that no other request has."""
        return f"{self._id_prefix}{next(self._id_numbers):x}"

    def submit_raw(self, request: Request, slot: int) -> asyncio.Future[ReplyRecord]:
        """Sends a request to `slot`; the future gives its reply record. Who waits no longer cancels the future.

        Raises `RequestRejected` (`too_large`, `bad_request`, `overloaded`) or `KafkaUnreachable`: nothing was sent.
        """
        return self._submit(request, slot, raw=True, deadline_s=math.inf)

    def submit(self, request: Request, slot: int, timeout: float) -> asyncio.Future[Reply]:
        """As `submit_raw`, giving the `Reply`, or `TimeoutError` after `timeout` seconds."""
        return self._submit(request, slot, raw=False, deadline_s=self._loop.time() + timeout)

    def _submit(self, request: Request, slot: int, raw: bool, deadline_s: float) -> asyncio.Future[Any]:
        request_id, idempotency_key = request.request_id, request.idempotency_key
        try:
            payload = encode_request(
                Request(
                    request_id,
                    request.operator,
                    request.key,
                    request.function,
                    request.params,
                    idempotency_key,
                    self._reply_to,
                )
            )
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise BadArguments(f"the request cannot be encoded: {error}") from None
        limit = self.limits.request_bytes_max
        if len(payload) > limit:
            raise RequestRejected("too_large", f"the request has {len(payload)} bytes; the limit is {limit}: send less")
        reason = self.unavailable_reason
        if reason is not None:
            raise KafkaUnreachable(f"{reason}; nothing was sent, try again soon")
        waiters = self._waiters
        if request_id in waiters.by_id:
            raise RequestRejected("bad_request", f"request id {request_id!r} is under way already")
        if waiters.full:
            raise RequestRejected("overloaded", f"{len(waiters.by_id)} requests are in flight; try again soon")
        loop = self._loop
        waiter = Waiter(
            request_id, slot, payload, loop.create_future(), raw, bool(idempotency_key), loop.time(), deadline_s
        )
        waiters.add(waiter)
        self._producer.send(waiter)
        self.counters.sent += 1
        return waiter.future

    def _answer(self, records: Records) -> None:
        waiters, counters, now_s = self._waiters, self.counters, self._loop.time()
        for record in records:
            waiter = waiters.by_id.get(str(record.key or b"", "utf-8", "replace"))
            if waiter is None:
                # Another requester's, or the second one to a request, or of one that nobody waits for any more.
                counters.foreign += 1
                continue
            try:
                reply = decode_reply(record.value or b"")
            except (msgspec.DecodeError, ValueError, RecursionError):
                counters.garbage += 1
                continue
            error = reply.error
            if error is not None and error[1] == WRONG_PARTITION and self._reroute(waiter, reply.sequence, error[2]):
                continue
            counters.replied(error[0] if error is not None else None, now_s - waiter.since_s)
            waiters.answer(waiter, reply)

    def _reroute(self, waiter: Waiter, tid: int, message: str) -> bool:
        """Whether a request that came back will have another reply."""
        if waiter.misrouted_tid:
            return waiter.misrouted_tid == tid
        found = _PARTITION_AT_END.search(message)
        if found is None:
            return False
        waiter.misrouted_tid = tid
        waiter.slot = int(found[1]) % self.n_slots
        self.counters.rerouted += 1
        self._producer.send(waiter)
        return True

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._fault = "the connection to Kafka failed in an unforeseen way; the log says how"
            _log.critical("no requests can be sent any more: start this process anew", exc_info=task.exception())

    def _late(self) -> Exception:
        reason = self._producer.away_reason
        return TimeoutError(f"no reply in time{f', {reason}' if reason else ''}; the request may still commit")
