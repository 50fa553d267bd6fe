"""Steady load on a cluster under test: random requests at a given rate, whether replies come or not (open loop).

Requests go through Kafka, a part of them over HTTP, and a part carries idempotency keys: those are sent again until
they are answered, and some once more after that. Every reply is recorded.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from proof.random_looks import random_look
from proof.random_requests import Profile, random_near, random_request
from proof.random_rows import random_row_look, random_rows
from proof.travelling_requests import random_travel
from styx.client.base import Client
from styx.errors import InTransactionError, RequestRejected
from styx.messages import Reply, Request
from styx.model.operator import Operator

TICK_SECONDS: Final = 0.01
REQUEST_SECONDS_MAX: Final = 60.0
"""How long one attempt waits for its reply; longer than any single fault delays it."""
ATTEMPTS_MAX: Final = 6_000
PAUSE_SECONDS: Final = 0.1
"""The pause between two attempts of one request."""
UNDER_WAY_MAX: Final = 5_000
"""Limit on the requests under way: half of a client's limit."""
_NOT_TAKEN: Final = frozenset({"overloaded", "unavailable"})


class Planned(NamedTuple):
    """A request without an id: the arguments of a client's `submit`."""

    operator: str
    key: Any
    function: str
    arguments: tuple[Any, ...]


STEADY: Final = Profile(keys=300, calls_max=6, transfers=0.4, poisoned=0.02)
"""Few enough entities for conflicts, and enough that no single one becomes the bottleneck."""


OUTSIDE: Final = 0.02
"""Share of programs that call an external function."""
NUMBERED: Final = 0.1
"""Share of programs that take a number of a sequence, or a unique id."""
LOOKS: Final = 0.1
"""Share of requests for a read-only function; the next two are of local requests, and of numbers that travel."""
NEAR: Final = 0.15
TRAVELS: Final = 0.1
ROWS: Final = 0.15
"""Share of requests that work on rows, a part of them read-only."""
_NUMBER_STEPS: Final = (["next", 0], ["next", 1], ["last", 0], ["unique"])


class LoadOptions(NamedTuple):
    """`rate` is requests a second; the other two are shares of requests, from 0 to 1."""

    rate: float = 100.0
    keyed: float = 0.3
    http: float = 0.15


def chaos_requests(rng: Random, n_slots: int, profile: Profile = STEADY) -> Callable[[], Planned]:
    """Makes random requests of all kinds for `proof.chaos_app` on `n_slots` slots, except those that a client refuses
    to send.
    """

    def make() -> Planned:
        while True:
            request = _random(rng, n_slots, profile)
            try:
                arguments = msgspec.msgpack.decode(request.params)
            except msgspec.DecodeError:
                continue
            if isinstance(arguments, list):
                if request.function in ("run", "near") and arguments and rng.random() < OUTSIDE:
                    arguments[0] = [*arguments[0], ["outside", rng.randrange(10)]]
                if request.function in ("run", "near") and arguments and rng.random() < NUMBERED:
                    arguments[0] = [rng.choice(_NUMBER_STEPS), *arguments[0]]
                return _planned(request, arguments)

    return make


def row_request(rng: Random) -> Planned:
    """A request that works on rows."""
    request = random_rows(rng, "")
    return _planned(request, msgspec.msgpack.decode(request.params))


def _planned(request: Request, arguments: list[Any]) -> Planned:
    key = tuple(request.key) if isinstance(request.key, list) else request.key
    return Planned(request.operator, key, request.function, tuple(arguments))


def _random(rng: Random, n_slots: int, profile: Profile) -> Request:
    """One request; its id is not used."""
    chance = rng.random()
    if chance < LOOKS:
        return random_look(rng, profile, "")
    if chance < LOOKS + NEAR:
        return random_near(rng, profile, n_slots, "")
    if chance < LOOKS + NEAR + TRAVELS:
        return random_travel(rng, profile, "")
    if chance < LOOKS + NEAR + TRAVELS + ROWS:
        return random_row_look(rng, "") if rng.random() < 0.3 else random_rows(rng, "")
    return random_request(rng, profile)


