"""The audit's clients. Each sends its next request after the reply to the last one, and repeats a request without a
reply.

A request is repeated under its idempotency key, so that it takes effect once however often it is sent. From time to
time a client requests an old reply again.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from itertools import count
from typing import Any, Final, NamedTuple

from examples.bank_audit.findings import ANSWERED, REPLIES_KEPT, Findings
from examples.bank_audit.serial_order import SerialOrder, place_of
from examples.bank_audit.workload import Call
from styx.client.base import Client
from styx.messages import Reply

SENDS_MAX: Final = 10_000
"""The most attempts at one request."""
REPLY_SECONDS: Final = 5.0
"""The time limit of one attempt. It is short, because a connection to a lost machine does not end by itself."""
PAUSE_SECONDS: Final = 0.05
"""The pause before the second attempt. Each further pause is twice as long."""
PAUSE_SECONDS_MAX: Final = 1.0
KEPT_MAX: Final = 1_000
"""The number of answered requests that are kept, to ask for their replies again."""
ASKED_AGAIN_SHARE: Final = 0.02
FULL_SECONDS: Final = 0.05
"""The pause between two checks whether the order takes more replies."""
REASONS_MAX: Final = 10
"""The number of reasons for repeated requests that are reported."""

_NOT_TAKEN: Final = frozenset({"overloaded", "unavailable"})


class Kept(NamedTuple):
    """A request that was answered."""

    number: int
    call: Call
    reply: Reply


class Totals:
    """Counts of requests and replies; times in seconds."""

    def __init__(self) -> None:
        self.answered = 0
        self.committed = 0
        self.aborted = 0
        self.sent_again = 0
        self.asked_again = 0
        self.slowest_s = 0.0
        self.pause_s = 0.0
        self.pause_at_s = 0.0
        self._began_s = self._last_s = time.monotonic()

    def begin(self) -> None:
        """Begins to measure pauses between replies."""
        self.pause_s = self.slowest_s = 0.0
        self._began_s = self._last_s = time.monotonic()

    def book(self, reply: Reply, seconds: float) -> None:
        """Counts a reply, and the time since its request was first sent."""
        now_s = time.monotonic()
        if now_s - self._last_s > self.pause_s:
            self.pause_s, self.pause_at_s = now_s - self._last_s, self._last_s - self._began_s
        self._last_s = now_s
        self.slowest_s = max(self.slowest_s, seconds)
        self.answered += 1
        if reply.error is None:
            self.committed += 1
        else:
            self.aborted += 1


class Clients:
    """`number` clients, for the run `name`. They end at the first violation. A request without a reply is repeated for
    `patience_s` seconds; then it counts as unanswered. `again` gets each reason for repeating once.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        number: int,
        order: SerialOrder,
        findings: Findings,
        patience_s: float,
        again: Callable[[str], None],
    ) -> None:
        self.totals = Totals()
        self._client = client
        self._name = name
        self._clients = number
        self._order = order
        self._findings = findings
        self._patience_s = patience_s
        self._again = again
        self._told: set[str] = set()
        self._numbers = count(1)
        self._kept: deque[Kept] = deque(maxlen=KEPT_MAX)

    async def send_all(self, calls: Iterator[Call], answered: Callable[[Call, Reply], None] | None = None) -> None:
        """Sends all calls, and returns when each has its reply or a rule is violated."""
        await _together(self._send_each(calls, answered) for _ in range(self._clients))

    async def ask_again(self, requests: int) -> None:
        """Sends this many of the last requests once more, unchanged."""
        kept = iter(random.sample(self._kept, min(requests, len(self._kept))))
        await _together(self._ask_each(kept) for _ in range(self._clients))

    async def _send_each(self, calls: Iterator[Call], answered: Callable[[Call, Reply], None] | None) -> None:
        for call in calls:  # shared by all: each takes the next one
            while self._order.full and not self._findings:  # noqa: ASYNC110 - an order is no event source
                await asyncio.sleep(FULL_SECONDS)
            if self._findings:
                return
            number, began_s = next(self._numbers), time.monotonic()
            self._order.sent(number)
            reply = await self._reply(number, call)
            if reply is None:
                return
            self.totals.book(reply, time.monotonic() - began_s)
            self._order.answered(number, call, reply)
            if answered is not None:
                answered(call, reply)
            self._kept.append(Kept(number, call, reply))
            if random.random() < ASKED_AGAIN_SHARE:  # noqa: S311 - not a secret
                await self._ask(random.choice(self._kept))  # noqa: S311 - as above

    async def _ask_each(self, kept: Iterator[Kept]) -> None:
        for each in kept:
            await self._ask(each)

    async def _ask(self, kept: Kept) -> None:
        again = await self._reply(kept.number, kept.call)
        if again is None:
            return
        self.totals.asked_again += 1
        if _substance(again) != _substance(kept.reply):
            self._findings.violated(
                REPLIES_KEPT, f"{kept.call}: first {_reply_text(kept.reply)}, when asked again {_reply_text(again)}"
            )

    async def _reply(self, number: int, call: Call) -> Reply | None:
        """The reply; None after a violation."""
        began_s, pause_s = time.monotonic(), PAUSE_SECONDS
        problem = ""
        for attempt in range(SENDS_MAX):
            if attempt:
                if time.monotonic() - began_s > self._patience_s:
                    break
                self.totals.sent_again += attempt == 1
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, PAUSE_SECONDS_MAX)
            try:
                reply = await self._client.request(
                    "account",
                    call.key,
                    call.function,
                    *call.arguments,
                    timeout=REPLY_SECONDS,
                    idempotency_key=f"{self._name}-{number}",
                )
            except (ConnectionError, TimeoutError) as error:
                problem = str(error) or type(error).__name__
            else:
                if reply.error is None or reply.error.code == "aborted":
                    return reply
                problem = f"{reply.error.code}: {reply.error.message}"
                if reply.error.code not in _NOT_TAKEN:
                    break
            self._tell(problem)
        self._findings.violated(ANSWERED, f"{call} got no answer: {problem}")
        return None

    def _tell(self, problem: str) -> None:
        reason = problem.split(" (request ", maxsplit=1)[0]
        if reason not in self._told and len(self._told) < REASONS_MAX:
            self._told.add(reason)
            self._again(reason)


async def _together(tasks: Iterable[Coroutine[Any, Any, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for task in tasks:
            group.create_task(task)


def _substance(reply: Reply) -> Reply:
    """The reply without its request's id, which differs at every attempt."""
    return reply._replace(request_id="")


def _reply_text(reply: Reply) -> str:
    epoch, phase, tid = place_of(reply)
    outcome = repr(reply.result) if reply.error is None else f"{reply.error.type}: {reply.error.message}"
    return f"epoch {epoch} phase {phase} tid {tid}: {outcome}"
