"""The demo's clients: each sends the next call when its last one was answered, and repeats a call that got no reply.

They notice a crash as any client does: a connection breaks. Idempotency keys make repetitions safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from typing import Final

from styx.cli.demo.journal import Entry, Journal
from styx.cli.demo.workload import Call
from styx.cli.exit_codes import CommandFailed
from styx.client.base import Client
from styx.messages import Reply

SENDERS: Final = 64
ATTEMPTS_MAX: Final = 50
"""Sends of one call before the demo gives up."""
PAUSE_SECONDS: Final = 0.05
"""Between two sends of one call."""
_NOT_TAKEN: Final = frozenset({"overloaded", "unavailable"})


class Senders:
    """Sends calls through whatever client is connected, and waits while none is."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._client: Client | None = None
        self._connected = asyncio.Event()

    def connect(self, client: Client) -> None:
        """From here on calls go through this client."""
        self._client = client
        self._connected.set()

    def disconnect(self) -> None:
        """Calls wait from here on; those under way find out for themselves."""
        self._connected.clear()

    async def send_all(self, calls: Iterator[Call]) -> None:
        """Sends all calls and returns when each has its reply; raises `CommandFailed` if one never gets it."""
        await together(self._send_each(calls) for _ in range(SENDERS))

    async def ask_again(self, entries: list[Entry]) -> None:
        """Sends calls again that were answered, under the same idempotency keys; raises as `send_all`."""
        remaining = iter(entries)
        await together(self._ask_each_again(remaining) for _ in range(SENDERS))

    async def _send_each(self, calls: Iterator[Call]) -> None:
        for call in calls:  # shared by all: each takes the next one
            entry = self._journal.new(call)
            self._journal.answered(entry, await self._reply(entry))

    async def _ask_each_again(self, entries: Iterator[Entry]) -> None:
        for entry in entries:
            entry.asked_again.append(await self._reply(entry))

    async def _reply(self, entry: Entry) -> Reply:
        key, function, arguments = entry.call
        for _ in range(ATTEMPTS_MAX):
            await self._connected.wait()
            assert self._client is not None
            entry.attempts += 1
            try:
                reply = await self._client.request(
                    "account", key, function, *arguments, idempotency_key=entry.idempotency_key
                )
            except (ConnectionError, TimeoutError):
                entry.lost += 1
            else:
                if reply.error is None or reply.error.code not in _NOT_TAKEN:
                    return reply
            await asyncio.sleep(PAUSE_SECONDS)
        raise CommandFailed(f"{function} of account {key} got no reply in {ATTEMPTS_MAX} attempts.")


async def together(tasks: Iterable[Coroutine[None, None, None]]) -> None:
    """Runs all at once; when one of them raises `CommandFailed`, ends the others and raises it bare."""
    failed: Exception | None = None
    try:
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(task)
    except* CommandFailed as failures:
        # One is as good as all of them: they say the same.
        failed = failures.exceptions[0]
    # Not within `except*`: early releases of Python 3.11 wrap in a group whatever is raised there.
    if failed is not None:
        raise failed