class SteadyLoad:
    """Sends requests from `start` to `stop`; `pause` interrupts the sending.

    `replies` are all replies, `reply_times` the times of their arrival by the event loop's clock. `seen` counts the
    outcomes of attempts.
    """

    def __init__(
        self,
        kafka: Client,
        http: Client | None,
        operators: dict[str, Operator],
        make: Callable[[], Planned],
        options: LoadOptions,
        rng: Random,
    ) -> None:
        self.replies: list[Reply] = []
        self.reply_times: list[float] = []
        self.contradictions: list[str] = []
        self.seen: Counter[str] = Counter()
        self._kafka = kafka
        self._http = http
        self._operators = operators
        self._make = make
        self._options = options
        self._rng = rng
        self._keys = 0
        self._first: dict[str, Reply] = {}
        self._running = asyncio.Event()
        self._replied = asyncio.Event()
        self._under_way: set[asyncio.Task[None]] = set()
        self._sender: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to send, or continues after a `pause`."""
        self._running.set()
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_on())

    def pause(self) -> None:
        """Sends no new request until `start`."""
        self._running.clear()

    async def stop(self) -> None:
        """Sends no new request, and waits for all under way. Raises the error that broke the load itself."""
        self.pause()
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.wait([self._sender])
            if not self._sender.cancelled():
                self._sender.result()
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def send(self, planned: Planned) -> None:
        """Sends one more request through Kafka, with an idempotency key, until it is answered."""
        self._keys += 1
        await self._until_answered(self._kafka, planned, f"once-{self._keys}")

    async def next_reply(self, seconds: float) -> None:
        """Waits for the next reply; raises `TimeoutError` if none comes within `seconds`."""
        self._replied.clear()
        async with asyncio.timeout(seconds):
            await self._replied.wait()

    async def _send_on(self) -> None:
        loop = asyncio.get_running_loop()
        due = 0.0
        last_s = loop.time()
        while True:
            await asyncio.sleep(TICK_SECONDS)
            if not self._running.is_set():
                await self._running.wait()
                last_s, due = loop.time(), 0.0
            now_s = loop.time()
            # Requests that this process could not send in time are left out, because a burst is no steady load.
            due += min(now_s - last_s, 0.1) * self._options.rate
            last_s = now_s
            while due >= 1:
                due -= 1
                if len(self._under_way) >= UNDER_WAY_MAX:
                    self.seen["held back"] += 1
                    continue
                task = asyncio.create_task(self._request())
                self._under_way.add(task)
                task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.contradictions.append(f"a client raised {type(error).__name__}: {error}")

    async def _request(self) -> None:
        planned, options, rng = self._make(), self._options, self._rng
        client = self._http if self._http is not None and rng.random() < options.http else self._kafka
        if client is self._http or rng.random() < options.keyed:
            self._keys += 1
            key = f"once-{self._keys}"
            again = 2 if rng.random() < 0.2 else 1
            for _ in range(again):
                await self._until_answered(client, planned, key)
        else:
            await self._attempt(client, planned, None)

    async def _until_answered(self, client: Client, planned: Planned, key: str) -> None:
        for _ in range(ATTEMPTS_MAX):
            if await self._attempt(client, planned, key):
                return
            await asyncio.sleep(PAUSE_SECONDS)
        self.contradictions.append(f"no reply to a request in {ATTEMPTS_MAX} attempts, idempotency key {key}")

    async def _attempt(self, client: Client, planned: Planned, key: str | None) -> bool:
        """Makes one attempt. Returns whether a reply came."""
        operator, entity, function, arguments = planned
        self.seen["sent"] += 1
        try:
            reply = await client.request(
                self._operators.get(operator, operator) if client is self._kafka else operator,
                entity,
                function,
                *arguments,
                timeout=REQUEST_SECONDS_MAX,
                idempotency_key=key,
            )
        except (ConnectionError, TimeoutError) as error:
            self.seen[type(error).__name__] += 1
            return False
        except (InTransactionError, RequestRejected) as error:
            self.seen[f"refused: {type(error).__name__}"] += 1
            return True
        if reply.error is not None and reply.error.code in _NOT_TAKEN:
            self.seen[reply.error.code] += 1
            return False
        self._take(reply, key)
        return True

    def _take(self, reply: Reply, key: str | None) -> None:
        outcome = "committed" if reply.error is None else reply.error.code
        self.seen[outcome] += 1
        if not reply.tid:
            return  # refused by the client: no worker has seen it
        self.replies.append(reply)
        self.reply_times.append(asyncio.get_running_loop().time())
        self._replied.set()
        # A rejected request is not run, and its reply is not remembered.
        if key is not None and outcome in ("committed", "aborted"):
            first = self._first.setdefault(key, reply)
            if (reply.tid, reply.result, reply.error) != (first.tid, first.result, first.error):
                self.contradictions.append(f"idempotency key {key} gave {first}, then {reply}")
