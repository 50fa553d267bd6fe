"""Large cases, and the run of one through HTTP against something that serves it, with small requests beside it.

Each case is a number of requests that are sent at once. Every request has an idempotency key and is sent again until it
has an answer: its server may be killed meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp

RETRY_SECONDS: Final = 0.2
MIDDLE_SECONDS: Final = 0.3
"""The time between the sending of a run's requests and its middle, when processes are killed."""
SETTLE_SECONDS: Final = 8.0
"""The time with small requests only before memory is measured again. Some snapshots are taken in it, which release the
log.
"""
SMALL_PAUSE_SECONDS: Final = 0.05
TIMEOUT_SECONDS: Final = 600
_TRY_AGAIN: Final = frozenset(
    {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
)


class Outcome(NamedTuple):
    """The outcome of a run. `problems` are requests with a wrong answer or none. Times are in seconds, memory in MiB by
    process.
    """

    problems: list[str]
    took_s: float
    retries: dict[str, int]
    small_answered: int
    small_longest_s: float
    memory_before: dict[str, int]
    memory_peak: dict[str, int]
    memory_after: dict[str, int]


class Sender:
    """Sends requests to one URL until each has its answer. Use as `async with`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session: aiohttp.ClientSession
        self.retries: dict[str, int] = {}
        self.problems: list[str] = []

    async def __aenter__(self) -> Sender:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def call(self, key: str, function: str, arguments: Iterable[Any], expected: int | None) -> None:
        """Sends one request, whose result must be the number `expected`, or a text of that length."""
        url = f"{self._url}/v1/holder/{key}/{function}"
        headers = {"idempotency-key": f"{key}/{function}", "styx-timeout": str(TIMEOUT_SECONDS)}
        while True:
            try:
                async with self._session.post(url, json=list(arguments), headers=headers) as response:
                    if response.status not in _TRY_AGAIN:
                        self._check(f"{function} of {key}", response.status, await response.read(), expected)
                        return
                    why = str(response.status)
            except (aiohttp.ClientError, OSError) as error:
                why = type(error).__name__
            self.retries[why] = self.retries.get(why, 0) + 1
            await asyncio.sleep(RETRY_SECONDS)

    def _check(self, what: str, status: int, body: bytes, expected: int | None) -> None:
        if status != HTTPStatus.OK:
            self.problems.append(f"{what}: {status} {body[:300].decode('utf-8', 'replace')}")
            return
        # A result of a million characters is not decoded: its length is the number of characters between the quotes.
        start = body.index(b":") + 1
        text = body[start + 1 : body.index(b'"', start + 1)] if body[start : start + 1] == b'"' else None
        got = len(text) if text is not None else int(body[start : body.index(b",", start)])
        if expected is not None and got != expected:
            self.problems.append(f"{what}: {got} instead of {expected}")


async def run_case(
    case: Case,
    url: str,
    pids: Callable[[], dict[str, int]],
    name: str,
    middle: Callable[[], Awaitable[None]] | None = None,
) -> Outcome:
    """Runs a case. `name` must be new for each run: the keys of its entities begin with it. `pids` returns the
    processes whose memory is measured. `middle` runs while the requests are under way.
    """
    async with Sender(url) as sender:
        for number in range(HOLDERS if case.before else 0):
            await sender.call(f"{name}h{number}", "hold", (case.before,), case.before)
        watch = _Watch(sender, pids, name)
        before = watch.memory()
        watching = asyncio.create_task(watch.run())
        began_s = time.monotonic()
        disturbing = asyncio.create_task(_soon(middle))
        await asyncio.gather(
            *(
                sender.call(
                    f"{name}-{number}",
                    case.function,
                    (f"{name}h{number % HOLDERS}",) if case.before else case.arguments,
                    case.result,
                )
                for number in range(case.requests)
            )
        )
        took_s = time.monotonic() - began_s
        await disturbing
        await asyncio.sleep(SETTLE_SECONDS)
        watch.stop = True
        await watching
        return Outcome(
            sender.problems,
            took_s,
            sender.retries,
            watch.answered,
            watch.longest_s,
            before,
            watch.peak,
            watch.memory(),
        )


async def _soon(middle: Callable[[], Awaitable[None]] | None) -> None:
    if middle is not None:
        await asyncio.sleep(MIDDLE_SECONDS)
        await middle()


class _Watch:
    def __init__(self, sender: Sender, pids: Callable[[], dict[str, int]], name: str) -> None:
        self.stop = False
        self.answered = 0
        self.longest_s = 0.0
        self.peak: dict[str, int] = {}
        self._sender = sender
        self._pids = pids
        self._name = name

    async def run(self) -> None:
        while not self.stop:
            began_s = time.monotonic()
            await self._sender.call(f"{self._name}s{self.answered}", "count", (), 1)
            self.longest_s = max(self.longest_s, time.monotonic() - began_s)
            self.answered += 1
            for process, mebibytes in self.memory().items():
                self.peak[process] = max(mebibytes, self.peak.get(process, 0))
            await asyncio.sleep(SMALL_PAUSE_SECONDS)

    def memory(self) -> dict[str, int]:
        found = {}
        for name, pid in self._pids().items():
            try:
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            except OSError:
                continue
            values = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("VmRSS", "VmHWM"))}
            found[name] = int(values.get("VmRSS", 0)) // 1024
            self.peak[name] = max(self.peak.get(name, 0), int(values.get("VmHWM", 0)) // 1024)
        return found


MB: Final = 1_000_000
"""Lower than the limit on a value, 1 MiB, because encoding adds bytes."""


class Case(NamedTuple):
    """`requests` calls of `function` at once; each gives `result`, a number or the length of a text.

    With `before`, entities get values of this many bytes first, and each request names one of them.
    """

    name: str
    requests: int
    function: str
    arguments: tuple[int, ...]
    result: int
    before: int = 0

    def scaled(self, share: float) -> Case:
        """The same with fewer requests, or with smaller ones if it is a single one."""
        if self.requests > 1:
            return self._replace(requests=max(2, int(self.requests * share)))
        calls = max(2, int(self.arguments[0] * share))
        return self._replace(arguments=(calls, *self.arguments[1:]), result=calls)


CASES: Final = {
    case.name: case
    for case in (
        Case("arguments", 1, "spread", (200, MB), 200),
        Case("reads", 800, "read", (), MB, before=MB),
        Case("results", 2_000, "answer", (MB,), MB),
        Case("outside", 150, "outside", (MB,), MB),
        Case("puts", 40, "write", (90_000,), 90_000),
    )
}
HOLDERS: Final = 16
"""The number of entities whose values other entities read."""
